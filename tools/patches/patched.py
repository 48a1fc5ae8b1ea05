"""Runs tests against patched copies of the source tree, never against the checkout.

A patch replaces text that occurs exactly once in one file. Each run is a fork of a process that has imported pytest and
other third-party modules, but no module of this project.
"""

import contextlib
import importlib
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PRELOADED = ("pytest", "hypothesis", "numpy", "PIL.Image", "yaml", "google.protobuf.message", "http.server")

_FORK = multiprocessing.get_context("fork")
_OTHER_TIME = 10**6  # seconds; byte code holds the time of its source, so a patched file is always compiled again
_PASSED, _FAILED = 0, 1  # exit codes of pytest


class WrongList(Exception):
    """A list of patches that does not fit the tree."""


@dataclass(frozen=True)
class Patch:
    """A replacement of text that occurs exactly once in a file of the tree."""

    file: str
    old: str
    new: str

    def patched(self, root: Path) -> str:
        """Returns the file's text after the patch."""
        try:
            text = (root / self.file).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise WrongList(f"{self.file}: the file does not exist. Correct the path in the list.") from None
        if (count := text.count(self.old)) != 1:
            raise WrongList(f"{self.file}: found {count} times, expected once: {self.old!r}. Correct the list.")
        if self.old == self.new:
            raise WrongList(f"{self.file}: the patch changes nothing: {self.old!r}. Correct the list.")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Job:
    """Tests to run with a patch, or on the unchanged tree. A test that starts with `tools/` is a command."""

    tests: tuple[str, ...]
    patch: Patch | None = None
    most_seconds: float = 1800

    @property
    def arguments(self) -> list[str]:
        """The tests as arguments of pytest: an entry may contain options, such as `FILE -k NAME`."""
        return [word for test in self.tests for word in shlex.split(test)]

    @property
    def command(self) -> bool:
        """True if the test is a command, not pytest's."""
        return self.tests[0].startswith("tools/")


@dataclass(frozen=True)
class Outcome:
    """How the tests of a job ended. `code` is None when they ran out of time."""

    code: int | None
    seconds: float
    log: str

    @property
    def passed(self) -> bool:
        """True if every test passed."""
        return self.code == _PASSED

    @property
    def failed(self) -> bool:
        """True if a test failed or did not end; not if an import or a collection failed."""
        return self.code in (_FAILED, None)

    @property
    def failed_test(self) -> str:
        """The first test that failed."""
        if self.code is None:
            return f"no end after {self.seconds:.0f} s"
        found = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", self.log, re.MULTILINE)
        return found[1] if found else ""


class Tree:
    """A copy of the checkout's files in which patches are applied."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.log = folder / "log"
        self.temporary = folder / "temporary"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.split("\0"):
            if name and os.path.lexists(ROOT / name):
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name, follow_symlinks=False)
        # Commands of tools/ look for the program there; by PYTHONPATH it imports the modules of the copy.
        (self.root / ".venv" / "bin").mkdir(parents=True)
        (self.root / ".venv" / "bin" / "shardwright").symlink_to(ROOT / ".venv" / "bin" / "shardwright")
        self._names = set(os.listdir(self.root))

    def clean_up(self) -> None:
        """Deletes what a run has left in the tree: the next run must not find it."""
        for path in (self.temporary, *(self.root / name for name in {*os.listdir(self.root)} - self._names)):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def with_patch(self, patch: Patch | None) -> Iterator[None]:
        """Applies a patch for the length of a block."""
        if patch is None:
            yield
            return
        path, text = self.root / patch.file, patch.patched(self.root)
        before, times = path.read_bytes(), path.stat()
        try:
            path.write_text(text, encoding="utf-8")
            os.utime(path, (times.st_atime, times.st_mtime + _OTHER_TIME))
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def missing_tests(tests: Sequence[str], root: Path = ROOT) -> list[str]:
    """Returns a message for each test in the list that does not exist."""
    messages = []
    for test in tests:
        file, _, names = shlex.split(test)[0].partition("::")
        if not (root / file).exists():
            messages.append(f"{test}: there is no {file}. If the test was moved, correct the list.")
        elif names:
            name = names.split("::")[-1].partition("[")[0]
            if not re.search(rf"^\s*(async )?def {re.escape(name)}\(", (root / file).read_text("utf-8"), re.MULTILINE):
                messages.append(f"{test}: {file} has no test {name}. If the test was renamed, correct the list.")
    return messages


def preload() -> None:
    """Imports what most tests import, none of it from this project."""
    for name in PRELOADED:
        importlib.import_module(name)
    assert not any(name.partition("_")[0] == "shardwright" for name in sys.modules)


@dataclass
class _Running:
    number: int
    job: Job
    tree: Tree
    process: Any
    started: float
    patched: contextlib.ExitStack

    @property
    def left(self) -> float:
        return max(0.0, self.started + self.job.most_seconds - time.monotonic())

    def end(self) -> Outcome:
        """Ends the process and everything it started, and restores the tree."""
        ended = self.process.exitcode is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()
        self.patched.close()
        self.tree.clean_up()
        log = self.tree.log.read_text("utf-8", errors="replace")
        return Outcome(self.process.exitcode if ended else None, time.monotonic() - self.started, log)


def run(jobs: Sequence[Job], trees: Sequence[Tree]) -> Iterator[tuple[int, Outcome]]:
    """Runs jobs, one per tree concurrently. Yields the position of each finished job and its outcome."""
    waiting, free = list(enumerate(jobs)), list(trees)
    running: dict[Any, _Running] = {}
    try:
        while waiting or running:
            while waiting and free:
                started = _start(*waiting.pop(0), free.pop())
                running[started.process.sentinel] = started
            done = connection.wait(list(running), min(one.left for one in running.values()))
            for sentinel in done or [key for key, one in running.items() if not one.left]:
                one = running.pop(sentinel)
                if done:
                    one.process.join()
                outcome = one.end()
                free.append(one.tree)
                yield one.number, outcome
    finally:
        for one in running.values():
            one.end()


def _start(number: int, job: Job, tree: Tree) -> _Running:
    patched = contextlib.ExitStack()
    patched.enter_context(tree.with_patch(job.patch))
    sys.stdout.flush()
    sys.stderr.flush()
    process = _FORK.Process(target=_run_tests, args=(job, tree))
    process.start()
    return _Running(number, job, tree, process, time.monotonic(), patched)


def _run_tests(job: Job, tree: Tree) -> None:
    """Runs in the fork."""
    os.setsid()
    for flags, name, targets in ((os.O_RDONLY, os.devnull, (0,)), (os.O_WRONLY | os.O_CREAT, tree.log, (1, 2))):
        file = os.open(name, flags | os.O_TRUNC * (0 not in targets), 0o644)
        for target in targets:
            os.dup2(file, target)
    os.chdir(tree.root)
    sys.path.insert(0, str(tree.root))
    os.environ["PYTHONPATH"] = str(tree.root)
    os.environ.setdefault("SHARDWRIGHT_TEST_DATA", str(ROOT.parent / "shared" / "data"))
    os.environ.setdefault("SHARDWRIGHT_EXAMPLES", "dev")  # as `make test` does
    sys.dont_write_bytecode = job.patch is not None
    if sys.dont_write_bytecode:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    code = _call(job) if job.command else _pytest(job, tree)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _call(job: Job) -> int:
    return int(subprocess.run(job.arguments, check=False).returncode != 0)


def _pytest(job: Job, tree: Tree) -> int:
    import pytest

    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", f"--basetemp={tree.temporary}"]
    return int(pytest.main([*options, *job.arguments]))
