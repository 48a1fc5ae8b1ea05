"""`lineage.json` of every artifact: its sources, recipe, code and packages.

The file is part of no fingerprint, since package versions may differ.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shardwright.errors import DatasetError
from shardwright.storage import buckets, hash_file, is_remote, read_bytes
from shardwright.storage.checksum import new_checksum
from shardwright.storage.durable import write_file
from shardwright.storage.fingerprint import checksum_matches, checksummed_json
from shardwright.storage.fingerprint import fingerprint as fingerprint_of
from shardwright.storage.paths import split_url
from shardwright.untrusted import json_text as untrusted
from shardwright.untrusted.json_text import parse_untrusted_json
from shardwright.version import __version__

LINEAGE_FILE = "lineage.json"
_LINEAGE = untrusted.record(
    {
        "kind": untrusted.text,
        "fingerprint": untrusted.text,
        "parents": untrusted.mapped(untrusted.text),
        "recipe": untrusted.mapped(untrusted.anything),
    },
    {
        "versions": untrusted.mapped(untrusted.text),
        "image": untrusted.text,
        "files": untrusted.text,
        "listed": untrusted.mapped(untrusted.text),
        "digest": untrusted.text,
    },
    closed=False,
)
# Names the container image that the code runs in, in containers that know it; with its digest where that is known.
IMAGE_VARIABLE = "SHARDWRIGHT_IMAGE"
_PACKAGES = ("tfx", "tensorflow", "keras", "apache-beam", "tensorflow-data-validation", "tensorflow-transform", "jax")


@cache
def package_versions() -> dict[str, str]:
    """Returns the versions of Python, Shardwright and the packages that shape its results; absent ones are left out."""
    versions = {"python": platform.python_version(), "shardwright": __version__}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def write_lineage(
    directory: str | os.PathLike[str],
    *,
    kind: str,
    fingerprint: str,
    parents: Mapping[str, str],
    recipe: Mapping[str, Any],
    files: bool = False,
    listed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Writes `lineage.json` into an artifact's folder.

    Args:
        directory: root folder of the artifact.
        kind: e.g. `ingest`, `model`.
        fingerprint: its own fingerprint.
        parents: role -> fingerprint of its sources.
        recipe: the options that shaped it.
        files: also record a hash of the folder's files, to detect changes. For artifacts without a manifest; all files
            must be there.
        listed: fingerprints of a dataset, and of its `input`, by what a store listed, where it was read from a bucket.
    """
    row = {
        "kind": kind,
        "fingerprint": fingerprint,
        "parents": dict(parents),
        "recipe": dict(recipe),
        "versions": package_versions(),
    }
    if listed:
        row["listed"] = dict(listed)
    if files:
        row["files"] = files_digest(os.fspath(directory))
    if os.environ.get(IMAGE_VARIABLE):
        row["image"] = os.environ[IMAGE_VARIABLE]
    write_file(Path(directory, LINEAGE_FILE), checksummed_json(row))


def listed_fingerprint(place: str) -> str:
    """Returns the fingerprint of a dataset's plan, where that was made of what a store listed; empty otherwise."""
    try:
        text = read_bytes(f"{place}/{LINEAGE_FILE}").decode("utf-8")
        return str(parse_lineage(text).get("listed", {}).get("fingerprint", "")) if checksum_matches(text) else ""
    except (OSError, ValueError):
        return ""


def read_lineage(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads `lineage.json` of an artifact.

    Raises:
        DatasetError: the file is missing or damaged.
    """
    file = Path(directory, LINEAGE_FILE)
    try:
        return parse_lineage(read_bytes(str(file)).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"{file}: not a readable lineage ({error}). Was this folder written by shardwright?"
        ) from None


def parse_lineage(text: str) -> dict[str, Any]:
    """Reads the content of a `lineage.json`; `ValueError` when it is not one."""
    row = _LINEAGE(parse_untrusted_json(text), "")
    try:
        fingerprint_of(row["recipe"])  # It goes into canonical JSON again.
    except RecursionError:
        raise ValueError("lists or mappings within each other without end") from None
    return dict(row)


def files_digest(folder: str) -> str:
    """Returns the BLAKE3 over names and hashes of all files of a folder or URL, without `lineage.json`."""
    digest = new_checksum()
    if is_remote(folder):
        start = len(split_url(folder)[2]) + 1
        names = [info.name[start:] for info in buckets.list_objects(f"{folder}/")]
    else:
        names = [file.relative_to(folder).as_posix() for file in Path(folder).rglob("*") if file.is_file()]
    for name in sorted(names):
        if name != LINEAGE_FILE:
            found = hash_file(os.path.join(folder, name))
            digest.update(
                f"{found.content_id.hex() if found else 'unreadable'}  {name}\n".encode("utf-8", "surrogateescape")
            )
    return digest.hexdigest()
