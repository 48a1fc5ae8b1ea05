"""Publishes a dataset on an object store, whole or not at all.

On this machine, a folder is assembled next to the output and renamed (`shardwright.storage.whole_files`). An object
store has no rename of folders, so the manifest comes last and makes the dataset. A run first writes a claim
that names its dataset. Only one run can create it, so objects of two datasets never mix under one name. A killed run
leaves its claim, and the next run of the same dataset continues there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from shardwright.dataset import manifest as layout
from shardwright.errors import UsageError
from shardwright.storage import buckets, map_threads, readers
from shardwright.storage.paths import split_url

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
