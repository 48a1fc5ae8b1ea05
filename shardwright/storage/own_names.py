"""Names that anybody can know: what is there proves to be ours before it is opened, emptied, renamed or deleted.

A run finds the lock, the staging folder or the cache of an earlier one by its name. So can others: an archive that a
user unpacks, or another user of a shared folder, may put a link, a pipe or a folder full of links under that name. So

- the folders that the user names may be links; nothing below them is: links, pipes, devices, other users' files and
  other disks are refused, with nothing changed, wherever they are in a folder of ours;
- a folder is emptied or deleted only if its `LOCK_FILE` has `MARK`, which is written when the folder is still empty.
  Anybody can copy the mark, but gains nothing: only files in that very folder are deleted;
- nothing is written into an existing file but a lock or a database: new files have names that nobody can guess, and
  are renamed.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from shardwright.errors import UsageError
from shardwright.storage.durable import flush_descriptor, make_folder
from shardwright.storage.paths import is_remote, real_path

LOCK_FILE = ".lock"
MARK = b"A working folder of Shardwright.\n"
# The name of a folder that is being deleted: `set_aside`. Earlier versions had no random part.
SET_ASIDE = re.compile(r"\.deleted-(?:[0-9a-f]{32}-)?", re.ASCII)
# No folder of ours has so many levels; deleting more would run out of descriptors.
_DEEPEST = 64
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# SQLite keeps these next to a database. They belong to it, and SQLite obeys what they say.
_SIDECARS = ("-journal", "-wal", "-shm")
# A journal that ends like this names another file, which SQLite deletes in the end: `super-journal` in its file format.
_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def is_own(path: str | os.PathLike[str], kind: int = stat.S_IFDIR) -> bool:
    """Returns whether a folder, or another kind of file, is there; False if nothing is.

    Args:
        path: a name of ours in a folder that the user named.
        kind: the kind, as `stat.S_IFMT` gives it.

    Raises:
        UsageError: a link or another kind of file is there, or one of another user.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    # Some network file systems give all files one owner: files of ours then have that of the folder above.
    _check(path, status, (kind,), (os.geteuid(), os.stat(os.path.dirname(path) or ".").st_uid))
    return True


def staging_next_to(out: str | os.PathLike[str]) -> str:
    """Returns the staging folder of an output where the configuration names none; it need not exist.

    Raises:
        UsageError: something that is not ours has its name.
    """
    folder, name = os.path.split(real_path(out))
    staging = f"{folder}/.{name}.staging"
    if not is_remote(staging):
        is_own(staging)
    return staging


def make_own_folder(folder: str | os.PathLike[str], mode: int = 0o777) -> None:
    """Makes a folder under a name of ours where it is missing, and those above it.

    Raises:
        UsageError: something else is there.
    """
    make_folder(os.path.dirname(os.path.abspath(folder)))
    with suppress(FileExistsError):
        os.mkdir(folder, mode)
    is_own(folder)


def make_working_folder(folder: str | os.PathLike[str]) -> None:
    """Makes a folder that a later run may empty, with its mark, where it is missing.

    Raises:
        UsageError: something else is there.
    """
    make_own_folder(folder)
    with suppress(FileExistsError, FileNotFoundError):
        if not os.listdir(folder):
            descriptor = os.open(
                os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666
            )
            try:
                mark(folder, descriptor)
            finally:
                os.close(descriptor)


def open_own_file(file: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """Opens a file under a name of ours; returns a descriptor.

    Raises:
        UsageError: a link, a pipe or another kind of file is there, or it is also known under another name.
        OSError: it cannot be opened.
    """
    is_own(file, stat.S_IFREG)
    # The flags are for what is put there in this moment: a link is not followed, and a pipe is not waited for.
    descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise UsageError(f"{file}: has another name, too, or is not a file. No run of ours made it. Remove it.")
    return descriptor


def check_own_tree(folder: str | os.PathLike[str]) -> None:
    """Checks all that is in a folder of ours; files that disappear meanwhile are passed over.

    Raises:
        UsageError: there is a link, another kind of file, a file of another user or a disk mounted in it.
    """
    top = os.lstat(folder)
    folders = [(os.fspath(folder), 0)]
    for here, depth in folders:  # It grows on the way.
        if depth > _DEEPEST:
            raise UsageError(f"{here}: is deeper than any folder of ours. Remove it, or name another place.")
        with suppress(FileNotFoundError), os.scandir(here) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    _check(entry.path, status, (stat.S_IFREG, stat.S_IFDIR), (os.geteuid(), top.st_uid))
                    if status.st_dev != top.st_dev:
                        raise UsageError(f"{entry.path}: is on another disk than {folder}. Unmount it.")
                    if stat.S_ISDIR(status.st_mode):
                        folders.append((entry.path, depth + 1))


def check_own_database(file: str | os.PathLike[str]) -> None:
    """Checks a SQLite database, and the files that SQLite keeps next to it, before a connection is made.

    Raises:
        UsageError: one of them is not a file, has another name, or would make SQLite delete a file.
    """
    for name in (os.fspath(file), *(f"{os.fspath(file)}{ending}" for ending in _SIDECARS)):
        with suppress(FileNotFoundError):
            descriptor = open_own_file(name, os.O_RDONLY)
            try:
                size = os.fstat(descriptor).st_size
                end = os.pread(descriptor, len(_NAMES_ANOTHER), max(0, size - len(_NAMES_ANOTHER)))
            finally:
                os.close(descriptor)
            if name.endswith(_SIDECARS[0]) and end == _NAMES_ANOTHER:
                raise UsageError(f"{name}: names a file for SQLite to delete. No run of ours made it. Remove it.")


def is_foreign(folder: str | os.PathLike[str]) -> bool:
    """Returns whether a folder has files, but no `LOCK_FILE`: it is not a working folder."""
    names = os.listdir(folder)
    return bool(names) and LOCK_FILE not in names


def mark(folder: str | os.PathLike[str], descriptor: int) -> bool:
    """Marks an empty folder as ours; returns whether it is marked, now or by an earlier run.

    Args:
        folder: it contains a `LOCK_FILE`.
        descriptor: that file, which the caller has locked or just made.
    """
    if os.pread(descriptor, len(MARK) + 1, 0) == MARK:
        return True
    if os.listdir(folder) != [LOCK_FILE]:
        return False
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, MARK, 0)
    flush_descriptor(descriptor)
    return True


def not_ours(folder: str | os.PathLike[str]) -> UsageError:
    """Returns the error about a folder with files that no run of ours has put there."""
    return UsageError(
        f"{folder}: contains files, and no run of this version made the folder. Move them elsewhere or delete them."
    )


def set_aside(folder: Path) -> Path:
    """Renames a folder before it is deleted, so that nobody takes the half of it for the whole; returns its new name.

    Raises:
        OSError: it cannot be renamed.
    """
    name = folder.name[len(match.group()) :] if (match := SET_ASIDE.match(folder.name)) else folder.name
    aside = folder.with_name(f".deleted-{uuid.uuid4().hex}-{name}")
    os.rename(folder, aside)
    return aside


def remove_tree(folder: str | os.PathLike[str]) -> None:
    """Deletes a folder as far as that is possible; what links lead to and disks that are mounted in it stay.

    Its `LOCK_FILE` goes last: a folder that is deleted in part is still known as ours.
    """
    with suppress(OSError):
        descriptor = os.open(folder, _FOLDER)
        try:
            _empty(descriptor, os.fstat(descriptor).st_dev)
        finally:
            os.close(descriptor)
        os.rmdir(folder)


def empty_folder(folder: str | os.PathLike[str], keep: Iterable[str] = ()) -> None:
    """Deletes all that is in a folder of ours, except names in `keep`, as `remove_tree` does.

    Raises:
        OSError: something in it cannot be deleted.
    """
    descriptor = os.open(folder, _FOLDER)
    try:
        _empty(descriptor, os.fstat(descriptor).st_dev, frozenset(keep))
    finally:
        os.close(descriptor)


def _empty(descriptor: int, device: int, keep: frozenset[str] = frozenset(), depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    with os.scandir(descriptor) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name not in keep]
    for name, is_folder in sorted(listed, key=lambda one: one[0] == LOCK_FILE):
        # Another run may delete the same files.
        with suppress(FileNotFoundError):
            if not is_folder:
                os.unlink(name, dir_fd=descriptor)
                continue
            inner = os.open(name, _FOLDER, dir_fd=descriptor)
            try:
                if os.fstat(inner).st_dev != device:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
                _empty(inner, device, depth=depth + 1)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=descriptor)


def _check(
    path: str | os.PathLike[str], status: os.stat_result, kinds: tuple[int, ...], owners: tuple[int, ...]
) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind not in kinds:
        shown = _KINDS.get(kind, "a special file")
        raise UsageError(f"{os.fspath(path)}: is {shown}, which no run of ours made. Remove it, or name another place.")
    if status.st_uid not in owners:
        raise UsageError(
            f"{os.fspath(path)}: belongs to another user (uid {status.st_uid}). Name a place in a folder of your own."
        )
