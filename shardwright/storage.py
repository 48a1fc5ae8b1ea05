"""The only module that opens input paths: listing, reading and hashing of images and tables on the local file system.

A *key* is the path of an image relative to the folder before the first wildcard: UTF-8, NFC, forward slashes. Names
alone decide what is listed and in which order; neither the file system's order nor times play a part.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import stat
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, NamedTuple, TypeVar

from shardwright.errors import UsageError

_WILDCARD = re.compile(r"[*?\[]")
_SPAN = re.compile(r"\{(SPAN|VERSION|YYYY|MM|DD)\b")
_EVERYTHING: tuple[str, ...] = ("**", "*")
_THREADS = 8
_CHUNK = 1 << 20

_In = TypeVar("_In")
_Out = TypeVar("_Out")


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
        refused: what lies there but cannot be an input.
    """

    root: str
    keys: list[str]
    names: list[str]
    sizes: list[int]
    refused: list[Refusal]

    def path(self, position: int) -> str:
        """Absolute path of the file at a position."""
        return os.path.join(self.root, self.names[position])


def list_inputs(images: str, leave_out: str | None = None) -> Listing:
    """Lists a folder (with all folders in it) or a glob (`**` crosses folders).

    Hidden files are no inputs. A symbolic link counts when it leads to a file below the same root; links to folders are
    not followed, so nothing outside the root is ever read.

    Args:
        images: absolute folder or glob.
        leave_out: absolute path of a file that is no input though it may lie there: the table of labels.

    Raises:
        UsageError: the folder is missing or empty, the glob matches nothing, or the path is of a kind that this version
            does not read.
    """
    _refuse_remote("input.images", images)
    root, pattern = (images, _EVERYTHING) if os.path.isdir(images) else _split_glob(images)
    found, refused = _walk(root, pattern, os.path.realpath(leave_out) if leave_out else None)
    if not found and not refused:
        what = "holds no files" if pattern == _EVERYTHING else "matches no file"
        raise UsageError(f"input.images: {images} {what}. Check the path.")
    found.sort()
    keys: list[str] = []
    names: list[str] = []
    sizes: list[int] = []
    for key, respelled, name, size in found:
        if keys and keys[-1] == key:
            reason = f"another file's name differs only in how Unicode spells it: {names[-1]!a} beside {name!a}"
            refused.append(Refusal(name if respelled else key, "duplicate_key", reason))
            continue
        keys.append(key)
        names.append(name)
        sizes.append(size)
    return Listing(os.path.abspath(root), keys, names, sizes, sorted(refused))


def open_table(path: str) -> IO[str]:
    """Opens a CSV as UTF-8 text without a byte-order mark, line ends as they are.

    Raises:
        UsageError: it is missing, no file, or cannot be opened.
    """
    _refuse_remote("input.labels.path", path)
    try:
        return open(path, encoding="utf-8-sig", newline="")
    except FileNotFoundError:
        raise UsageError(f"input.labels.path: {path} does not exist. Check the path.") from None
    except IsADirectoryError:
        raise UsageError(f"input.labels.path: {path} is a folder. Give a CSV file.") from None
    except OSError as error:
        raise UsageError(f"input.labels.path: {path} cannot be opened ({error.strerror}).") from None


def read_bytes(path: str) -> bytes:
    """A whole file. `OSError` when it cannot be read."""
    with open(path, "rb") as file:
        return file.read()


def read_start(path: str, size: int) -> bytes:
    """At most the first `size` bytes of a file. `OSError` when it cannot be read."""
    with open(path, "rb") as file:
        return file.read(size)


def hash_file(path: str) -> bytes | None:
    """SHA-256 of a file's bytes, or `None` when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return None
    return digest.digest()


def in_parallel(function: Callable[[_In], _Out], items: Iterable[_In], threads: int = _THREADS) -> Iterator[_Out]:
    """`map` with several calls in flight; results come in order, and only a few of them wait at a time."""
    waiting: deque[Future[_Out]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _refuse_remote(option: str, path: str) -> None:
    if "://" in path:
        raise UsageError(f"{option}: {path} is on a bucket, which is not in this version. Copy it to a local folder.")


def _split_glob(images: str) -> tuple[str, tuple[str, ...]]:
    if _SPAN.search(images):
        raise UsageError(
            f"input.images: {images} holds a span or version, which is not in this version. Give a folder."
        )
    if not _WILDCARD.search(images):
        if os.path.exists(images):
            raise UsageError(f"input.images: {images} is a file. Give the folder it lies in, or a glob.")
        raise UsageError(f"input.images: {images} does not exist. Check the path.")
    segments = images.split("/")
    first = next(i for i, segment in enumerate(segments) if _WILDCARD.search(segment))
    root = "/".join(segments[:first]) or "/"
    pattern = [segment for segment in segments[first:] if segment not in ("", ".")]
    if ".." in pattern:
        raise UsageError(f"input.images: {images} goes up by `..` after a wildcard. Write it without `..`.")
    if not os.path.isdir(root):
        raise UsageError(f"input.images: the folder {root} of {images} does not exist. Check the path.")
    if pattern[-1] == "**":
        pattern.append("*")
    return root, tuple(pattern)


class _Pattern:
    """A glob as a little automaton: a state is the number of segments that are matched so far."""

    def __init__(self, segments: tuple[str, ...]) -> None:
        self._matchers = [None if s == "**" else re.compile(fnmatch.translate(s)) for s in segments]

    def start(self) -> frozenset[int]:
        return self._closed({0})

    def into_folder(self, states: frozenset[int], name: str) -> frozenset[int]:
        after = set()
        for state in states:
            matcher = self._matchers[state]
            if matcher is None:
                after.add(state)
            elif state + 1 < len(self._matchers) and matcher.match(name):
                after.add(state + 1)
        return self._closed(after)

    def takes_file(self, states: frozenset[int], name: str) -> bool:
        last = self._matchers[-1]
        return len(self._matchers) - 1 in states and last is not None and last.match(name) is not None

    def _closed(self, states: set[int]) -> frozenset[int]:
        for state in sorted(states):
            while self._matchers[state] is None:
                state += 1
                states.add(state)
        return frozenset(states)


_Found = tuple[str, bool, str, int]


def _walk(root: str, segments: tuple[str, ...], leave_out: str | None) -> tuple[list[_Found], list[Refusal]]:
    """Files as (key, whether the name is spelled otherwise, name, size), and what is refused."""
    pattern = _Pattern(segments)
    real_root = os.path.join(os.path.realpath(root), "")
    found: list[_Found] = []
    refused: list[Refusal] = []
    folders = [("", pattern.start())]
    while folders:
        folder, states = folders.pop()
        for entry in _entries(os.path.join(root, folder)):
            if entry.name.startswith("."):
                continue
            name = os.path.join(folder, entry.name)
            if entry.is_dir(follow_symlinks=False):
                below = pattern.into_folder(states, entry.name)
                if below:
                    folders.append((name, below))
            elif pattern.takes_file(states, entry.name):
                key, problem = _key_of(name)
                problem = problem or _problem_of(entry, real_root)
                if problem:
                    refused.append(Refusal(key, *problem))
                elif leave_out is None or os.path.realpath(entry.path) != leave_out:
                    found.append((key, key != name, name if key != name else key, entry.stat().st_size))
    return found, refused


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise UsageError(
            f"input.images: {folder} cannot be listed ({error.strerror}). Check its permissions."
        ) from None


def _key_of(name: str) -> tuple[str, tuple[str, str] | None]:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        readable = os.fsencode(name).decode("utf-8", "backslashreplace")
        return readable, ("bad_name", "the file's name is not UTF-8; rename it")
    return unicodedata.normalize("NFC", name), None


def _problem_of(entry: os.DirEntry[str], real_root: str) -> tuple[str, str] | None:
    """Why an entry that is no folder is not a file we read; reasons hold no absolute path, they go into the ledger."""
    try:
        mode = entry.stat().st_mode
    except OSError:
        return "broken_link", "a symbolic link that leads nowhere"
    if entry.is_symlink():
        if stat.S_ISDIR(mode):
            return "linked_folder", "a symbolic link to a folder is not followed; move or mount the folder here"
        if not os.path.realpath(entry.path).startswith(real_root):
            return "outside_root", "a symbolic link out of the input folder is not followed; copy the file here"
    return None if stat.S_ISREG(mode) else ("not_a_file", "neither a file nor a folder")
