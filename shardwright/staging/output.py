"""The folder that a dataset is put together in, beside the output it is renamed to: one run's at a time.

An output on an object store: it has no rename of folders, so the manifest comes last and makes the dataset.

Whoever publishes first writes a claim that names the dataset, which only one can: objects of two datasets never mix
under one name. A killed run leaves its claim, and the next run of the same dataset goes on from there.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from shardwright.dataset import manifest as layout
from shardwright.errors import UsageError
from shardwright.staging.damaged import replaced_folder
from shardwright.storage import buckets, map_threads, readers
from shardwright.storage.durable import make_folder
from shardwright.storage.locks import lock_file
from shardwright.storage.objects import split_url


@contextmanager
def assembling(target: Path, fingerprint: str) -> Iterator[Path]:
    """Yields an empty folder beside an output, within the same file system; it goes unless the block renames it.

    Two runs of one configuration that stage in different places meet here. The folder is named by content, so that
    whoever comes after a killed run finds what it left, and locked, so that nobody takes a living run's for that.

    Args:
        target: the output, absolute.
        fingerprint: of the dataset.

    Raises:
        UsageError: another run is putting the same dataset together.
    """
    folder = _folder(target, fingerprint)
    descriptor = _locked(folder, make=True)
    if descriptor is None:
        raise UsageError(f"{target}: another run is publishing this very dataset there. Wait for it or end it.")
    try:
        shutil.rmtree(replaced_folder(target, fingerprint), ignore_errors=True)
        for child in list(folder.iterdir()):
            if child.is_dir():
                shutil.rmtree(child)
            else:
                child.unlink()
        yield folder
    finally:
        if _is_at(descriptor, folder):
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def discard(target: Path, fingerprint: str) -> None:
    """Deletes what a killed run has left beside an output; that of a living one is let alone."""
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
    """A descriptor that holds the folder as long as it is open; `None` where another run does.

    Raises:
        FileNotFoundError: it is not there, and `make` was not asked for.
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
        # Whoever held it before us may have renamed or deleted it between our opening and locking it.
        if _is_at(descriptor, folder):
            return descriptor
        os.close(descriptor)


def _is_at(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    """Locks a folder; false where another run holds it."""
    try:
        return lock_file(descriptor)
    except OSError:
        return True  # Some network file systems lock no folders; there nobody can tell.


_CLAIM = ".publishing"
_EXAMPLES = 3


def trimmed(out: str) -> str:
    """The URL of an output without slashes at its end.

    Raises:
        UsageError: it is a whole bucket.
    """
    out = out.rstrip("/")
    if not split_url(out)[2]:
        raise UsageError(f"{out}: is a whole bucket. Name a folder in it.")
    return out


def check_output(out: str) -> None:
    """Looks at an output before any work.

    Raises:
        UsageError: it is an object, or there are objects below it that are no dataset.
    """
    if buckets.stat(out) is not None:
        raise UsageError(f"{out}: is no folder. Name a folder that does not exist yet.")
    found = list(itertools.islice(buckets.list_objects(f"{out}/"), _EXAMPLES))
    if not found or any(buckets.stat(f"{out}/{name}") for name in (layout.MANIFEST_FILE, _CLAIM)):
        return
    start = len(split_url(out)[2]) + 1
    shown = ", ".join(info.name[start:] for info in found)
    raise UsageError(f"{out}: is not empty ({shown}, …) and holds no dataset. Name another folder.")


def claimed(out: str) -> str | None:
    """The fingerprint of the dataset that an output is kept for, if it is."""
    try:
        return buckets.read(f"{out}/{_CLAIM}").decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def check_unclaimed(out: str, fingerprint: str) -> None:
    """Looks whether another dataset is being published at an output.

    Raises:
        UsageError: it is, or a run that was to do it has ended before.
    """
    other = claimed(out)
    if other is not None and other != fingerprint:
        raise UsageError(
            f"{out}: another dataset (fingerprint {other[:12]}, this one is {fingerprint[:12]}) is being published "
            "there, or was when its run was ended. Name another folder, or delete what lies there."
        )


def claim(out: str, fingerprint: str) -> None:
    """Keeps the output for one dataset, until `release`.

    Raises:
        UsageError: it is kept for another one.
    """
    while not buckets.create(f"{out}/{_CLAIM}", fingerprint.encode("ascii")):
        # It returns where the other one has just been released.
        check_unclaimed(out, fingerprint)


def release(out: str) -> None:
    """Takes the claim away."""
    buckets.delete(f"{out}/{_CLAIM}")


def publish(out: str, manifest: bytes, files: Mapping[str, Callable[[str], None]]) -> None:
    """Writes a dataset, unless another one is there when the manifest is due; the caller has claimed the output.

    Args:
        out: the output.
        manifest: the bytes of `manifest.json`.
        files: name below the output -> what writes that file to a URL.
    """
    list(map_threads(lambda name: files[name](f"{out}/{name}"), files, readers(out)))
    buckets.create(f"{out}/{layout.MANIFEST_FILE}", manifest)
