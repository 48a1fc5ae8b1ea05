"""`export.json`: how `shardwright export` wrote annotations, so that the ingest reads them back without an option.

It is next to the annotations (`labels.csv`, `masks/`) and next to the folder `images/`. Captions, boxes and further
features are in no table. They are in `features.jsonl`, a line for each image that has any.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shardwright.dataset.manifest import MASKS, MULTI, NONE, SINGLE
from shardwright.errors import UsageError
from shardwright.masks.dialects import COLUMN, COUNTS, RELATIVE, ROW, Dialect, dialect_of
from shardwright.storage import read_bytes
from shardwright.untrusted.json_text import parse_untrusted_json

RECORD_FILE, FEATURES_FILE = "export.json", "features.jsonl"
IMAGES, LABELS, MASK_FOLDER = "images", "labels.csv", "masks"
BY_KEY, BY_CLASS = "keys", "classes"
UNLABELED = "_none"
_VERSION = 1
_SECTION = "annotations"
_KINDS = ("bytes", "float32", "int64")
_UNLISTED = ("empty", "fail", "unlabeled")


@dataclass(frozen=True)
class ExportRecord:
    """How annotations were exported.

    Attributes:
        task: `segmentation` or `classification`.
        labels: `Manifest.labels`.
        file: name of the table or folder of the annotations; empty where there is none.
        layout: `keys` or `classes`: what the paths of the images are.
        classes: names in the order of their indices.
        folders: folder of a class, of its masks or its images -> its name.
        runs: of run lengths; see `Dialect`.
        order: likewise.
        base: likewise.
        separator: between the classes of an image.
        ignored: whether the class `ignore` stands for pixels that are not counted.
        unlisted: what an image without annotations is: `empty`, `unlabeled`, or `fail` where there was none.
        features: name -> kind of what `features.jsonl` holds.
    """

    task: str
    labels: str
    file: str = ""
    layout: str = BY_KEY
    classes: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    runs: str = "absolute"
    order: str = COLUMN
    base: int = 1
    separator: str = "|"
    ignored: bool = False
    unlisted: str = "fail"
    features: Mapping[str, str] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """How run lengths are written."""
        return dialect_of(self.runs, self.order, self.base)

    def to_dict(self) -> dict[str, Any]:
        """Returns what `export.json` holds of it."""
        return {_SECTION: {"version": _VERSION, **asdict(self), "classes": list(self.classes)}}

    @staticmethod
    def from_dict(whole: Any) -> ExportRecord:
        """Reads what `to_dict` wrote.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is something else.
        """
        raw = dict(whole[_SECTION])
        if raw.pop("version") != _VERSION:
            raise ValueError("another version")
        record = ExportRecord(**{**raw, "classes": tuple(raw["classes"])})
        known = (
            record.labels in (MASKS, SINGLE, MULTI, NONE)
            and record.runs in ("absolute", RELATIVE, COUNTS)
            and record.order in (COLUMN, ROW)
            and record.base in (0, 1)
            and record.unlisted in _UNLISTED
            and set(record.features.values()) <= set(_KINDS)
            and all(isinstance(name, str) for name in (*record.classes, *record.folders, *record.folders.values()))
            and isinstance(record.separator, str)
        )
        if not known:
            raise ValueError("values that no export has")
        return record


@dataclass(frozen=True)
class FoundExport:
    """An export on disk.

    Attributes:
        folder: its folder, absolute.
        record: its `export.json`.
    """

    folder: str
    record: ExportRecord

    @property
    def features_path(self) -> str:
        """Path of the further features, or an empty text."""
        return os.path.join(self.folder, FEATURES_FILE) if self.record.features else ""

    @property
    def files(self) -> list[str]:
        """Paths of the files that are read besides the annotations."""
        return [os.path.join(self.folder, RECORD_FILE), *filter(None, [self.features_path])]


def find_export(labels: str | None, images: str, task: str) -> FoundExport | None:
    """Returns the export that annotations or images belong to, or `None`.

    Args:
        labels: absolute path of the annotations, or `None`.
        images: absolute path of the folder of the images.
        task: `segmentation` or `classification`.
    """
    folder, name = os.path.split((labels or images).rstrip("/"))
    if labels is None and name != IMAGES:
        return None
    try:
        record = ExportRecord.from_dict(
            parse_untrusted_json(read_bytes(os.path.join(folder, RECORD_FILE)).decode("utf-8"))
        )
    except (OSError, UsageError, ValueError, KeyError, TypeError, AttributeError):
        # There is none, it is another program's, or the bucket shows us the annotations alone.
        return None
    if record.task != task:
        return None
    by_folder = record.layout == BY_CLASS and record.labels == SINGLE
    return FoundExport(folder, record) if (name == record.file if labels is not None else by_folder) else None
