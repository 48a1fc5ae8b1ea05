"""A new file that gets its bytes in large calls, straight from the objects that hold them, and is hashed meanwhile.

The bytes of an image are hashed and written right after they were read, while they are in the processor's caches.
Collecting them in larger blocks first takes three times as long, even when a thread writes these.

The file goes through the system's cache. With `O_DIRECT` writing takes a third of the processor time, but the next
component reads what this one has written, and would then read it from the disk.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from shardwright.storage.checksum import Checksum, new_checksum
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
# Bytes that the system is asked to copy at once.
_AT_MOST = 1 << 30
# Errors of file systems that do not copy a part of a file themselves.
_CANNOT_COPY = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}


class BlockFile:
    """A new file.

    Args:
        path: its name.
        durable: whether it is going to be flushed: the disk then begins at once.
        checksum: gets its bytes; by default their BLAKE3.
    """

    def __init__(self, path: Path, *, durable: bool = False, checksum: Checksum | None = None) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._hash = new_checksum() if checksum is None else checksum
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
        """The checksum of the bytes so far, which are written then, as hex digits."""
        self.finish()
        return self._hash.digest().hex()

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

    def append(self, source: Path, checksum: Checksum) -> int:
        """Appends all of another file, which the file system copies if it can.

        Args:
            source: the other file.
            checksum: gets its bytes, too.

        Returns:
            Its size.
        """
        self.finish()
        with source.open("rb", buffering=0) as file:
            copied = _copy(file.fileno(), self._descriptor)
            size = 0
            while chunk := file.read(_CALL):
                self._hash.update(chunk)
                checksum.update(chunk)
                size += len(chunk)
                if size > copied:
                    self._put([chunk[-(size - copied) :]])
                    copied = size
        self._waiting += size
        self._wrote()
        return size

    def finish(self) -> None:
        """Writes what is left."""
        self._join_short()
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            self._hash.update(piece)
        self._put(pieces)
        self._wrote()

    def _wrote(self) -> None:
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


def _copy(source: int, target: int) -> int:
    """Has the system copy a file to the end of another one, as far as it can; returns the number of bytes."""
    copied = 0
    if hasattr(os, "copy_file_range"):  # Not on macOS.
        try:
            while done := os.copy_file_range(source, target, _AT_MOST, offset_src=copied):
                copied += done
        except OSError as error:
            if error.errno not in _CANNOT_COPY:
                raise
    return copied
