"""A staging folder on an object store: finished files go there, so that any machine can resume the work.

Files are made in a working folder of this machine and uploaded when they are whole; objects appear whole or not at all.
Two machines that stage the same dataset write the same bytes twice, which costs time and harms nothing.

There the locks of a machine have no effect. Several runs of one dataset, or of one training, may work in such a folder
concurrently, and share finished files. But the run that finishes first must not delete the folder while another one
uses it. So every run keeps a *lease*, an object that it replaces by one of the next number every few seconds. A run
deletes the folder only if no other lease changes; the last run does. A lease that does not change for
`silent_seconds()` is that of a killed run. No clock is compared with another machine's.

Before it deletes, a run creates a mark that only one run can create, and then looks for leases. A run that begins
writes its lease first, and then looks for the mark. So at least one of the two sees the other.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from shardwright.errors import ShardwrightError, UsageError
from shardwright.storage import buckets, open_file, readers
from shardwright.storage.durable import flush, flush_tree
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.own_names import make_own_folder
from shardwright.storage.parallel import map_threads
from shardwright.storage.paths import is_remote, split_url

# Seconds without a change after which a run counts as dead: for tests, and for stores that are very slow.
SILENT_VARIABLE = "SHARDWRIGHT_SILENT_SECONDS"
_SILENT_SECONDS, _BEATS = 60.0, 6
_LEASES, _MARK = "leases/", "removing"
_LEAST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
# Deleting takes no longer; a run that leaves its mark for so long was killed.
_SILENT_REMOVALS = 5
_held: dict[str, _Lease] = {}


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


def silent_seconds() -> float:
    """Returns how long a run may be silent.

    Raises:
        UsageError: the variable is not a number of seconds.
    """
    text = os.environ.get(SILENT_VARIABLE, "") or str(_SILENT_SECONDS)
    with suppress(ValueError):
        if 0 <= float(text) < threading.TIMEOUT_MAX:
            return float(text)
    raise UsageError(f"{SILENT_VARIABLE}: {text!r} is not a number of seconds. Give e.g. 60, or unset it.")


@contextmanager
def leased(url: str) -> Iterator[None]:
    """Keeps a lease on a staging folder for the block; first waits while another run deletes the folder.

    Args:
        url: the folder.
    """
    lease = _held[url] = _Lease(url)
    try:
        while _wait_for_removal(url):
            # The other run has deleted this lease as well: the next one to remove could not see it.
            lease.renew()
        lease.look()
        yield
    finally:
        _end(url)


def remove_unless_leased(url: str) -> bool:
    """Deletes a staging folder, and ends this run's lease on it, if it has one.

    Returns:
        True if the folder is deleted. It is not while another run works there; that run will delete it.
    """
    if url not in _held and next(buckets.list_objects(f"{url}/"), None) is None:
        return True
    return _remove(url, _end(url) or _Lease(url, silent=True))


def remove_all(urls: Sequence[str]) -> None:
    """Deletes staging folders: none of them where another run is active in one when it is called.

    Raises:
        UsageError: a run of any machine is at work in one of them.
    """
    leases = [_Lease(url, silent=True) for url in urls]
    # It takes a minute to detect that a run was killed: wait for all of them concurrently.
    busy = map_threads(_Lease.others, leases, buckets.CONNECTIONS)
    held = [url for url, others in zip(urls, busy, strict=True) if others]
    # The same lease objects, so that the wait is not repeated.
    held = held or [url for url, lease in zip(urls, leases, strict=True) if not _remove(url, lease)]
    if held:
        raise UsageError(f"{held[0]}: another run is active there. Wait for it or end it.")


def _remove(url: str, lease: _Lease) -> bool:
    """Deletes a folder if no other run is at work there; others do not see `lease`."""
    if lease.others():
        return False
    mark = f"{url}/{_MARK}"
    while not buckets.create(mark, uuid.uuid4().bytes):
        _wait_for_removal(url)
    try:
        if lease.look():
            return False
        scheme, bucket, _ = split_url(url)
        objects = (f"{scheme}://{bucket}/{info.name}" for info in buckets.list_objects(f"{url}/"))
        list(map_threads(buckets.delete, (each for each in objects if each != mark), readers(url)))
        return True
    finally:
        buckets.delete(mark)


class _Lease:
    """This run's lease on a folder, and the leases of others that it has seen."""

    def __init__(self, url: str, silent: bool = False) -> None:
        self._url = url
        self._own = uuid.uuid4().hex
        self._number = 0
        # Its objects that may exist: several after the store was unavailable for a while.
        self._written: list[str] = []
        self._seen: dict[str, float] = {}
        self._over = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._keep, args=(silent_seconds() / _BEATS,), daemon=True)
        if not silent:
            self._write()
            if silent_seconds():
                self._thread.start()

    def look(self) -> bool:
        """Lists the others' leases; returns whether one has changed, or come, since the last call."""
        start = len(split_url(self._url)[2]) + 1 + len(_LEASES)
        names = [info.name[start:] for info in buckets.list_objects(f"{self._url}/{_LEASES}")]
        others = [name for name in names if not name.startswith(self._own)]
        new = [name for name in others if name not in self._seen]
        now = time.monotonic()
        self._seen = {name: self._seen.get(name, now) for name in others}
        return bool(new)

    def others(self) -> bool:
        """Returns whether another run is active, that is, whether its lease changes during this call."""
        self.look()
        while self._seen and time.monotonic() - max(self._seen.values()) < silent_seconds():
            time.sleep(min(_LONGEST_PAUSE, silent_seconds() / _BEATS + _LEAST_PAUSE))
            if self.look():
                return True
        return False

    def end(self) -> None:
        """Ends the lease."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        # A lease that stays counts as that of a killed run.
        with suppress(ShardwrightError, OSError):
            self._delete(0)

    def _write(self) -> None:
        self._written.append(f"{self._url}/{_LEASES}{self._own}-{self._number}")
        buckets.create(self._written[-1], b"")

    def _delete(self, left: int) -> None:
        """Deletes all but the last ones that were written."""
        while len(self._written) > left:
            buckets.delete(self._written[0])
            del self._written[0]

    def renew(self) -> None:
        """Puts the lease of the next number in its place."""
        with self._writing:
            self._number += 1
            self._write()
            self._delete(1)

    def _keep(self, pause: float) -> None:
        while not self._over.wait(max(pause, _LEAST_PAUSE)):
            with suppress(ShardwrightError, OSError):
                self.renew()


def _end(url: str) -> _Lease | None:
    lease = _held.pop(url, None)
    if lease is not None:
        lease.end()
    return lease


def _wait_for_removal(url: str) -> bool:
    """Waits until no other run deletes there; deletes the mark of a run that was killed meanwhile.

    Returns:
        True if another run did.
    """
    begin, pin = time.monotonic(), ""
    while (found := buckets.stat(f"{url}/{_MARK}")) is not None:
        if found.pin != pin:
            begin, pin = time.monotonic(), found.pin
        if time.monotonic() - begin >= _SILENT_REMOVALS * silent_seconds():
            buckets.delete(f"{url}/{_MARK}")
            break
        time.sleep(min(_LONGEST_PAUSE, silent_seconds() / _BEATS + _LEAST_PAUSE))
    return bool(pin)
