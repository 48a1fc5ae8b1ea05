"""Real ext4 and xfs disks in image files, and what they hold after a power cut. Needs root and loop devices.

The image of a disk is a file on an outer xfs, which copies a file at one moment (`FICLONE`), also while the kernel
writes to it. So a copy is what the disk held then. The processes that write need not stop.
"""

import fcntl
import itertools
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

KINDS = ("ext4", "xfs")
# A file next to the disk for the output of a command, which is shown if the command fails.
SAID = "said.log"
# linux/fs.h.
_FICLONE = 0x40049409
# MB; only blocks that were written take room.
_SIZE, _ALL = 512, 8192
_PAUSE = 0.003
_TRIES, _PAUSE_OF_TRIES = 30, 0.1


@dataclass(frozen=True)
class Cut:
    """A copy of a disk, as a power cut would leave it.

    Attributes:
        image: the copy.
        ended: whether the command had ended before.
    """

    image: Path
    ended: bool


class Disk:
    """A disk of one kind, and its copies.

    Args:
        outer: folder of the outer file system.
        folder: the disk and its copies are mounted here, one after the other, so that paths stay the same.
        kind: `ext4` or `xfs`.
    """

    def __init__(self, outer, folder, kind):
        self.folder, self.kind = folder, kind
        self._outer = outer
        self._numbers = itertools.count()
        self._random = random.Random(6)
        self._empty = outer / "empty.img"
        _sparse(self._empty, _SIZE)
        _call(f"mkfs.{kind}", "-q", str(self._empty))
        folder.mkdir()

    @contextmanager
    def mounted(self, image):
        """Mounts an image. The file system first repairs it, as when a machine starts after a power cut."""
        # The copies of an xfs have the same identifier, and the kernel lets go of the one before a little later.
        options = "loop,nouuid" if self.kind == "xfs" else "loop"
        _call("mount", "-o", options, str(image), str(self.folder))
        try:
            yield self.folder
        finally:
            _unmount(self.folder)

    def prepared(self, prepare, image=None):
        """Returns the image of a disk, empty or a copy of another one, after a function has written to its folder."""
        made = self._copy(image or self._empty)
        with self.mounted(made) as folder:
            prepare(folder)
            # Unmounting writes nothing while another mount namespace, such as that of a container, has the disk, too.
            _call("sync", "--file-system", str(folder))
        return made

    def run(self, base, start, moments=(), *, codes=(0,), ready=lambda: True):
        """Runs a command on a copy of a disk.

        Another program writes and flushes a file on that disk all the time. So the file system commits the names of
        files that the command has not flushed, as on a busy machine.

        Args:
            base: image of the disk before the command.
            start: starts the command; returns its process.
            moments: seconds after it is ready at which to copy the disk, ascending.
            codes: the exit codes that it may have.
            ready: whether it has come so far that the first moment may be.

        Returns:
            The cuts, the last one right after the command has ended, and the seconds from ready to end.
        """
        image, cuts = self._copy(base), []
        with self.mounted(image) as folder, _busy(folder / "neighbour"):
            with start() as process:
                while not ready() and process.poll() is None:
                    time.sleep(_PAUSE)
                began = time.monotonic()
                for moment in moments:
                    time.sleep(max(0.0, began + moment - time.monotonic()))
                    if process.poll() is not None:
                        break
                    cuts.append(Cut(self._copy(image), process.poll() is not None))
                assert process.wait() in codes, self._said()
            cuts.append(Cut(self._copy(image), True))
            seconds = time.monotonic() - began
        image.unlink()
        return cuts, seconds

    def cuts(self, base, start, seconds, count, *, per_run=10, **options):
        """Yields cuts at random moments, and one after each end of the command; their images are deleted afterwards.

        Args:
            base: image of the disk before the command.
            start: starts the command; returns its process.
            seconds: how long the command takes when it is ready.
            count: how many cuts before the command's end.
            per_run: the most of them that are of one run of the command.
            options: those of `run`.
        """
        while count > 0:
            moments = sorted(self._random.uniform(0, seconds) for _ in range(min(per_run, count)))
            cuts, took = self.run(base, start, moments, **options)
            # The first run of a command may have waited for the server of the forks (prefork.py).
            seconds = min(seconds, took) if len(cuts) == 1 else seconds
            for cut in cuts:
                count -= not cut.ended
                yield cut
                cut.image.unlink()

    def _said(self):
        said = self.folder.with_name(SAID)
        return said.read_text()[-3000:] if said.exists() else ""

    def _copy(self, image):
        made = self._outer / f"{next(self._numbers)}.img"
        with image.open("rb") as source, made.open("wb") as target:
            fcntl.ioctl(target, _FICLONE, source.fileno())
        return made


@contextmanager
def real_disk(kind):
    """Yields an empty `Disk`. Skips the test if there can be none here."""
    for program in ("mkfs.ext4", "mkfs.xfs"):
        if os.geteuid() or not shutil.which(program):
            pytest.skip(f"only root mounts a file system, and {program} makes one (e2fsprogs, xfsprogs)")
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and shutil.disk_usage(memory).free > _ALL << 20 else None
    with tempfile.TemporaryDirectory(prefix="disks-", dir=place) as name:
        image = Path(name, "outer.img")
        _sparse(image, _ALL)
        _call("mkfs.xfs", "-q", "-m", "reflink=1", str(image))
        outer = Path(name, "outer")
        outer.mkdir()
        done = subprocess.run(["mount", "-o", "loop", str(image), str(outer)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no loop device can be mounted here: {done.stderr.strip()}")
        try:
            yield Disk(outer, Path(name, "disk"), kind)
        finally:
            _unmount(outer)


def _sparse(file, megabytes):
    file.touch()
    os.truncate(file, megabytes << 20)


def _call(*command):
    subprocess.run(command, check=True, capture_output=True)


def _unmount(folder):
    # The kernel gives up the loop device of an inner disk a moment after it is unmounted; later if a process in another
    # mount namespace, such as a container, has got the mounts of this machine meanwhile.
    for _ in range(_TRIES):
        if not subprocess.run(["umount", str(folder)], capture_output=True).returncode:
            return
        time.sleep(_PAUSE_OF_TRIES)
    _call("umount", "--lazy", str(folder))


@contextmanager
def _busy(file):
    ended = threading.Event()

    def write():
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
        for number in itertools.count():
            os.pwrite(descriptor, b"%d" % number, 0)
            # `os.fsync` does nothing in the tests (conftest.py). A new name is in the journal in any case.
            os.fdatasync(descriptor)
            if ended.wait(_PAUSE):
                break
        os.close(descriptor)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
