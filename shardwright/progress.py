"""Progress of long work, on standard error: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from shardwright.escaping import escape, escaped_streams, unescaped

_SECONDS_BETWEEN_LINES = 5.0
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

    def advance(self, amount: int = 1) -> None:
        """Counts `amount` more units as done."""

    def describe(self, text: str) -> None:
        """Shows what is being done now, beside the bar of a terminal."""


class _Silent:
    def advance(self, amount: int = 1) -> None:
        del amount

    def describe(self, text: str) -> None:
        del text


class _Lines:
    """Prints a line now and then, and none for work that is done before one would be due."""

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._due = time.monotonic() + _SECONDS_BETWEEN_LINES

    def advance(self, amount: int = 1) -> None:
        self._done += amount
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _SECONDS_BETWEEN_LINES
            print(f"  {self._label}: {self._done}/{self._total}", file=sys.stderr, flush=True)

    def describe(self, text: str) -> None:
        del text


class _Bar:
    def __init__(self, step: Callable[[int], None], describe: Callable[[str], None]) -> None:
        self._step, self._describe = step, describe

    def advance(self, amount: int = 1) -> None:
        self._step(amount)

    def describe(self, text: str) -> None:
        self._describe(escape(text))


SILENT: Progress = _Silent()


@contextmanager
def progress(total: int, label: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Shows how far `total` units of work are.

    Args:
        total: units of work.
        label: what is being done, e.g. `reading images`.
        quiet: show nothing.

    Yields:
        An object whose `advance(n)` counts finished units.
    """
    if quiet or _quiet:
        yield SILENT
    elif sys.stderr.isatty():
        from rich import progress as bars
        from rich.console import Console

        columns = ("  {task.description}", bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeRemainingColumn())
        # The bar needs the terminal's control sequences. While it is shown, rich replaces the standard streams with its
        # own; text that other code prints goes through ours first.
        console = Console(file=unescaped(sys.stderr))
        with bars.Progress(*columns, console=console, transient=True) as shown, escaped_streams():
            task = shown.add_task(label, total=total)
            yield _Bar(partial(shown.advance, task), lambda text: shown.update(task, description=text))
    else:
        yield _Lines(label, total)
