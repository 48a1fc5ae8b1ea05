"""Objects by their URL, `gs://bucket/name` or `s3://bucket/name`, with retries.

Every call is repeated a bounded number of times, after pauses that grow and have a random part.

One flat folder of a bucket is listed in several places concurrently (`NameRange`). A store returns a page of a thousand
names, and the next page only with the token of the page before. It can also begin after any name. So the names that are
left are cut in the middle when a page shows that there are more. The middle is an estimate: of two names as numbers,
whose digits are the characters that names had so far. A bad estimate costs one request, and the next one is for half of
what is left.
"""

from __future__ import annotations

import io
import os
import random
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache, partial
from typing import IO, Any, TypeVar

from shardwright.errors import CheckFailed, StorageError, UsageError
from shardwright.running.extras import missing_extra
from shardwright.storage.object_store import Changed, Missing, ObjectInfo, ObjectStore, Transient
from shardwright.storage.paths import GCS, SCHEMES, scheme_of, split_url

_Out = TypeVar("_Out")
# Concurrent readers: an object's cost is the wait for its first byte.
CONNECTIONS = 64
# Concurrent listings of folders, and the files next to these for which each takes a request.
_LISTINGS, _FEW = 16, 16
# A table or a shard is read in pieces of this size.
_PIECE = 4 << 20
# Characters of a name that are one number.
_DIGITS = 8
# Pages of a folder that is worth several requests.
_MANY = 3


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
        raise UsageError(f"{'/'.join(url.split('/')[:3])}: there is no such bucket. Check the name.") from None


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


@dataclass(eq=False)
class NameRange:
    """The names that begin with a prefix, are after one name and not after another one.

    Attributes:
        prefix: what they begin with.
        start: the listing begins after this name; empty for the first of all.
        stop: the last name; `None` where there is no limit.
        token: of the next page, `None` for the first one.
        last: the last name so far.
        letters: the characters after the prefix so far.
        pages: how many were taken, with those of the range that it was a part of.
    """

    prefix: str
    start: str = ""
    stop: str | None = None
    token: str | None = None
    last: str = ""
    letters: set[str] = field(default_factory=set)
    pages: int = 0

    def take(self, found: Sequence[ObjectInfo], token: str | None) -> list[ObjectInfo]:
        """Takes a page and the token of the next one; returns the objects that belong to the range."""
        self.token = token
        self.pages += 1
        if found:
            self.last = found[-1].name
            # Those of the first and the last name are enough for an estimate.
            self.letters.update(found[0].name[len(self.prefix) :], self.last[len(self.prefix) :])
        if self.stop is None or self.last < self.stop:
            return [info for info in found if info.name > self.start]
        self.token = None
        return [info for info in found if self.start < info.name <= self.stop]

    def split(self) -> NameRange | None:
        """Cuts off the second half of the names that are left, of many; returns it, `None` where there is none."""
        middle = middle_name(self.last, self.stop, self.prefix, self.letters) if self.pages >= _MANY else None
        if middle is None:
            return None
        rest = NameRange(self.prefix, middle, self.stop, last=middle, letters=set(self.letters), pages=self.pages)
        self.stop = middle
        return rest


def middle_name(low: str, high: str | None, prefix: str, letters: set[str]) -> str | None:
    """Returns a name between two others, about in the middle; `None` if there is none that is shorter or as long.

    Args:
        low: the lower name.
        high: the higher one; `None` for the end of all names with the prefix.
        prefix: what both begin with.
        letters: the characters that names have.
    """
    alphabet = sorted(letters)
    if not low.startswith(prefix) or len(alphabet) < 2:
        return None
    same, last = len(prefix), len(alphabet) ** _DIGITS
    if high is not None:
        same = next(i for i in range(len(high)) if high[i] != low[i : i + 1])
        last = _number(high[same:], alphabet)
    first = _number(low[same:], alphabet)
    digits, number = [], (first + last) // 2
    for _ in range(_DIGITS):
        number, digit = divmod(number, len(alphabet))
        digits.append(alphabet[digit])
    middle = low[:same] + "".join(reversed(digits)).rstrip(alphabet[0])
    return middle if low < middle and (high is None or middle < high) else None


def _number(text: str, alphabet: Sequence[str]) -> int:
    number = 0
    for place in range(_DIGITS):
        digit = min(bisect_left(alphabet, text[place]), len(alphabet) - 1) if place < len(text) else 0
        number = number * len(alphabet) + digit
    return number
