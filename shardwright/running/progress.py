"""Progress of long work: units, bytes, and the seconds left.

On a terminal it is a bar, in a notebook a line that is replaced, and elsewhere a plain line every few seconds. In a
pod of Kubernetes or a job of Vertex AI it is a line of JSON at most every half minute, for the log. All but that of
notebooks is on standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from shardwright.text.escaping import escape, escaped_streams, unescaped

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_UPDATES, _SECONDS_BETWEEN_ENTRIES = 0.5, 30.0
# Variables of the containers of Kubernetes, which Kubeflow's pipelines run in, and of those of Vertex AI.
_IN_PIPELINES = frozenset(("KUBERNETES_SERVICE_HOST", "CLOUD_ML_PROJECT_ID", "CLOUD_ML_JOB_ID"))
_MB = 1e6
_quiet = False


@contextmanager
def quiet_output(quiet: bool) -> Iterator[None]:
    """Prints no notes and no progress while it is open, if it is `quiet`."""
    global _quiet
    before, _quiet = _quiet, _quiet or quiet
    try:
        yield
    finally:
        _quiet = before


def counted(count: int, one: str, several: str = "") -> str:
    """Returns a number of things in words: `1 shard`, `2 shards`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def print_note(note: str) -> None:
    """Prints a note about the work as one indented line."""
    print_progress(f"  {escape(note)}")


def print_progress(line: str) -> None:
    """Prints a line about how far the work is."""
    if not _quiet:
        print(line, flush=True)


class Progress(Protocol):
    """Counts finished work."""

    def advance(self, amount: int = 1, size: int = 0) -> None:
        """Counts `amount` more units of `size` bytes as done."""

    def describe(self, text: str) -> None:
        """Shows what is being done now, beside the bar of a terminal."""


class _Silent:
    def advance(self, amount: int = 1, size: int = 0) -> None:
        del amount, size

    def describe(self, text: str) -> None:
        del text


class _Lines:
    """Passes on how far work is now and then, and not for work that is done before that would be due.

    Args:
        label: what is being done.
        total: units of work.
        size: their bytes, where these are counted, too.
        seconds: least time between two calls of `show`.
        show: gets the state.
    """

    def __init__(self, label: str, total: int, size: int, seconds: float, show: Callable[[_State], None]) -> None:
        self._label, self._total, self._size, self._seconds, self._show = label, total, size, seconds, show
        self._done = self._done_size = 0
        self._began = time.monotonic()
        self._due = self._began + seconds

    def advance(self, amount: int = 1, size: int = 0) -> None:
        self._done += amount
        self._done_size += size
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._seconds
            left = (now - self._began) * (self._total - self._done) / max(1, self._done)
            self._show(_State(self._label, self._done, self._total, self._done_size, self._size, left))

    def describe(self, text: str) -> None:
        del text


class _State(NamedTuple):
    """How far work is; sizes are bytes, and 0 where they are not counted."""

    task: str
    done: int
    total: int
    size: int
    total_size: int
    seconds_left: float

    def line(self) -> str:
        """Returns it for people."""
        parts = [f"{self.task}: {self.done}/{self.total}"]
        if self.total_size:
            parts.append(f"{self.size / _MB:,.0f} of {self.total_size / _MB:,.0f} MB")
        if 0 < self.done < self.total:
            parts.append(f"{self.seconds_left:,.0f} s left")
        return ", ".join(parts)

    def entry(self) -> str:
        """Returns it as an entry of a log of JSON lines, in the fields that Google Cloud's logging knows."""
        progress = {
            "task": self.task,
            "done": self.done,
            "total": self.total,
            **({"bytes": self.size, "total_bytes": self.total_size} if self.total_size else {}),
            "seconds_left": round(self.seconds_left),
        }
        return json.dumps({"severity": "INFO", "message": self.line(), "progress": progress})


def _notebook_cell() -> Callable[[_State | None], None] | None:
    """Returns what shows a line in the output of a notebook's cell, in place of the one before; elsewhere `None`.

    The function takes `None` at the end, and leaves no line: as the bar of a terminal.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # A terminal of IPython is one.
        return None
    # Not a package that we need: it is there where its kernel runs.
    cell = import_module("IPython.display")
    shown: list[Any] = []

    def show(state: _State | None) -> None:
        line = cell.Pretty("" if state is None else escape(state.line()))
        if shown:
            shown[0].update(line)
        elif state is not None:
            shown.append(cell.display(line, display_id=True))

    return show


class _Bar:
    def __init__(self, step: Callable[[int, int], None], describe: Callable[[str], None]) -> None:
        self._step, self._describe = step, describe

    def advance(self, amount: int = 1, size: int = 0) -> None:
        self._step(amount, size)

    def describe(self, text: str) -> None:
        self._describe(escape(text))


SILENT: Progress = _Silent()


@contextmanager
def progress(
    total: int, label: str, *, quiet: bool = False, size: int = 0, seconds: float = _SECONDS_BETWEEN_LINES
) -> Iterator[Progress]:
    """Shows how far `total` units of work are.

    Args:
        total: units of work.
        label: what is being done, e.g. `reading images`.
        quiet: show nothing.
        size: their bytes, where these are counted, too.
        seconds: least time between two lines where there is no terminal.

    Yields:
        An object whose `advance(n, size)` counts finished units.
    """
    if quiet or _quiet:
        yield SILENT
    elif sys.stderr.isatty():
        from rich import progress as bars
        from rich.console import Console

        sizes = (bars.TextColumn(f"{{task.fields[done]:,.0f}} of {size / _MB:,.0f} MB"),) if size else ()
        columns = (
            "  {task.description}",
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            *sizes,
            bars.TimeRemainingColumn(),
        )
        # The bar needs the terminal's control sequences. While it is shown, rich replaces the standard streams with its
        # own; text that other code prints goes through ours first.
        console = Console(file=unescaped(sys.stderr))
        with bars.Progress(*columns, console=console, transient=True) as shown, escaped_streams():
            task = shown.add_task(label, total=total, done=0.0)

            def step(amount: int, more: int) -> None:
                shown.update(task, advance=amount, done=shown.tasks[0].fields["done"] + more / _MB)

            yield _Bar(step, lambda text: shown.update(task, description=text))
    elif cell := _notebook_cell():
        try:
            yield _Lines(label, total, size, _SECONDS_BETWEEN_UPDATES, cell)
        finally:
            cell(None)
    elif not _IN_PIPELINES.isdisjoint(os.environ):
        yield _Lines(label, total, size, max(seconds, _SECONDS_BETWEEN_ENTRIES), lambda state: _print(state.entry()))
    else:
        yield _Lines(label, total, size, seconds, lambda state: _print(f"  {state.line()}"))


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
