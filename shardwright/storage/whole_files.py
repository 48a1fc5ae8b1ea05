"""Files and folders that are there whole or not at all: put together under another name, then renamed.

A `BlockFile` gets its bytes in large calls, straight from the objects that hold them, and is hashed meanwhile. The
bytes of an image are hashed and written right after they were read, while they are in the processor's caches.
Collecting them in larger blocks first takes three times as long, even when a thread writes these. The file goes through
the system's cache. With `O_DIRECT` writing takes a third of the processor time, but the next component reads what this
one has written, and would then read it from the disk.

A folder is put together in a working folder of ours (`shardwright.storage.own_names`), named by content, so that the
next run finds the files of a killed one and deletes them. It is locked, so that no run deletes the files of a running
one.
"""

from __future__ import annotations

import errno
import itertools
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from shardwright.errors import NO_ROOM, UsageError, unwritable
from shardwright.storage.checksum import Checksum, new_checksum
from shardwright.storage.durable import begin_flush, flush, flush_descriptor, make_folder, rename_folder
from shardwright.storage.locks import lock_folder
from shardwright.storage.own_names import LOCK_FILE, empty_folder, is_own, remove_tree

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
# Lines that are encoded together.
_LINES = 4096
# Bytes that the system is asked to copy at once.
_AT_MOST = 1 << 30
# Errors of file systems that do not copy a part of a file themselves.
_CANNOT_COPY = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}
_WHOLE = "whole"
# What the target may be by the time of the rename: a folder with files, or a file.
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}


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


class WholeFile(BlockFile):
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
        make_folder(target.parent)
        self._target, self._flushed = target, flushed
        # Unique, so that two attempts of a runner at the same shard never write into each other's file.
        self._temporary = target.parent / f".{target.name}.{uuid.uuid4().hex}"
        super().__init__(self._temporary, durable=flushed or flushed_later, checksum=checksum)

    def __enter__(self) -> WholeFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            try:
                if kind is None:
                    self.finish()
                    if self._flushed:
                        flush_descriptor(self.fileno())
            finally:
                self.close()
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
            left = itertools.islice(lines, size)
            while some := "".join(itertools.islice(left, _LINES)):
                part.write(some.encode("utf-8"))
        hashes.append(part.checksum)
    return hashes


@contextmanager
def assembling(target: Path, fingerprint: str) -> Iterator[Path]:
    """Yields an empty folder next to an output, within the same file system, for `appear`; deletes it in the end.

    Two runs of one configuration with different staging folders meet here. The folder above it is for this run alone.

    Args:
        target: the output, absolute.
        fingerprint: of the content.

    Raises:
        UsageError: another run is putting the same together, or what is under the folder's name is not ours.
        StorageError: the disk is full.
    """

    def refuse() -> None:
        raise UsageError(f"{target}: another run is publishing the same dataset there. Wait for it or end it.")

    working = _working_folder(target, fingerprint)
    try:
        with lock_folder(working, waiting=refuse, needed=False):
            try:
                empty_folder(working, keep=(LOCK_FILE,))
                whole = working / _WHOLE
                whole.mkdir()
                yield whole
            finally:
                remove_tree(working)
                flush([working.parent])  # After a power failure it does not come back.
    except OSError as error:
        if error.errno in NO_ROOM:
            raise unwritable(f"{target}:", error, "") from None
        raise


def appear(whole: Path, target: Path) -> None:
    """Gives an assembled folder its name; an empty folder there is replaced.

    Raises:
        UsageError: somebody has put something else there meanwhile.
    """
    try:
        rename_folder(whole, target)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        raise UsageError(f"{target}: something else was put there in the meantime. Name another folder.") from None


def discard(target: Path, fingerprint: str) -> None:
    """Deletes the files that a killed run has left next to an output; those of a living one, and others, stay."""
    working = _working_folder(target, fingerprint)
    with suppress(UsageError):
        if is_own(working):
            with lock_folder(working, needed=False):
                remove_tree(working)


def _working_folder(target: Path, fingerprint: str) -> Path:
    return target.parent / f".partial-{fingerprint[:16]}"
