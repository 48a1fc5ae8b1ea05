"""Listings of local files and of objects: keys, refused files, and the names that a pattern matches.

A *key* is the path of an image relative to the folder before the first wildcard: UTF-8, NFC, forward slashes. The
names alone decide which files are listed, and in which order; the file system's order and times have no effect.

Everything here is made for millions of files. `SortedListing` packs the files that it gets, since a hundred thousand
objects take 25 MB. Part of that is never returned to the system: memory that was freed between objects that live on.
`StringArray` takes eight bytes more than the text of each key, and `KeyIndex` finds a million keys in 16 MB.
"""

from __future__ import annotations

import fnmatch
import heapq
import os
import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple, overload

import numpy as np

from shardwright.errors import UsageError

_PACKED_TOGETHER = 8192
EVERYTHING: tuple[str, ...] = ("**", "*")
# Thumbnails, waste baskets and records of folders, which systems put among the files of their users.
_OF_SYSTEMS = frozenset(
    (
        *("@eadir", "#recycle", "#snapshot", "@recycle", "$recycle.bin", "lost+found"),
        *("__macosx", "__pycache__", "thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r"),
    )
)
_WILDCARD = re.compile(r"[*?\[]")


class StringArray(Sequence[str]):
    """An immutable list of texts that keeps them as UTF-8, one after the other.

    A Python text takes about sixty bytes more than its characters, which for a million file names is most of a run's
    memory. Surrogates, which Python uses for bytes that are not UTF-8, are kept as well.

    Args:
        texts: what to keep.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        data = bytearray()
        self._ends = array("Q")
        for text in texts:
            data += text.encode("utf-8", "surrogatepass")
            self._ends.append(len(data))
        self._data = bytes(data)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        ends = self._ends
        place += len(ends) if place < 0 else 0
        if not 0 <= place < len(ends):
            raise IndexError(f"there are {len(ends)} texts")
        begin = ends[place - 1] if place > 0 else 0
        return self._data[begin : ends[place]].decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        data, begin = self._data, 0
        for end in self._ends:
            yield str(data[begin:end], "utf-8", "surrogatepass")
            begin = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"StringArray({list(self)!r})"


class Found(NamedTuple):
    """A file that may become an input.

    Attributes:
        key: its key.
        respelled: whether the key is spelled otherwise than the name.
        name: its name below the root, as the storage spells it.
        size: its bytes.
        pin: its version, empty for a local file.
        checksum: of its bytes, where the store lists one.
    """

    key: str
    respelled: bool
    name: str
    size: int
    pin: str = ""
    checksum: str = ""


class SortedListing:
    """Files that were found, sorted and packed in blocks of some thousands."""

    def __init__(self) -> None:
        self._files: list[Found] = []
        self._packed: list[_Packed] = []

    def __bool__(self) -> bool:
        return bool(self._files or self._packed)

    def append(self, file: Found) -> None:
        """Takes one file."""
        self._files.append(file)
        if len(self._files) == _PACKED_TOGETHER:
            self._files.sort()
            self._packed.append(_Packed.of(self._files))
            self._files.clear()

    def by_key(self) -> Iterator[Found]:
        """Yields all of them."""
        self._files.sort()
        return heapq.merge(*(packed.files() for packed in self._packed), self._files)


class _Packed(NamedTuple):
    """Some files in columns; those of pins and checksums are empty where no file has one."""

    keys: Sequence[str]
    names: Sequence[str]
    sizes: array[int]
    pins: Sequence[str]
    checksums: Sequence[str]

    @staticmethod
    def of(files: Sequence[Found]) -> _Packed:
        keys = StringArray(file.key for file in files)
        return _Packed(
            keys,
            StringArray(file.name for file in files) if any(file.respelled for file in files) else keys,
            array("q", [file.size for file in files]),
            StringArray(file.pin for file in files) if any(file.pin for file in files) else (),
            StringArray(file.checksum for file in files) if any(file.checksum for file in files) else (),
        )

    def files(self) -> Iterator[Found]:
        pins, checksums = self.pins or repeat(""), self.checksums or repeat("")
        # The iterators that replace absent pins and checksums never end.
        for key, name, size, pin, checksum in zip(self.keys, self.names, self.sizes, pins, checksums, strict=False):
            yield Found(key, key != name, name, size, pin, checksum)


class EmptyListing(UsageError):
    """A folder or glob without any file: the path is wrong, or the data has not come yet."""


class Refusal(NamedTuple):
    """Why one input is rejected before it is read.

    Attributes:
        key: its key, or what stands for one.
        code: why, as a word.
        reason: why, as a sentence without absolute paths.
    """

    key: str
    code: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """The files of an input, by key.

    Attributes:
        root: folder the keys start from, absolute.
        keys: keys, sorted by code points.
        names: relative file names as the file system spells them, one per key.
        sizes: bytes, one per key.
        refused: files of the folder that cannot be an input.
        pins: the version of each object that was listed (`storage.object_store`), one per key on a bucket. For
            local files empty, or the states of some (`shardwright.storage.look_at_files`).
        checksums: the listed checksum of each object (`ObjectInfo.checksum`), one per key; empty where the store lists
            none at all.
    """

    root: str
    keys: Sequence[str]
    names: Sequence[str]
    sizes: Sequence[int]
    refused: list[Refusal]
    pins: Sequence[str] = ()
    checksums: Sequence[str] = ()

    def path(self, position: int) -> str:
        """Returns the absolute path of the file at a position."""
        return os.path.join(self.root, self.names[position])

    def pin(self, position: int) -> str:
        """Returns the listed version of the object at a position, or the state of a local file; else empty."""
        return self.pins[position] if self.pins else ""

    def checksum(self, position: int) -> str:
        """Returns the listed checksum of the object at a position, empty where the store lists none."""
        return self.checksums[position] if self.checksums else ""

    def part(self, positions: Sequence[int]) -> Listing:
        """Returns some of the files, in the given order, without refusals."""
        return Listing(
            self.root,
            [self.keys[i] for i in positions],
            [self.names[i] for i in positions],
            [self.sizes[i] for i in positions],
            [],
            tuple(self.pins[i] for i in positions) if self.pins else (),
            [self.checksums[i] for i in positions] if len(self.checksums) else (),
        )

    @staticmethod
    def joined(root: str, files: Sequence[tuple[Listing, int]], refused: Iterable[Refusal] = ()) -> Listing:
        """Returns files of listings of one root, each given as a listing and a position there."""
        sums = [listing.checksum(i) for listing, i in files]
        return Listing(
            root,
            [listing.keys[i] for listing, i in files],
            [listing.names[i] for listing, i in files],
            [listing.sizes[i] for listing, i in files],
            list(refused),
            tuple(listing.pin(i) for listing, i in files) if any(listing.pins for listing, _ in files) else (),
            sums if any(sums) else (),
        )


def make_listing(
    images: str, root: str, pattern: tuple[str, ...], found: SortedListing, refused: list[Refusal]
) -> Listing:
    """Sorts the files that were found; of names that differ only in their spelling, refuses all but one.

    Args:
        images: `input.images`, for messages.
        root: folder the names start from, absolute.
        pattern: what was looked for.
        found: files, in any order.
        refused: files that cannot be inputs, in any order.

    Raises:
        EmptyListing: there are no files at all.
    """
    if not found and not refused:
        problem = "contains no files" if pattern == EVERYTHING else "matches no file"
        raise EmptyListing(f"input.images: {images} {problem}. Check the path.")
    names: dict[int, str] = {}
    sizes, pins, checksums = array("q"), [], []
    twice: list[Refusal] = []

    def kept() -> Iterator[str]:
        before: Found | None = None
        for file in found.by_key():
            if before is not None and before.key == file.key:
                spellings = f"{before.name!a} and {file.name!a}"
                reason = f"another file's name differs only in how Unicode spells it: {spellings}"
                twice.append(Refusal(file.name if file.respelled else file.key, "duplicate_key", reason))
                continue
            if file.respelled:
                names[len(sizes)] = file.name
            sizes.append(file.size)
            pins.append(file.pin)
            checksums.append(file.checksum)
            yield file.key
            before = file

    keys = StringArray(kept())
    return Listing(
        root,
        keys,
        StringArray(names.get(i, key) for i, key in enumerate(keys)) if names else keys,
        sizes,
        sorted([*refused, *twice]),
        tuple(pins) if any(pins) else (),
        StringArray(checksums) if any(checksums) else (),
    )


def is_hidden(name: str) -> bool:
    """Returns whether a file or folder of this name is never listed: hidden, or put there by a system."""
    return name.startswith(".") or name.lower() in _OF_SYSTEMS


def has_wildcard(images: str) -> bool:
    """Returns whether a path is a glob, if there is no folder of that very name."""
    return _WILDCARD.search(images) is not None


def is_several(path: object) -> bool:
    """Returns whether the path of annotations is a glob. A bracket or a brace may be part of a name, or of a span."""
    return isinstance(path, str) and ("*" in path or "?" in path) and "{" not in path


def split_glob(images: str) -> tuple[str, tuple[str, ...]]:
    """Splits a glob into the folder before the first wildcard and the pattern's segments.

    Raises:
        UsageError: it has `..` after a wildcard.
    """
    segments = images.split("/")
    first = next(i for i, segment in enumerate(segments) if has_wildcard(segment))
    pattern = [segment for segment in segments[first:] if segment not in ("", ".")]
    if ".." in pattern:
        raise UsageError(f"input.images: {images} has `..` after a wildcard. Write it without `..`.")
    if pattern[-1] == "**":
        pattern.append("*")
    return "/".join(segments[:first]), tuple(pattern)


def name_lines(text: str) -> list[str]:
    """Returns the lines of a list of names, without empty ones.

    A name may contain characters that `splitlines` takes for the end of a line, such as U+2028, and spaces at its ends.
    """
    lines = text.split("\n" if "\n" in text else "\r")
    return [line for line in (line.removesuffix("\r") for line in lines) if line.strip()]


def key_of(name: str) -> tuple[str, tuple[str, str] | None]:
    """Returns the key of a relative file name, and (code, reason) when that name cannot be a key."""
    if name.isascii():
        return name, None
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        readable = os.fsencode(name).decode("utf-8", "backslashreplace")
        return readable, ("bad_name", "the file's name is not UTF-8; rename it")
    return unicodedata.normalize("NFC", name), None


class Pattern:
    """A glob as a little automaton: a state is the number of segments that are matched so far."""

    def __init__(self, segments: tuple[str, ...]) -> None:
        self._matchers = [None if s == "**" else re.compile(fnmatch.translate(s)) for s in segments]

    def start(self) -> frozenset[int]:
        """Returns the states in the root."""
        return self._closed({0})

    def matches(self, path: str) -> bool:
        """Returns whether a path matches the whole pattern."""
        states = self.start()
        *folders, name = path.split("/")
        for folder in folders:
            states = self.into_folder(states, folder)
        return self.takes_file(states, name)

    def into_folder(self, states: frozenset[int], name: str) -> frozenset[int]:
        """Returns the states in a folder below; none means that nothing in it can match."""
        after = set()
        for state in states:
            matcher = self._matchers[state]
            if matcher is None:
                after.add(state)
            elif state + 1 < len(self._matchers) and matcher.match(name):
                after.add(state + 1)
        return self._closed(after)

    def takes_file(self, states: frozenset[int], name: str) -> bool:
        """Returns whether a file of this name matches the whole pattern."""
        last = self._matchers[-1]
        return len(self._matchers) - 1 in states and last is not None and last.match(name) is not None

    def _closed(self, states: set[int]) -> frozenset[int]:
        for state in sorted(states):
            while self._matchers[state] is None:
                state += 1
                states.add(state)
        return frozenset(states)


class KeyIndex:
    """Finds keys in a list of them by their hashes; a dictionary would take ten times the memory.

    Args:
        keys: the list; no key is in it twice.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        hashes = np.fromiter(map(hash, keys), np.int64, len(keys))
        order = np.argsort(hashes, kind="stable")
        # A binary search in these takes a tenth of the time of one in an array of numpy, or in the keys.
        self._hashes, self._order = array("q", hashes[order].tobytes()), array("q", order.astype(np.int64).tobytes())

    def find(self, key: str) -> int:
        """Returns the position of a key, -1 where it is not in the list."""
        number = hash(key)
        at = bisect_left(self._hashes, number)
        while at < len(self._hashes) and self._hashes[at] == number:
            position = self._order[at]
            if self._keys[position] == key:
                return position
            at += 1
        return -1
