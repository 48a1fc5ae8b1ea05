"""Lines for many files, gathered in one piece of memory that goes back to the system whole.

Lines that are kept as objects lie between others that live on; what is freed there the C library keeps, and a run
would hold the room of its fullest moment to its end.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_BYTES = 1 << 25
# Short lines take more beside their bytes than these: two numbers each, and another one to sort them by.
_MOST_LINES = 1 << 18


class LineFiles:
    """Appends lines to files; one is open at a time, however many there are. `flush` comes last.

    Args:
        files: where to; made at once, empty.
        size: bytes that are gathered before they are written; by default 32 MiB.
    """

    def __init__(self, files: Sequence[Path], size: int | None = None) -> None:
        self._files = files
        for file in files:
            file.touch()
        # Its pages count from when they are first written to, so few lines take little.
        self._memory = mmap.mmap(-1, size or _BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._used = 0
        self._numbers = array("i")
        self._ends = array("q")

    def add(self, number: int, line: bytes) -> None:
        """Takes a line, with its end, for the file of a number."""
        if self._used + len(line) > len(self._memory) or len(self._numbers) == _MOST_LINES:
            self.flush()
        if len(line) > len(self._memory):
            with self._files[number].open("ab") as out:
                out.write(line)
            return
        begin, self._used = self._used, self._used + len(line)
        self._memory[begin : self._used] = line
        self._numbers.append(number)
        self._ends.append(self._used)

    def flush(self) -> None:
        """Writes what has gathered; lines of one file keep their order."""
        numbers, ends = np.array(self._numbers), np.array(self._ends)
        self._used, self._numbers, self._ends = 0, array("i"), array("q")
        order = np.argsort(numbers, kind="stable")
        with memoryview(self._memory) as lines:
            for some in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else ():
                with self._files[numbers[some[0]]].open("ab") as out:
                    for place in some.tolist():
                        out.write(lines[ends[place - 1] if place else 0 : ends[place]])
