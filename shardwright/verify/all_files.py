"""Compares what lies in a dataset's folder with what its manifest and `build.json` list: nothing more, nothing less.

The manifest lists every file that is the same in equal datasets, `build.json` those that may differ: the lineage, with
versions of packages, and the origins, with checksums of a store. Each of the two contains a digest of itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from shardwright.dataset.manifest import BUILD_FILE, FILES, MANIFEST_FILE, Manifest
from shardwright.dataset.reader import IS_LINK
from shardwright.storage.checksum import checksum_file
from shardwright.storage.fingerprint import checksum_matches
from shardwright.untrusted.json_text import digest, mapped, parse_untrusted_json, relative_path
from shardwright.verify import findings as what
from shardwright.verify.findings import VerifyFinding

_EMPTY = "an empty folder, which is not part of the dataset"
_NOT_A_FILE = "not a file: a pipe, a socket or a device"
_FILES = mapped(digest, key=relative_path)


@dataclass(frozen=True)
class Lying:
    """What lies in a folder, by relative paths.

    Attributes:
        files: the files.
        others: path -> what is wrong with it, for everything else: links, pipes, what cannot be listed.
        empty: folders without anything in them.
    """

    files: set[str] = field(default_factory=set)
    others: dict[str, str] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Listed:
    """The files that a dataset lists.

    Attributes:
        paths: all of them; with `complete` unset, those that are known.
        described: path -> its checksum, and the file that lists it, of those that belong to no shard and no ledger.
        sizes: path -> bytes, where the manifest has them.
        complete: whether `build.json` could be read.
    """

    paths: frozenset[str]
    described: Mapping[str, tuple[str, str]]
    sizes: Mapping[str, int]
    complete: bool


def lying_in(root: Path) -> Lying:
    """Walks through a folder without following links."""
    found, folders = Lying(), [""]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(root / folder))
        except OSError as error:
            found.others[folder] = f"cannot be listed ({error.strerror})"
            continue
        if not entries:
            found.empty.add(folder)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                found.others[path] = IS_LINK
            elif entry.is_dir(follow_symlinks=False):
                folders.append(path)
            elif entry.is_file(follow_symlinks=False):
                found.files.add(path)
            else:
                found.others[path] = _NOT_A_FILE
    return found


def listed_by(root: Path, manifest: Manifest) -> Listed:
    """Reads which files a dataset has, by its manifest and its `build.json`."""
    described = {path: (checksum, MANIFEST_FILE) for path, checksum in manifest.parts.items() if "/" not in path}
    others = _of_build(root / BUILD_FILE)
    described |= {path: (checksum, BUILD_FILE) for path, checksum in (others or {}).items()}
    shards = (shard.path for shard in manifest.shards)
    paths = frozenset((MANIFEST_FILE, BUILD_FILE, *shards, *manifest.parts, *described))
    return Listed(paths, described, manifest.sizes, others is not None)


def _of_build(file: Path) -> Mapping[str, str] | None:
    """Returns path -> checksum of the files that `build.json` lists; `None` where it is not whole."""
    try:
        # A pipe would wait for a writer.
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        text = file.read_bytes().decode("utf-8")
        return _FILES(parse_untrusted_json(text)[FILES], FILES) if checksum_matches(text) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_build(root: Path, found: Lying) -> Iterator[VerifyFinding]:
    """Yields what is wrong with `build.json`, whose files are unknown then."""
    if BUILD_FILE not in found.files:
        if BUILD_FILE not in found.others:
            yield VerifyFinding(BUILD_FILE, what.MISSING, "cannot be read (No such file or directory)")
    elif _of_build(root / BUILD_FILE) is None:
        yield VerifyFinding(BUILD_FILE, what.HASH, "damaged: its digest does not fit its content")


def unlisted(found: Lying, listed: Listed) -> Iterator[VerifyFinding]:
    """Yields everything that lies in the folder and is not a file that the dataset lists."""
    for path, problem in found.others.items():
        yield VerifyFinding(path or ".", what.STRAY, problem)
    folders = {str(folder) for path in listed.paths for folder in PurePosixPath(path).parents}
    for path in found.empty - folders - {""}:
        yield VerifyFinding(path, what.STRAY, _EMPTY)
    # Without build.json nobody knows which files it lists; it is a finding itself.
    for path in found.files - listed.paths if listed.complete else ():
        yield VerifyFinding(path, what.STRAY, f"neither {MANIFEST_FILE} nor {BUILD_FILE} lists this file")


def blocked(root: Path, listed: Listed) -> bool:
    """Returns whether reading the dataset could wait or go on forever: a pipe or a device lies in a file's place."""
    places = (root / path for path in listed.paths)
    return any(place.exists() and not place.is_file() and not place.is_dir() for place in places)


def check_described(root: Path, listed: Listed) -> tuple[int, list[VerifyFinding]]:
    """Compares the files that belong to no shard and no ledger with their checksums; returns their bytes, too."""
    total, findings = 0, []
    for path, (checksum, by) in sorted(listed.described.items()):
        try:
            size = (root / path).stat().st_size
            whole = checksum_file(root / path) == checksum
        except OSError as error:
            findings.append(VerifyFinding(path, what.MISSING, f"cannot be read ({error.strerror})"))
            continue
        total += size
        if not whole:
            findings.append(VerifyFinding(path, what.HASH, f"damaged: its checksum is not that of {by}"))
    return total, findings


def check_sizes(root: Path, listed: Listed, damaged: set[str]) -> Iterator[VerifyFinding]:
    """Yields the files without another finding that are missing, or have another size than the manifest lists."""
    for path, size in listed.sizes.items():
        if path in damaged:
            continue
        try:
            actual = (root / path).stat().st_size
        except OSError as error:
            yield VerifyFinding(path, what.MISSING, f"cannot be read ({error.strerror})")
            continue
        if actual != size:
            yield VerifyFinding(path, what.SIZE, f"{actual} bytes, the manifest lists {size}")
