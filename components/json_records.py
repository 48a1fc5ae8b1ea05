"""Records that lie as a JSON file beside what they tell of: a training's history and summary, an evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from shardwright.errors import DatasetError
from shardwright.foreign_json import foreign_json
from shardwright.storage.durable import write_file
from shardwright.untrusted import fields

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
