"""Objects by their URL, `gs://bucket/name` or `s3://bucket/name`, with retries.

Every call is repeated a bounded number of times, after pauses that grow and have a random part.
"""

from __future__ import annotations

import io
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from typing import IO, Any, TypeVar

from shardwright.errors import CheckFailed, StorageError, UsageError
from shardwright.running.extras import missing_extra
from shardwright.storage.name_ranges import NameRange
from shardwright.storage.object_store import Changed, Missing, ObjectInfo, ObjectStore, Transient
from shardwright.storage.paths import GCS, SCHEMES, scheme_of, split_url

_Out = TypeVar("_Out")


@dataclass(frozen=True)
class Retries:
    """How often and after which pauses a call is made again.

    The n-th pause is between half of and the whole of `first_pause * 2**n`, at most `longest_pause`. So many readers
    that were refused together do not return together.

    Attributes:
        attempts: calls in all.
        first_pause: seconds.
        longest_pause: seconds.
        sleep: waits for seconds.
        chance: returns a random number from 0 to 1.
    """

    attempts: int = 7
    first_pause: float = 0.25
    longest_pause: float = 8.0
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def call(self, name: str, function: Callable[[], _Out]) -> _Out:
        """Calls a function until it does not raise `Transient`.

        Args:
            name: the object, for the message.
            function: does one attempt.

        Raises:
            StorageError: the last attempt failed too.
        """
        for attempt in range(self.attempts - 1):
            try:
                return function()
            except Transient:
                pause = min(self.longest_pause, self.first_pause * 2**attempt)
                self.sleep(pause * (0.5 + 0.5 * self.chance()))
        try:
            return function()
        except Transient as error:
            raise StorageError(
                f"{name}: the store failed in {self.attempts} attempts; the last one: {error}. Finished work is kept. "
                "Run the command again when the store works."
            ) from None


# Concurrent readers: an object's cost is the wait for its first byte.
CONNECTIONS = 64

# Concurrent listings of folders, and the files next to these for which each takes a request.
_LISTINGS, _FEW = 16, 16

# A table or a shard is read in pieces of this size.
_PIECE = 4 << 20

_RETRIES = Retries()


def list_objects(url: str) -> Iterator[ObjectInfo]:
    """Yields the objects whose URL begins with `url`, page by page."""
    store, prefix = _locate(url)
    yield from _pages(url, lambda page: store.list_page(prefix, page))


def list_tree(url: str) -> Iterator[ObjectInfo]:
    """Yields the objects whose URL begins with `url`, in any order; lists several parts of them concurrently.

    A listing as such takes as long as all of its pages one after the other. So the folders directly below the URL are
    listed concurrently if the first page of names shows all of them. If a page is not the last one, the names that are
    left are cut in two (`name_ranges`).

    Args:
        url: a folder, with a slash at its end.
    """
    store, prefix = _locate(url)
    names, token = _RETRIES.call(url, lambda: store.names_page(prefix, None))
    folders = [name for name in names if name.endswith("/") and name != prefix]
    files = [name for name in names if not name.endswith("/") or name == prefix]
    ranges = [NameRange(prefix)]
    if token is None and len(folders) > 1 and len(files) <= _FEW:
        # Other names begin with that of a file, too, and it comes first of all.
        ranges = [*map(NameRange, folders), *(NameRange(name, stop=name) for name in files)]

    def page_of(part: NameRange) -> tuple[list[ObjectInfo], str | None]:
        return _RETRIES.call(url, lambda: store.list_page(part.prefix, part.token, part.start))

    running: dict[Future[tuple[list[ObjectInfo], str | None]], NameRange] = {}
    with ThreadPoolExecutor(_LISTINGS) as pool:
        while ranges or running:
            while ranges and len(running) < _LISTINGS:
                part = ranges.pop(0)
                running[pool.submit(page_of, part)] = part
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for page in done:
                part = running.pop(page)
                found = part.take(*page.result())
                if part.token is not None:
                    rest = part.split() if len(running) + len(ranges) < _LISTINGS - 1 else None
                    ranges += [part] if rest is None else [part, rest]
                yield from found


def list_names(url: str) -> Iterator[str]:
    """Yields the names of the objects whose URL begins with `url`; for those in a folder below it, only the folder."""
    store, prefix = _locate(url)
    yield from _pages(url, lambda page: store.names_page(prefix, page))


def _pages(url: str, read: Callable[[str | None], tuple[list[_Out], str | None]]) -> Iterator[_Out]:
    """Yields the items of all pages; requests the next page while the caller works with one."""
    with ThreadPoolExecutor(1) as ahead:
        page = ahead.submit(_RETRIES.call, url, partial(read, None))
        while True:
            found, token = page.result()
            # A caller that only checks whether there is anything takes no more than the first item.
            yield from found[:1]
            if token is not None:
                page = ahead.submit(_RETRIES.call, url, partial(read, token))
            yield from found[1:]
            if token is None:
                return


def stat(url: str) -> ObjectInfo | None:
    """Returns an object's size and pin, `None` when there is none."""
    if not split_url(url)[2]:
        return None
    try:
        return _call(url, lambda store, name: store.stat(name))
    except Missing:
        return None


def read(url: str, pin: str = "", start: int = 0, stop: int | None = None) -> bytes:
    """Returns the bytes of an object from `start` to `stop`, fewer where it ends before.

    Raises:
        CheckFailed: it is not the version that `pin` names any more.
        OSError: there is no such object, or it cannot be read.
    """
    try:
        return _call(url, lambda store, name: store.read(name, pin, start, stop))
    except Missing:
        if not pin:
            raise FileNotFoundError(f"{url}: there is no such object") from None
        raise _not_as_listed(url) from None
    except Changed:
        raise _not_as_listed(url) from None


def create(url: str, data: bytes) -> bool:
    """Writes a new object, whole or not at all; returns whether it has these bytes now.

    A lost answer is not a failure: an object that exists already counts if it has the same bytes.
    """

    def attempt(store: ObjectStore, name: str) -> bool:
        try:
            store.create(name, data)
        except Changed:
            try:
                return store.read(name, "", 0, None) == data
            except Missing:
                raise Transient("it was deleted meanwhile") from None
        return True

    try:
        return _call(url, attempt)
    except Missing:
        raise _no_bucket(url) from None


def upload(url: str, path: str) -> None:
    """Writes an object from a local file."""
    _call(url, lambda store, name: store.upload(name, path))


def copy(source: str, url: str) -> None:
    """Copies an object inside its store.

    Raises:
        CheckFailed: the source is gone.
    """
    _, bucket, origin = split_url(source)
    try:
        _call(url, lambda store, name: store.copy(bucket, origin, name))
    except Missing:
        raise CheckFailed(
            f"{source}: was deleted, or the bucket of {url} does not exist. Check the bucket, and run it again."
        ) from None


def delete(url: str) -> None:
    """Deletes an object, if it is there."""
    _call(url, lambda store, name: store.delete(name))


def open_object(url: str, pin: str = "") -> IO[bytes]:
    """Opens one version of an object for reading, in pieces.

    Raises:
        CheckFailed: it is not the version that `pin` names any more.
        FileNotFoundError: there is no such object.
    """
    info = stat(url)
    if pin and (info is None or info.pin != pin):
        raise _not_as_listed(url)
    if info is None:
        raise FileNotFoundError(f"{url}: there is no such object")
    return io.BufferedReader(_ObjectReader(url, info), _PIECE)


class _ObjectReader(io.RawIOBase):
    """An object as a seekable raw stream."""

    def __init__(self, url: str, info: ObjectInfo) -> None:
        self.name = url
        self._url = url
        self._info = info
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._info.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        # The inherited one reads in steps of 8 KB, each a request.
        return b"".join(iter(lambda: self._read(_PIECE), b""))

    def _read(self, size: int) -> bytes:
        stop = min(self._at + size, self._info.size)
        if stop <= self._at:
            return b""
        data = read(self._url, self._info.pin, self._at, stop)
        self._at = stop
        return data


def _call(url: str, function: Callable[[ObjectStore, str], _Out]) -> _Out:
    store, name = _locate(url)
    return _RETRIES.call(url, lambda: function(store, name))


def _locate(url: str) -> tuple[ObjectStore, str]:
    scheme, bucket, name = split_url(url)
    if scheme_of(url) is None:
        known = " or ".join(f"{scheme.prefix}bucket/..." for scheme in SCHEMES)
        raise UsageError(f"{url}: {scheme}:// is not known. Use a local path, {known}")
    if not bucket:
        raise UsageError(f"{url}: does not name a bucket. Write {scheme}://bucket/...")
    try:
        return _RETRIES.call(url, lambda: _store(scheme, bucket)), name
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None


@cache
def _store(scheme: str, bucket: str) -> ObjectStore:
    # Each client is imported when it is needed: neither is light, and each belongs to an extra.
    if scheme == GCS.name:
        from shardwright.storage.gcs import GcsStore

        return GcsStore(bucket, CONNECTIONS)
    from shardwright.storage.s3 import S3Store

    return S3Store(bucket, CONNECTIONS)


# Two processes must not use the same connections.
os.register_at_fork(after_in_child=_store.cache_clear)


def _not_as_listed(url: str) -> CheckFailed:
    return CheckFailed(f"{url}: has been changed or deleted since the run listed it. Run it again.")


def _no_bucket(url: str) -> UsageError:
    scheme, bucket, _ = split_url(url)
    return UsageError(f"{scheme}://{bucket}: there is no such bucket. Check the name.")
