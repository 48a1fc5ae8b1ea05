"""Publishes a dataset at its output, whole or not at all.

On this machine, a dataset is assembled in a folder next to the output, which one run locks and renames in the end.

An object store has no rename of folders, so the manifest comes last and makes the dataset. A run first writes a claim
that names its dataset. Only one run can create it, so objects of two datasets never mix under one name. A killed run
leaves its claim, and the next run of the same dataset continues there.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from shardwright.dataset import manifest as layout
from shardwright.errors import NO_ROOM, UsageError, unwritable
from shardwright.staging.damaged import replaced_folder
from shardwright.storage import buckets, map_threads, readers
from shardwright.storage.durable import make_folder
from shardwright.storage.locks import lock_file
from shardwright.storage.paths import split_url


@contextmanager
def assembling(target: Path, fingerprint: str) -> Iterator[Path]:
    """Yields an empty folder next to an output, within the same file system; deletes it unless the block renames it.

    Two runs of one configuration with different staging folders meet here. The folder is named by content, so that the
    next run finds the files of a killed one. It is locked, so that no run deletes the files of a running one.

    Args:
        target: the output, absolute.
        fingerprint: of the dataset.

    Raises:
        UsageError: another run is putting the same dataset together.
        StorageError: the disk is full.
    """
    folder = _folder(target, fingerprint)
    descriptor = _locked(folder, make=True)
    if descriptor is None:
        raise UsageError(f"{target}: another run is publishing the same dataset there. Wait for it or end it.")
    try:
        shutil.rmtree(replaced_folder(target, fingerprint), ignore_errors=True)
        for child in list(folder.iterdir()):
            if child.is_dir():
                shutil.rmtree(child)
            else:
                child.unlink()
        yield folder
    except OSError as error:
        if error.errno in NO_ROOM:
            raise unwritable(f"{target}:", error, "") from None
        raise
    finally:
        if _is_at(descriptor, folder):
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def discard(target: Path, fingerprint: str) -> None:
    """Deletes the files that a killed run has left next to an output; those of a living one stay."""
    folder = _folder(target, fingerprint)
    shutil.rmtree(replaced_folder(target, fingerprint), ignore_errors=True)
    with suppress(FileNotFoundError):
        descriptor = _locked(folder, make=False)
        if descriptor is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def _folder(target: Path, fingerprint: str) -> Path:
    return target.parent / f".partial-{fingerprint[:16]}"


def _locked(folder: Path, make: bool) -> int | None:
    """Returns a descriptor that locks the folder as long as it is open; `None` where another run has locked it.

    Raises:
        FileNotFoundError: it does not exist, and `make` is false.
    """
    while True:
        if make:
            make_folder(folder)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            if make:
                continue
            raise
        if not _lock(descriptor):
            os.close(descriptor)
            return None
        # The run before us may have renamed or deleted the folder between our opening and locking it.
        if _is_at(descriptor, folder):
            return descriptor
        os.close(descriptor)


def _is_at(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    """Locks a folder; returns false where another run has locked it."""
    try:
        return lock_file(descriptor)
    except OSError:
        return True  # Some network file systems cannot lock folders, so other runs cannot be detected.


_CLAIM = ".publishing"
_EXAMPLES = 3


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
    found = list(itertools.islice(buckets.list_objects(f"{out}/"), _EXAMPLES))
    if not found or any(buckets.stat(f"{out}/{name}") for name in (layout.MANIFEST_FILE, _CLAIM)):
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
    buckets.create(f"{out}/{layout.MANIFEST_FILE}", manifest)
