"""Files that are there whole or not at all: written under another name, then renamed."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from shardwright.storage.block_file import BlockFile
from shardwright.storage.checksum import Checksum
from shardwright.storage.durable import flush, flush_descriptor, make_folder


class WholeFile:
    """A file that appears under its name, whole, when the block ends without an error.

    Args:
        target: its name; folders above it are made.
        flushed: whether it is on stable storage when the block has ended. Pass `False` for a file that may be lost, or
            that the caller flushes together with others.
        flushed_later: whether the caller does that.
        checksum: gets its bytes; by default their BLAKE3.
    """

    def __init__(
        self, target: Path, *, flushed: bool = True, flushed_later: bool = False, checksum: Checksum | None = None
    ) -> None:
        self._target, self._checksum = target, checksum
        self._flushed, self._durable = flushed, flushed or flushed_later
        # Unique, so that two attempts of a runner at the same shard never write into each other's file.
        self._temporary = target.parents[0] / f".{target.name}.{uuid.uuid4().hex}"

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return self._file.size

    @property
    def checksum(self) -> str:
        """The checksum of the bytes written so far, as hex digits."""
        return self._file.checksum

    def __enter__(self) -> WholeFile:
        make_folder(self._target.parent)
        self._file = BlockFile(self._temporary, durable=self._durable, checksum=self._checksum)
        return self

    def write(self, data: bytes) -> None:
        """Appends bytes."""
        self._file.write(data)

    def append(self, source: Path, checksum: Checksum) -> int:
        """Appends all of another file; `checksum` gets its bytes, too. Returns its size."""
        return self._file.append(source, checksum)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            try:
                if kind is None:
                    self._file.finish()
                    if self._flushed:
                        flush_descriptor(self._file.fileno())
            finally:
                self._file.close()
            if kind is None:
                self._temporary.replace(self._target)
                if self._flushed:
                    flush([self._target.parent])
        finally:
            # There is one still when the block failed, or writing its end did for want of room.
            self._temporary.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> str:
    """Writes a small file by rename; returns its checksum."""
    return write_bytes(target, text.encode("utf-8"))


def write_bytes(target: Path, data: bytes) -> str:
    """Writes a file by rename; returns its checksum."""
    with WholeFile(target) as file:
        file.write(data)
    return file.checksum


def write_parts(lines: Iterator[str], sizes: Sequence[int], name: Callable[[int], Path]) -> list[str]:
    """Writes lines into numbered files of so many lines each; returns their checksums. The caller flushes them."""
    hashes = []
    for number, size in enumerate(sizes):
        with WholeFile(name(number), flushed=False) as part:
            for line in itertools.islice(lines, size):
                part.write(line.encode("utf-8"))
        hashes.append(part.checksum)
    return hashes
