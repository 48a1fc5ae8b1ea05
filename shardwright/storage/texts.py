"""Many short texts in little memory: a million keys take their own length and eight bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload


class Texts(Sequence[str]):
    """An immutable list of texts that keeps them as UTF-8, one after the other.

    A Python text takes about sixty bytes more than its characters, which for a million file names is most of a run's
    memory. Halves of characters, by which Python spells bytes that are no UTF-8, are kept as well.

    Args:
        texts: what to keep.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        data = bytearray()
        self._ends = array("Q")
        for text in texts:
            data += text.encode("utf-8", "surrogatepass")
            self._ends.append(len(data))
        self._data = bytes(data)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        ends = self._ends
        place += len(ends) if place < 0 else 0
        if not 0 <= place < len(ends):
            raise IndexError(f"there are {len(ends)} texts")
        begin = ends[place - 1] if place > 0 else 0
        return self._data[begin : ends[place]].decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        begin = 0
        for end in self._ends:
            yield self._data[begin:end].decode("utf-8", "surrogatepass")
            begin = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"Texts({list(self)!r})"
