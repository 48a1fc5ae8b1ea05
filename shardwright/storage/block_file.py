"""A new file that gets its bytes in large calls, straight from the objects that hold them, and is hashed meanwhile.

The bytes of an image are hashed and written right after they were read, while they are in the processor's caches.
Collecting them in larger blocks first takes three times as long, even when a thread writes these.

The file goes through the system's cache. With `O_DIRECT` writing takes a third of the processor time, but the next
component reads what this one has written, and would then read it from the disk.
"""

from __future__ import annotations

import os
from pathlib import Path

from shardwright.checksum import new_checksum
from shardwright.storage.durable import begin_flush

# Bytes that are written together; few enough for the processor's caches.
_TOGETHER = 1 << 19
# Bytes of one call. For a longer one the system looks for pieces of memory of 2 MiB. A virtual machine has returned
# these to its host, and getting them back takes seven times as long as the copy.
_CALL = 1 << 20
# Bytes after which the system is asked to write them to the disk. With 400 MB in one file, writing and flushing takes
# 0.18 instead of 0.32 s: the disk works while the next images are read and hashed.
_BEGIN_FLUSH = 8 << 20
# Shorter pieces are joined; the system takes 1,024 in one call.
_SHORT = 1 << 15


class BlockFile:
    """A new file.

    Args:
        path: its name.
        durable: whether it is going to be flushed: the disk then begins at once.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._hash = new_checksum()
        self._pieces: list[bytes] = []
        self._short: list[bytes] = []
        self._waiting = self._written = self._begun = 0
        self._durable = durable

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._written + self._waiting

    @property
    def checksum(self) -> str:
        """The BLAKE3 of the bytes so far, which are written then."""
        self.finish()
        return self._hash.hexdigest()

    def write(self, data: bytes) -> None:
        """Appends bytes. `OSError` also where earlier ones could not be written."""
        length = len(data)
        if length < _SHORT:
            self._short.append(data)
        else:
            self._join_short()
            self._pieces.append(data)
        self._waiting += length
        if self._waiting >= _TOGETHER:
            self.finish()

    def finish(self) -> None:
        """Writes what is left."""
        self._join_short()
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            self._hash.update(piece)
        self._put(pieces)
        self._written, self._waiting = self.size, 0
        if self._durable and self._written - self._begun >= _BEGIN_FLUSH:
            begin_flush(self._descriptor, self._begun, self._written - self._begun)
            self._begun = self._written

    def fileno(self) -> int:
        """Returns the descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Closes the file; bytes that `finish` has not written are lost."""
        os.close(self._descriptor)

    def _join_short(self) -> None:
        if self._short:
            self._pieces.append(b"".join(self._short))
            self._short.clear()

    def _put(self, pieces: list[bytes]) -> None:
        """Writes pieces, of all of them at most `_CALL` bytes in a call."""
        rest = [memoryview(piece) for piece in pieces if piece]
        while rest:
            call, room = [], _CALL
            for piece in rest:
                call.append(piece[:room])
                room -= len(call[-1])
                if not room:
                    break
            done = os.writev(self._descriptor, call)
            while rest and done >= len(rest[0]):
                done -= len(rest.pop(0))
            if done:
                rest[0] = rest[0][done:]
