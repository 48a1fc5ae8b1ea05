"""Progress of long work, on standard error: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from shardwright.text.escaping import escape, escaped_streams, unescaped

_SECONDS_BETWEEN_LINES = 5.0
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
    """Prints a line now and then, and none for work that is done before one would be due."""

    def __init__(self, label: str, total: int, size: int, seconds: float) -> None:
        self._label, self._total, self._size, self._seconds = label, total, size, seconds
        self._done = self._done_size = 0
        self._began = time.monotonic()
        self._due = self._began + seconds

    def advance(self, amount: int = 1, size: int = 0) -> None:
        self._done += amount
        self._done_size += size
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._seconds
            parts = [f"  {self._label}: {self._done}/{self._total}"]
            if self._size:
                parts.append(f"{self._done_size / _MB:,.0f} of {self._size / _MB:,.0f} MB")
            if 0 < self._done < self._total:
                left = (now - self._began) * (self._total - self._done) / self._done
                parts.append(f"{left:,.0f} s left")
            print(", ".join(parts), file=sys.stderr, flush=True)

    def describe(self, text: str) -> None:
        del text


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

        sizes = (bars.TextColumn("{task.fields[done]:,.0f} MB"),) if size else ()
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
    else:
        yield _Lines(label, total, size, seconds)
