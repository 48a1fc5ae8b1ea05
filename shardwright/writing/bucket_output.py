"""An output on an object store: it has no rename of folders, so the manifest comes last and makes the dataset.

Whoever publishes first writes a claim that names the dataset, which only one can: objects of two datasets never mix
under one name. A killed run leaves its claim, and the next run of the same dataset goes on from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from shardwright import manifest as layout
from shardwright.errors import UsageError
from shardwright.storage import buckets, in_parallel, readers
from shardwright.storage.objects import split_url

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


def refuse_foreign(out: str) -> None:
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


def refuse_claimed(out: str, fingerprint: str) -> None:
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
        refuse_claimed(out, fingerprint)


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
    list(in_parallel(lambda name: files[name](f"{out}/{name}"), files, readers(out)))
    buckets.create(f"{out}/{layout.MANIFEST_FILE}", manifest)
