"""Progress of long work: a bar on a terminal, a plain line every tenth elsewhere, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Something that is told of finished work."""

    def advance(self, amount: int = 1) -> None:
        """Counts `amount` more units as done."""


class _Silent:
    def advance(self, amount: int = 1) -> None:
        del amount


class _Lines:
    """Prints a line whenever another tenth of the work is done."""

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._done = 0

    def advance(self, amount: int = 1) -> None:
        before = self._tenth()
        self._done += amount
        if self._tenth() > before:
            print(f"  {self._label}: {self._done}/{self._total}", file=sys.stderr, flush=True)

    def _tenth(self) -> int:
        return 10 * self._done // max(self._total, 1)


class _Bar:
    def __init__(self, advance: "object", task: object) -> None:
        self._progress = advance
        self._task = task

    def advance(self, amount: int = 1) -> None:
        self._progress.advance(self._task, amount)  # type: ignore[attr-defined]


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
    if quiet:
        yield SILENT
    elif sys.stderr.isatty():
        from rich import progress as bars
        from rich.console import Console

        columns = ("  {task.description}", bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeRemainingColumn())
        with bars.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            yield _Bar(shown, shown.add_task(label, total=total))
    else:
        yield _Lines(label, total)
