"""A disk that loses what was not flushed: what a folder would hold after a power cut, at every moment of a run.

Three kinds of file systems are simulated. They differ in what was not flushed. One loses names and data, one keeps the
names and has empty files, and one keeps names and sizes and has NUL bytes.
"""

import os
import stat
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

LOST, EMPTY, ZEROS = "lost", "empty", "zeros"
_CHANGES = {"os.rename", "os.link", "os.remove", "os.rmdir"}
_active = None


def _watch(event, arguments):
    if _active is not None and event in _CHANGES:
        _active.look()


class Disk:
    """The states that a folder may be found in.

    `states` has each of them once: a mapping of relative paths to bytes, or to `None` for a folder.
    """

    def __init__(self, root):
        self._root = Path(root)
        self._inode = os.stat(root).st_ino
        self._data, self._names, self._folders = {}, {}, set()
        # Open, so that no other file gets its number.
        self._held = []
        self._lock = threading.RLock()
        self.states = []
        for folder, _, files in os.walk(root):
            for place in (folder, *(os.path.join(folder, name) for name in files)):
                descriptor = os.open(place, os.O_RDONLY)
                self.flushed(descriptor)
                os.close(descriptor)

    def flushed(self, descriptor):
        """Takes note of an open file or folder as it is now."""
        with self._lock:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            if not Path(path).is_relative_to(self._root):
                return
            inode = self._hold(os.dup(descriptor))
            if inode not in self._folders:
                self._data[inode] = Path(path).read_bytes()
                return
            flags = os.O_PATH | os.O_NOFOLLOW
            self._names[inode] = {name: self._hold(os.open(f"{path}/{name}", flags)) for name in os.listdir(path)}

    def _hold(self, descriptor):
        self._held.append(descriptor)
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            self._folders.add(found.st_ino)
        return found.st_ino

    def look(self):
        """Takes note of what a power cut would leave now."""
        with self._lock:
            for kind in (LOST, EMPTY, ZEROS):
                found = self.after_cut(kind)
                if found not in self.states:
                    self.states.append(found)

    def after_cut(self, kind):
        """The files that a power cut would leave now."""
        if kind == LOST:
            return dict(self._remembered(self._inode, ""))
        found = {}
        for place in sorted(self._root.rglob("*")):
            status = place.stat()
            lost = bytes(status.st_size) if kind == ZEROS else b""
            data = None if place.is_dir() else self._data.get(status.st_ino, lost)
            found[place.relative_to(self._root).as_posix()] = data
        return found

    def close(self):
        for descriptor in self._held:
            os.close(descriptor)

    def _remembered(self, folder, above):
        for name, inode in self._names.get(folder, {}).items():
            path = f"{above}{name}"
            if inode in self._folders:
                yield path, None
                yield from self._remembered(inode, f"{path}/")
            else:
                yield path, self._data.get(inode, b"")


@contextmanager
def simulated_disk(root):
    """Yields a `Disk` that follows what is done below a folder while the block runs."""
    global _active
    disk = Disk(root)

    def fsync(descriptor):
        disk.look()
        disk.flushed(descriptor)

    sys.addaudithook(_watch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        _active = disk
        try:
            yield disk
        finally:
            _active = None
            disk.close()


def restore(state, folder):
    """Makes a folder that holds a state."""
    folder.mkdir(parents=True)
    for path, data in state.items():
        place = folder / path
        (place if data is None else place.parent).mkdir(parents=True, exist_ok=True)
        if data is not None:
            place.write_bytes(data)
