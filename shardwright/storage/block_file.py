"""A file that is written in large blocks, which are hashed at once and written while the next one is filled.

Blocks go through the system's cache. With `O_DIRECT` writing takes a third of the processor time, but the next
component reads what this one has written, and would then read it from the disk.
"""

from __future__ import annotations

import mmap
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from shardwright.checksum import new_checksum

# A file in progress has two of these.
_BLOCK = 4 << 20


class BlockFile:
    """A new file.

    Args:
        path: its name.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._hash = new_checksum()
        self._block = mmap.mmap(-1, _BLOCK)
        self._spare: mmap.mmap | None = None
        self._used = self._hashed = self._written = 0
        self._pool: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._written + self._used

    @property
    def checksum(self) -> str:
        """The BLAKE3 of the bytes so far."""
        self._hash_rest()
        return self._hash.hexdigest()

    def write(self, data: bytes) -> None:
        """Appends bytes. `OSError` also where earlier ones could not be written."""
        length = len(data)
        end = self._used + length
        if end < _BLOCK:
            self._block[self._used : end] = data
            self._used = end
            return
        begin = 0
        with memoryview(data) as rest:
            while length - begin >= _BLOCK - self._used:
                part = _BLOCK - self._used
                self._block[self._used :] = rest[begin : begin + part]
                begin += part
                self._used = _BLOCK
                self._next_block()
            self._used = length - begin
            self._block[: self._used] = rest[begin:]

    def finish(self) -> None:
        """Writes what is left."""
        self._wait()
        self._hash_rest()
        self._put(self._block, self._used, self._written)
        self._written, self._used, self._hashed = self.size, 0, 0

    def fileno(self) -> int:
        """Returns the descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Closes the file; bytes that `finish` has not written are lost."""
        if self._pool is not None:
            self._pool.shutdown()
        os.close(self._descriptor)

    def _hash_rest(self) -> None:
        if self._hashed < self._used:
            with memoryview(self._block) as block:
                self._hash.update(block[self._hashed : self._used])
            self._hashed = self._used

    def _next_block(self) -> None:
        """Writes the block, which is full, in the background."""
        self._hash_rest()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1)
        self._wait()
        full, position = self._block, self._written
        self._block, self._spare = self._spare or mmap.mmap(-1, _BLOCK), full
        self._written += _BLOCK
        self._used = self._hashed = 0
        self._writing = self._pool.submit(self._put, full, _BLOCK, position)

    def _wait(self) -> None:
        """Waits for the block that is being written, so that its memory is free again."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _put(self, block: mmap.mmap, size: int, position: int) -> None:
        done = 0
        with memoryview(block) as data:
            while done < size:
                done += os.pwrite(self._descriptor, data[done:size], position + done)
