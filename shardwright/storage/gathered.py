"""Files as a listing finds them, in any order: brought into the order of their keys in little memory.

As objects a hundred thousand of them take twenty-five megabytes, and a part of that for good: the system does not get
back what was freed between objects that live on.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

from shardwright.storage.texts import Texts

_PACKED_TOGETHER = 8192


class Found(NamedTuple):
    """A file that may become an input.

    Attributes:
        key: its key.
        respelled: whether the key is spelled otherwise than the name.
        name: its name below the root, as the storage spells it.
        size: its bytes.
        pin: its version, empty for a local file.
        checksum: of its bytes, where the store lists one.
    """

    key: str
    respelled: bool
    name: str
    size: int
    pin: str = ""
    checksum: str = ""


class Gathered:
    """Files that were found; some thousands of them at a time are sorted and packed."""

    def __init__(self) -> None:
        self._files: list[Found] = []
        self._packed: list[_Packed] = []

    def __bool__(self) -> bool:
        return bool(self._files or self._packed)

    def append(self, file: Found) -> None:
        """Takes one file."""
        self._files.append(file)
        if len(self._files) == _PACKED_TOGETHER:
            self._files.sort()
            self._packed.append(_Packed.of(self._files))
            self._files.clear()

    def by_key(self) -> Iterator[Found]:
        """All of them."""
        self._files.sort()
        return heapq.merge(*(packed.files() for packed in self._packed), self._files)


class _Packed(NamedTuple):
    """Some files in columns; those of pins and checksums are empty where no file has one."""

    keys: Sequence[str]
    names: Sequence[str]
    sizes: array[int]
    pins: Sequence[str]
    checksums: Sequence[str]

    @staticmethod
    def of(files: Sequence[Found]) -> _Packed:
        keys = Texts(file.key for file in files)
        return _Packed(
            keys,
            Texts(file.name for file in files) if any(file.respelled for file in files) else keys,
            array("q", [file.size for file in files]),
            Texts(file.pin for file in files) if any(file.pin for file in files) else (),
            Texts(file.checksum for file in files) if any(file.checksum for file in files) else (),
        )

    def files(self) -> Iterator[Found]:
        pins, checksums = self.pins or repeat(""), self.checksums or repeat("")
        # What stands in for absent pins and checksums has no end of its own.
        for key, name, size, pin, checksum in zip(self.keys, self.names, self.sizes, pins, checksums, strict=False):
            yield Found(key, key != name, name, size, pin, checksum)
