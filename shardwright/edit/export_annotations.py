"""Collects captions, boxes and further features for an export, and names its class folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shardwright.dataset.example_view import ExampleView
from shardwright.dataset.feature_presets import COMMON_FEATURES, ONE_HOT, SIZE
from shardwright.dataset.manifest import IGNORED, Manifest
from shardwright.errors import UsageError
from shardwright.formats.export_record import UNLABELED
from shardwright.images.boxes import PREFIX
from shardwright.tfrecords.records import DecodedFeature

FILE_NAME = "image/filename"
# Features of masks, which are exported as masks, and of pixels, which a later ingest measures again.
_MADE_AGAIN = ("image/segmentation/", "segmentation_mask/", "image/quality/", "image/hash/")
_SEPARATORS = ("|", ";", ",", "\t", "~", "^", "#", "&", "+", "=", "@", "%", "$", "!")


class FurtherFeatures:
    """The features of a dataset that are exported to `features.jsonl`, by our own names.

    Args:
        manifest: of the dataset.

    Attributes:
        kinds: name -> kind of those that some record has.
        left_out: names of those that are not text and are not exported.
    """

    def __init__(self, manifest: Manifest) -> None:
        ours = {theirs: name for name, theirs in manifest.names.items()}
        self._stored = {ours.get(name, name): name for name in manifest.features}
        known = {*COMMON_FEATURES, SIZE, ONE_HOT}
        self._names = [name for name in self._stored if name not in known and not name.startswith(_MADE_AGAIN)]
        self._file_name = self._stored.get(FILE_NAME)
        self.kinds: dict[str, str] = {}
        self.left_out: set[str] = set()

    @property
    def some(self) -> bool:
        """True if the dataset has captions or further features, boxes aside."""
        return any(not name.startswith(PREFIX) for name in self._names)

    def read(self, view: ExampleView, image: str) -> dict[str, list[Any]]:
        """Returns the values of a record.

        Args:
            view: the record.
            image: path of the image in the export.
        """
        found = {}
        for name in self._names:
            values = view.example.get(self._stored[name])
            if values is not None and len(values):
                plain = _plain(values)
                if plain is None:
                    self.left_out.add(name)
                else:
                    found[name] = plain
                    self.kinds[name] = _kind(values)
        file_name = view.example.texts(self._file_name) if self._file_name else []
        if file_name and file_name != [image.rpartition("/")[2]]:
            found[FILE_NAME] = file_name
            self.kinds[FILE_NAME] = "bytes"
        return found


def class_folders(classes: Sequence[str], ignored: bool) -> dict[str, str]:
    """Returns class -> name of its folder; no two classes share one."""
    folders: dict[str, str] = {}
    for name in (*classes, *([IGNORED] if ignored else [])):
        folder, number = safe_folder(name), 1
        while folder in folders.values() or folder == UNLABELED:
            number += 1
            folder = f"{safe_folder(name)}~{number}"
        folders[name] = folder
    return folders


def safe_folder(name: str) -> str:
    """Returns a class's name as the name of a folder."""
    safe = "".join(c if c not in "/\\" and c.isprintable() else "_" for c in name)
    return "_" if safe in ("", ".", "..") else safe


def class_separator(classes: Sequence[str]) -> str:
    """Returns the separator of the classes of an image: one that is in no class's name.

    Raises:
        UsageError: every one is in a name.
    """
    free = next((separator for separator in _SEPARATORS if not any(separator in name for name in classes)), None)
    if free is None:
        raise UsageError(
            f"the names of the classes contain all of {' '.join(_SEPARATORS)}. Rename a class by `relabel`."
        )
    return free


def exported_folders(folders: Mapping[str, str], unlabeled: bool) -> dict[str, str]:
    """Returns folder -> class, as `export.json` has it."""
    return {**{folder: name for name, folder in folders.items()}, **({UNLABELED: ""} if unlabeled else {})}


def _kind(values: DecodedFeature) -> str:
    return "bytes" if isinstance(values, list) else values.dtype.name


def _plain(values: DecodedFeature) -> list[Any] | None:
    """Returns values for JSON, `None` where they are not text; infinities become texts."""
    if isinstance(values, list):
        try:
            return [value.decode("utf-8") for value in values]
        except UnicodeDecodeError:
            return None
    if values.dtype == np.int64 or np.isfinite(values).all():
        return list(values.tolist())
    return [str(value) for value in values.tolist()]
