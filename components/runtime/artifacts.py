"""Artifacts: copies of those on a bucket, records in JSON files, and the flush of an executor's outputs.

The outputs of an executor are on stable storage before the pipeline records that the component is done. The metadata
store flushes its records: otherwise a power failure could leave a cached artifact that is a folder of empty files.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from shardwright.errors import DatasetError
from shardwright.storage import buckets, durable, is_remote, map_threads, readers
from shardwright.storage.durable import write_file
from shardwright.storage.mirror import Mirror
from shardwright.storage.paths import split_url
from shardwright.untrusted.json_text import fields, parse_untrusted_json

if TYPE_CHECKING:
    # The workers of a training read and write records, too; they need no TFX.
    from tfx.types import Artifact
_Record = TypeVar("_Record")
# The inputs or outputs of an executor, by their keys.
Artifacts: TypeAlias = "dict[str, list[Artifact]]"
_Do: TypeAlias = "Callable[[Any, Artifacts, Artifacts, dict[str, Any]], None]"


def fetch_folder(url: str, folder: Path) -> None:
    """Copies all objects below a URL into a new folder on this machine, many concurrently.

    Raises:
        DatasetError: the name of an object leads out of the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    url = url.rstrip("/")
    start = len(split_url(url)[2]) + 1
    root = folder.resolve()
    source = Mirror(url)

    def fetch(name: str) -> None:
        target = (root / name).resolve()
        if not target.is_relative_to(root):
            raise DatasetError(f"{url}/{name}: its name leads out of the artifact. Delete the file.")
        target.parent.mkdir(parents=True, exist_ok=True)
        source.place(name, target)

    # Names ending in "/" are empty objects that some tools create for folders.
    names = (info.name[start:] for info in buckets.list_objects(f"{url}/"))
    list(map_threads(fetch, (name for name in names if name and not name.endswith("/")), readers(url)))


def write_record(file: Path, record: object, *, allow_nan: bool = True) -> None:
    """Writes the fields of a dataclass whose values are plain.

    Args:
        file: the file to write.
        record: the dataclass.
        allow_nan: whether values may be NaN or infinite, which standard JSON lacks.

    Raises:
        ValueError: a value is NaN or infinite, and must not be.
    """
    text = json.dumps(vars(record), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=allow_nan) + "\n"
    write_file(file, text)


def read_record(file: Path, kind: type[_Record], name: str, fix: str) -> _Record:
    """Reads a file of `write_record`.

    Args:
        file: the file.
        kind: the dataclass.
        name: its name for error messages.
        fix: advice for error messages.

    Raises:
        DatasetError: there is no such file, or it has another content.
    """
    try:
        return kind(**fields(kind)(parse_untrusted_json(file.read_text(encoding="utf-8")), ""))
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"{file}: no readable {name} ({error}). {fix}") from None


def flushed_outputs(do: _Do) -> _Do:
    """Wraps an executor's `Do`: when it returns, its outputs on this machine are on stable storage."""

    @functools.wraps(do)
    def flushing(self: Any, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        do(self, input_dict, output_dict, exec_properties)
        for artifact in (one for artifacts in output_dict.values() for one in artifacts):
            flush_artifact(artifact.uri)

    return flushing


def flush_artifact(uri: str) -> None:
    """Flushes an artifact on this machine, a folder or a file, and the folders above it on the same device."""
    if not uri or is_remote(uri) or not os.path.exists(uri):
        return
    durable.flush_tree(uri) if os.path.isdir(uri) else durable.flush([uri])
    device = os.stat(uri).st_dev
    durable.flush(above for above in Path(uri).absolute().parents if os.stat(above).st_dev == device)
