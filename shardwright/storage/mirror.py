"""A staging folder on an object store: finished files go there, so that any machine can resume the work.

Files are made in a working folder of this machine and uploaded when they are whole; objects appear whole or not at all.
Two machines that stage the same dataset write the same bytes twice, which costs time and harms nothing; the last one
deletes the folder (`shardwright.storage.leases`).
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shardwright.errors import UsageError
from shardwright.storage import buckets, open_file, readers
from shardwright.storage.durable import flush, flush_tree
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.own_names import make_own_folder
from shardwright.storage.parallel import map_threads
from shardwright.storage.paths import is_remote, split_url


def working_folder(url: str) -> Path:
    """Returns this machine's folder for a staging folder on a bucket, the same for every run of a user; makes it.

    Raises:
        UsageError: it is another user's, a link, or others may write into it.
    """
    folder = Path(tempfile.gettempdir(), f"shardwright-{os.getuid()}", fingerprint(url)[:32])
    for place in (folder.parent, folder):
        make_own_folder(place, 0o700)
        if place.lstat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise UsageError(f"{place}: other users may write there. Run `chmod go-w {place}`, or set TMPDIR.")
    return folder


def local_folder(staging_root: str) -> str:
    """Returns a staging root that is a folder of this machine: itself, or the working folder of one on a bucket."""
    return str(working_folder(staging_root)) if is_remote(staging_root) else staging_root


def put_folder(folder: Path, target: str) -> None:
    """Copies all files of a folder of this machine into another one, or to a bucket.

    Args:
        folder: the folder to copy.
        target: a folder, there or not, or its URL.
    """
    if not is_remote(target):
        shutil.copytree(folder, target, dirs_exist_ok=True)
        flush_tree(target)
        flush([Path(target).absolute().parent])
        return
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    url = target.rstrip("/")
    list(map_threads(lambda file: buckets.upload(f"{url}/{file.relative_to(folder).as_posix()}", str(file)), files))


@dataclass(frozen=True)
class Mirror:
    """The part of a staging folder that is on a bucket.

    Attributes:
        url: its URL.
    """

    url: str

    def read(self, name: str) -> bytes:
        """Returns the bytes of a staged file. `OSError` when it is not there."""
        return buckets.read(self._at(name))

    def size(self, name: str) -> int | None:
        """Returns the size of a staged file, `None` when it is not there."""
        info = buckets.stat(self._at(name))
        return None if info is None else info.size

    def sizes(self, start: str = "") -> dict[str, int]:
        """Returns name -> size of the files whose names begin with `start`, by one request for a thousand."""
        below = len(split_url(self.url)[2]) + 1
        return {info.name[below:]: info.size for info in buckets.list_objects(self._at(start))}

    def push(self, folder: Path, names: Sequence[str]) -> None:
        """Uploads files of the working folder."""
        list(map_threads(lambda name: buckets.upload(self._at(name), str(folder / name)), names))

    def move(self, folder: Path, names: Sequence[str]) -> None:
        """Uploads files of the working folder, which are kept on the bucket only."""
        self.push(folder, names)
        for name in names:
            # Another attempt at the same shard may have taken it away.
            (folder / name).unlink(missing_ok=True)

    def fetch(self, names: Sequence[str], folder: Path) -> list[Path]:
        """Downloads small files into a folder of this machine, each under a number; returns their paths, in order."""

        def one(numbered: tuple[int, str]) -> Path:
            number, name = numbered
            target = folder / f"fetched-{number:06d}"
            target.write_bytes(self.read(name))
            return target

        return list(map_threads(one, enumerate(names), readers(self.url)))

    def place(self, name: str, target: Path) -> None:
        """Downloads a file."""
        with open_file(self._at(name)) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)

    def send(self, name: str, url: str) -> None:
        """Copies a file to another place on an object store: inside the store where both are on the same one."""
        if split_url(self.url)[0] == split_url(url)[0]:
            buckets.copy(self._at(name), url)
            return
        with tempfile.TemporaryDirectory() as folder:
            self.place(name, Path(folder, "shard"))
            buckets.upload(url, str(Path(folder, "shard")))

    def delete(self, name: str) -> None:
        """Deletes a staged file."""
        buckets.delete(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self.url}/{name}"
