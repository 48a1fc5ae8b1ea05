"""Runs commands on bombs, each in a process of its own with limits of memory and processor time, and measures them."""

import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bombs import write

from shardwright.pipelines.cli import main

# Address space is reserved in larger pieces than are used: 72 MiB for each thread, and there are dozens.
_RESERVED = 4 << 30
# The name in the comment makes it a fork of a process that has imported it (`prefork`).
_PROGRAM = "from costs import child; child()  # shardwright.components"
# Where the machine does other work, too.
_WALL_SECONDS = 300


class Outcome(NamedTuple):
    """What a command did.

    Attributes:
        status: its exit code, or the signal that ended it as a negative number.
        output: all that it printed.
        memory: the bytes that it took at most, beyond those at its start.
    """

    status: int
    output: str
    memory: int


def check_bomb(name: str, size: int, folder: Path, memory: int, seconds: int, *, every: bool = True) -> None:
    """Asserts that all commands that read a bomb end in a message, and within the limits.

    Args:
        name: of the bomb.
        size: of the bomb.
        folder: is made for it.
        memory: bytes that a command may take.
        seconds: processor time that it may take.
        every: whether the commands are tried that read every input.
    """
    bomb = write(name, folder, size)
    calls: list[tuple[str, ...]] = [("ingest", "c.yaml", "--out", "out", "--workers", "1")]
    if every:
        calls += [("init", "set", "--out", "made.yaml"), ("validate", "c.yaml", "--data")]
    calls += [tuple(part.replace("{}", str(folder)) for part in call) for call in bomb.calls]
    said = []
    for call in calls:
        outcome = run_limited(call, folder, memory, seconds)
        where = f"{name}: shardwright {' '.join(call)}: {outcome.status}, {outcome.memory >> 20} MiB"
        assert outcome.status in (0, 1, 2), f"{where}\n{outcome.output[-2000:]}"
        assert "Traceback" not in outcome.output, f"{where}\n{outcome.output[-2000:]}"
        assert outcome.memory <= memory, where
        said.append(outcome.output)
    assert bomb.said in said[0], f"{name}: {said[0][-2000:]}"


def run_limited(call: Sequence[str], folder: Path, memory: int, seconds: int) -> Outcome:
    """Runs a command; one that takes more memory or processor time fails.

    Args:
        call: its arguments.
        folder: where it runs.
        memory: bytes.
        seconds: of processor time.
    """
    # Not a fork of this process: other tests may have started threads in it, whose locks nobody would release.
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    command = [sys.executable, "-c", _PROGRAM, str(folder), str(memory), str(seconds), *call]
    status = subprocess.run(command, env=environment, check=False).returncode
    start, peak = int((folder / "start.txt").read_text()), folder / "peak.txt"
    most = int(peak.read_text()) if peak.exists() else 0
    return Outcome(status, (folder / "log.txt").read_text("utf-8", "replace"), max(0, most - start))


def child() -> None:
    """Does what `run_limited` asks of the process that it starts."""
    folder, memory, seconds = Path(sys.argv[1]), *map(int, sys.argv[2:4])
    status = 70
    try:
        status = _run(sys.argv[4:], folder, memory, seconds)
        (folder / "peak.txt").write_text(str(_status_of("VmHWM")), encoding="utf-8")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(call: Sequence[str], folder: Path, memory: int, seconds: int) -> int:
    descriptor = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(descriptor, number)
    # Open until the process ends.
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    # The peak begins anew.
    Path("/proc/self/clear_refs").write_text("5")
    (folder / "start.txt").write_text(str(_status_of("VmRSS")))
    signal.alarm(_WALL_SECONDS)
    used = sum(os.times()[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + seconds, int(used) + seconds + 1))
    limit = _status_of("VmSize") + memory + _RESERVED
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        return main(list(call))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 2


def _status_of(name: str) -> int:
    """Returns a size of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise LookupError(name)
