"""Who is at work in a staging folder on a bucket, where no lock of a machine reaches.

Two runs of one dataset, or of one training, may be at work there at a time: they write the same bytes, and share what
is finished. What must not happen is that the one which is done first clears up under the other. So whoever works there
keeps a *lease*, an object that it replaces by one of the next number every few seconds, and only who finds no other
lease that changes removes the folder. The last one does. A lease that stays as it is for `silent_seconds()` is that of
a run that was killed; no clock is compared with another machine's.

Between looking for leases and deleting, a mark that only one can create keeps others from beginning: they write their
lease first and look for the mark then, and who deletes does both the other way round, so one of the two sees the other.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from shardwright.errors import ShardwrightError, UsageError
from shardwright.storage import buckets, readers
from shardwright.storage.objects import split_url
from shardwright.storage.parallel import map_threads

# How long a lease stays as it is before its run counts as dead: for tests, and for stores that are very slow.
SILENT_VARIABLE = "SHARDWRIGHT_SILENT_SECONDS"
_SILENT_SECONDS, _BEATS = 60.0, 6
_LEASES, _MARK = "leases/", "removing"
_LEAST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
# Deleting takes no longer; whoever left a mark for so long was killed.
_SILENT_REMOVALS = 5

_held: dict[str, _Lease] = {}


def silent_seconds() -> float:
    """How long a run may be silent.

    Raises:
        UsageError: the variable says no number of seconds.
    """
    text = os.environ.get(SILENT_VARIABLE, "") or str(_SILENT_SECONDS)
    with suppress(ValueError):
        if 0 <= float(text) < threading.TIMEOUT_MAX:
            return float(text)
    raise UsageError(f"{SILENT_VARIABLE}: {text!r} is no number of seconds. Give e.g. 60, or unset it.")


@contextmanager
def leased(url: str) -> Iterator[None]:
    """Keeps a lease on a staging folder for the block; waits first while another run removes what is there.

    Args:
        url: the folder.
    """
    lease = _held[url] = _Lease(url)
    try:
        while _wait_for_removal(url):
            # Whoever removed has deleted this lease as well: the next one to remove could not know of it.
            lease.renew()
        lease.look()
        yield
    finally:
        _end(url)


def remove_unless_leased(url: str) -> bool:
    """Deletes a staging folder, and gives up this run's lease on it, if it has one.

    Returns:
        Whether it is gone; not where another run is at work there, which will do it.
    """
    if url not in _held and next(buckets.list_objects(f"{url}/"), None) is None:
        return True
    return _remove(url, _end(url) or _Lease(url, silent=True))


def remove_all(urls: Sequence[str]) -> None:
    """Deletes staging folders: none of them where another run is at work in one when it is called.

    Raises:
        UsageError: a run of any machine is at work in one of them.
    """
    leases = [_Lease(url, silent=True) for url in urls]
    # That a run was killed shows after a minute, which is waited for once.
    busy = map_threads(_Lease.others, leases, buckets.CONNECTIONS)
    held = [url for url, others in zip(urls, busy, strict=True) if others]
    # The same lease objects: what they have seen is not waited for again.
    held = held or [url for url, lease in zip(urls, leases, strict=True) if not _remove(url, lease)]
    if held:
        raise UsageError(f"{held[0]}: another run is at work there. Wait for it or end it.")


def _remove(url: str, lease: _Lease) -> bool:
    """Deletes a folder where nobody else is at work; `lease` is none that others see."""
    if lease.others():
        return False
    mark = f"{url}/{_MARK}"
    while not buckets.create(mark, uuid.uuid4().bytes):
        _wait_for_removal(url)
    try:
        if lease.look():
            return False
        scheme, bucket, _ = split_url(url)
        places = (f"{scheme}://{bucket}/{info.name}" for info in buckets.list_objects(f"{url}/"))
        list(map_threads(buckets.delete, (place for place in places if place != mark), readers(url)))
        return True
    finally:
        buckets.delete(mark)


class _Lease:
    """This run's lease on a folder, and what it has seen of others'."""

    def __init__(self, url: str, silent: bool = False) -> None:
        self._url = url
        self._own = uuid.uuid4().hex
        self._number = 0
        # What may be there of it: more than one where the store was away for a while.
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
        """Takes note of the others' leases; says whether one has changed, or come, since the last look."""
        start = len(split_url(self._url)[2]) + 1 + len(_LEASES)
        names = [info.name[start:] for info in buckets.list_objects(f"{self._url}/{_LEASES}")]
        others = [name for name in names if not name.startswith(self._own)]
        new = [name for name in others if name not in self._seen]
        now = time.monotonic()
        self._seen = {name: self._seen.get(name, now) for name in others}
        return bool(new)

    def others(self) -> bool:
        """Whether another run is at work: its lease changes while one looks."""
        self.look()
        while self._seen and time.monotonic() - max(self._seen.values()) < silent_seconds():
            time.sleep(min(_LONGEST_PAUSE, silent_seconds() / _BEATS + _LEAST_PAUSE))
            if self.look():
                return True
        return False

    def end(self) -> None:
        """Gives it up."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        # One that stays counts as that of a killed run.
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
    """Waits until no other run deletes there; one that was killed at it is not waited for, its mark goes.

    Returns:
        Whether one did.
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
