"""Artifacts of a bucket as folders of this machine: many objects at a time, whatever their sizes.

Records that lie as a JSON file beside what they tell of: a training's history and summary, an evaluation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from shardwright.errors import DatasetError
from shardwright.storage import buckets, in_parallel, readers
from shardwright.storage.durable import write_file
from shardwright.storage.mirror import Mirror
from shardwright.storage.objects import split_url
from shardwright.untrusted import fields, foreign_json


def fetch_folder(url: str, folder: Path) -> None:
    """Copies all objects below a URL into a folder of this machine, which is made.

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
            raise DatasetError(f"{url}/{name}: its name leads out of the artifact. Delete it.")
        target.parent.mkdir(parents=True, exist_ok=True)
        source.place(name, target)

    # Some tools make an empty object for a folder.
    names = (info.name[start:] for info in buckets.list_objects(f"{url}/"))
    list(in_parallel(fetch, (name for name in names if name and not name.endswith("/")), readers(url)))


_Record = TypeVar("_Record")


def write_record(file: Path, record: object, *, allow_nan: bool = True) -> None:
    """Writes the fields of a dataclass whose values are plain.

    Args:
        file: the file to write.
        record: the dataclass.
        allow_nan: whether a value may be no number; JSON proper has none.

    Raises:
        ValueError: a value is no number, and may not be.
    """
    text = json.dumps(vars(record), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=allow_nan) + "\n"
    write_file(file, text)


def read_record(file: Path, kind: type[_Record], name: str, fix: str) -> _Record:
    """Reads what `write_record` wrote.

    Args:
        file: the file.
        kind: the dataclass.
        name: what to call it in an error.
        fix: what to do where there is none.

    Raises:
        DatasetError: there is no such file, or something else is in it.
    """
    try:
        return kind(**fields(kind)(foreign_json(file.read_text(encoding="utf-8")), ""))
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"{file}: no readable {name} ({error}). {fix}") from None
