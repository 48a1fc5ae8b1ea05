"""The output of a run: published on an object store whole or not at all, and replaced where it is damaged.

On this machine, a folder is assembled next to the output and renamed (`shardwright.storage.whole_files`). An object
store has no rename of folders, so the manifest comes last and makes the dataset. A run first writes a claim that names
its dataset. Only one run can create it, so objects of two datasets never mix under one name. A killed run leaves its
claim, and the next run of the same dataset continues there.

An earlier version, or a disk that failed, may have left a folder of empty files under the output's name. The dataset
that is written there again replaces it only if all remaining files belong to this dataset, and the new one has all of
them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from shardwright.dataset.manifest import MANIFEST_FILE, Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.lineage.record import LINEAGE_FILE, listed_fingerprint
from shardwright.storage import buckets, durable, is_remote, map_threads, read_bytes, readers
from shardwright.storage.fingerprint import checksum_matches
from shardwright.storage.paths import split_url
from shardwright.storage.whole_files import appear
from shardwright.untrusted.json_text import parse_untrusted_json

_CLAIM = ".publishing"
_CHUNK = 1 << 20
_SHOWN = 3
_REPLACED = "replaced"


def trimmed(out: str) -> str:
    """Returns the URL of an output without slashes at its end.

    Raises:
        UsageError: it is a whole bucket.
    """
    out = out.rstrip("/")
    if not split_url(out)[2]:
        raise UsageError(f"{out}: is a whole bucket. Name a folder in it.")
    return out


def check_output(out: str) -> None:
    """Checks an output before any work.

    Raises:
        UsageError: it is an object, or there are objects below it but no dataset.
    """
    if buckets.stat(out) is not None:
        raise UsageError(f"{out}: is not a folder. Name a folder that does not exist yet.")
    found = list(itertools.islice(buckets.list_objects(f"{out}/"), _SHOWN))
    if not found or any(buckets.stat(f"{out}/{name}") for name in (MANIFEST_FILE, _CLAIM)):
        return
    start = len(split_url(out)[2]) + 1
    shown = ", ".join(info.name[start:] for info in found)
    raise UsageError(f"{out}: is not empty ({shown}, …) and is not a dataset. Name another folder.")


def claimed(out: str) -> str | None:
    """Returns the fingerprint of the dataset that has claimed an output, if one has."""
    try:
        return buckets.read(f"{out}/{_CLAIM}").decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def check_unclaimed(out: str, fingerprint: str) -> None:
    """Checks that no other dataset is being published at an output.

    Raises:
        UsageError: one is, or a run that was to publish it has ended before.
    """
    other = claimed(out)
    if other is not None and other != fingerprint:
        raise UsageError(
            f"{out}: another dataset (fingerprint {other[:12]}, this one is {fingerprint[:12]}) is being published "
            "there, or was when its run was ended. Name another folder, or delete this one."
        )


def claim(out: str, fingerprint: str) -> None:
    """Claims the output for one dataset, until `release`.

    Raises:
        UsageError: another dataset has claimed it.
    """
    while not buckets.create(f"{out}/{_CLAIM}", fingerprint.encode("ascii")):
        # This returns if the other claim has just been released.
        check_unclaimed(out, fingerprint)


def release(out: str) -> None:
    """Deletes the claim."""
    buckets.delete(f"{out}/{_CLAIM}")


def publish(out: str, manifest: bytes, files: Mapping[str, Callable[[str], None]]) -> None:
    """Writes a dataset, unless another one is there when the manifest is due; the caller has claimed the output.

    Args:
        out: the output.
        manifest: the bytes of `manifest.json`.
        files: name below the output -> function that writes that file to a URL.
    """
    list(map_threads(lambda name: files[name](f"{out}/{name}"), files, readers(out)))
    buckets.create(f"{out}/{MANIFEST_FILE}", manifest)


def damage(out: str | os.PathLike[str], expected: str) -> str:
    """Returns the problem of a damaged dataset that may be replaced; empty where there is none, or an intact one.

    Args:
        out: the output.
        expected: fingerprint of the dataset that is to be written there.

    Raises:
        DatasetError: the dataset there is damaged, and may be another one.
    """
    if is_remote(str(out)) or not os.path.exists(os.path.join(out, MANIFEST_FILE)):
        return ""
    try:
        ImageDataset.open(out)
    except DatasetError as error:
        check_not_doubtful(out, expected, error)
        return str(error)
    return ""


def check_not_doubtful(out: str | os.PathLike[str], expected: str, error: DatasetError) -> None:
    """Refuses a damaged dataset that may be another than the expected one.

    Args:
        out: the output.
        expected: fingerprint of the dataset that is to be written there.
        error: the damage of the dataset there.

    Raises:
        DatasetError: it may be another one.
    """
    if is_remote(str(out)):
        raise error
    doubt = _doubt(Path(out), expected)
    if doubt:
        raise DatasetError(f"{error} It is not replaced, because {doubt}. Name another folder, or delete that one.")


def replace_damaged(assembled: Path, target: Path, expected: str) -> None:
    """Puts a dataset in the place of a damaged one.

    Args:
        assembled: folder of the whole dataset, of `assembling`; the damaged one is moved next to it and goes with it.
        target: the output.
        expected: fingerprint of the dataset.

    Raises:
        DatasetError: `target` is not damaged any more, or may be another dataset.
        UsageError: `target` contains a file that the dataset does not have.
    """
    if not damage(target, expected):
        raise UsageError(f"{target}: something else was put there in the meantime. Name another folder.")
    foreign = sorted(_files(target) - _files(assembled))
    if foreign:
        shown = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
        raise UsageError(
            f"{target}: is a damaged dataset and contains files that are not part of it ({shown}). Move them "
            "elsewhere, or name another folder."
        )
    durable.flush_tree(assembled)
    os.rename(target, assembled.with_name(_REPLACED))
    appear(assembled, target)


def _doubt(target: Path, expected: str) -> str:
    """Returns why a damaged dataset may be another than the expected one; empty if it is that one."""
    try:
        manifest = Manifest.from_json(read_bytes(str(target / MANIFEST_FILE)).decode("utf-8"))
        same = expected in (manifest.fingerprint, listed_fingerprint(str(target)))
        return "" if same else "its manifest is of another dataset"
    except (OSError, ValueError, DatasetError):
        pass
    try:
        text = read_bytes(str(target / LINEAGE_FILE)).decode("utf-8")
        if checksum_matches(text):
            same = expected in (parse_untrusted_json(text).get("fingerprint"), listed_fingerprint(str(target)))
            return "" if same else f"its {LINEAGE_FILE} is of another dataset"
    except (OSError, ValueError):
        pass
    if all(_is_empty(target / name) for name in _files(target)):
        return ""
    return "none of its files identifies the dataset"


def _files(folder: Path) -> set[str]:
    """Returns all files below a folder; links are files here."""
    return {
        os.path.relpath(os.path.join(here, name), folder)
        for here, folders, names in os.walk(folder)
        for name in (*names, *(one for one in folders if os.path.islink(os.path.join(here, one))))
    }


def _is_empty(file: Path) -> bool:
    """Returns whether a file has no data: no bytes, or only NUL bytes. A link counts as data."""
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as data:
        while chunk := data.read(_CHUNK):
            if chunk.count(0) != len(chunk):
                return False
    return True
