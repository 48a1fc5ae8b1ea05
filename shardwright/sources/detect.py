"""`input.labels.format: auto`: which format the annotations have, told with the reason."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from shardwright.config.labels import IN_FOLDERS, LabelsConfig
from shardwright.errors import ConfigError, UsageError
from shardwright.sources.base import Images, Source
from shardwright.sources.coco_json import CocoJson
from shardwright.sources.file_names import FileNames
from shardwright.sources.folders import ClassFolders
from shardwright.sources.key_layouts import CLASS_FOLDERS, FILE_NAME, tell_key_format
from shardwright.sources.label_csv import LabelCsv
from shardwright.sources.mask_images import MaskImages
from shardwright.sources.rle_csv import RleCsv
from shardwright.sources.tables import (
    IMAGE,
    IMAGE_LABEL,
    LABEL,
    MASK,
    Table,
    choose_columns,
    columns_note,
    missing_columns,
)
from shardwright.storage import open_table

_LOOK_INTO = 4096
_KEY_FORMATS = {CLASS_FOLDERS: "class folders", FILE_NAME: "file_name"}
_RLE_COLUMNS = (
    "Image_Label,EncodedPixels (file_Class) or ImageId,ClassId,EncodedPixels or ImageId_ClassId,EncodedPixels or, for "
    "one class, ImageId,EncodedPixels"
)


def open_source(
    *,
    task: str,
    options: LabelsConfig,
    classes: Mapping[str, int | None] | None,
    labels: str | None,
    images: Images,
) -> Source:
    """Opens the annotations of an input.

    Args:
        task: `segmentation` or `classification`.
        options: `input.labels`; where the annotations lie is said by `labels`, not by its path.
        classes: `input.classes`.
        labels: absolute path of the table or the folder, or `None`.
        images: what is listed.

    Raises:
        UsageError: the annotations are missing, lack columns, do not fit the task, or can be read in two ways.
    """
    if labels is None:
        if task == "segmentation":
            raise ConfigError(
                "input.labels.path",
                "missing",
                "Segmentation needs a CSV with run lengths, COCO JSON, or a folder of masks.",
            )
        return _open_keys(options, images, classes)
    why_folder = _why_folder(options.format, labels)
    if why_folder:
        return _open_folder(task, options, classes, labels, images, why_folder)
    if options.pattern is not None:
        raise ConfigError("input.labels.pattern", f"{labels} is no folder of masks", "Remove it.")
    keys, skip = images.keys, images.skip
    why_coco = _why_coco(options.format, labels)
    if why_coco:
        _refuse_for_coco(task, why_coco, labels, [*(f"columns.{role}" for role in options.columns), *options.code])
        told = (f"labels: coco_json, since {why_coco}",) if options.format == "auto" else ()
        return CocoJson(labels, keys, skip, classes, told)
    table = Table.open(labels)
    found = choose_columns(table, options.columns)
    wanted, reason = _format_of(task, options.format, table, found)
    notes = (f"labels: {wanted}, since {reason}",) if options.format == "auto" else ()
    if wanted == "rle_csv":
        if MASK not in found or not (IMAGE_LABEL in found or IMAGE in found):
            raise missing_columns(table, _RLE_COLUMNS)
        # With one column for both, a separate image or label column that only looks like one must not count.
        roles = (IMAGE_LABEL, MASK) if IMAGE_LABEL in found else (IMAGE, LABEL, MASK)
        chosen = {role: found[role] for role in roles if role in found}
        notes = (*notes, columns_note(table, chosen, tuple(chosen)))
        return RleCsv(table, chosen, keys, skip, classes, notes, options.code, images.size_of)
    if not {IMAGE, LABEL} <= set(found):
        raise missing_columns(table, "one column for the image and one for its class, e.g. image,label")
    chosen = {role: found[role] for role in (IMAGE, LABEL)}
    return LabelCsv(table, chosen, keys, skip, classes, (*notes, columns_note(table, chosen, (IMAGE, LABEL))))


def _open_keys(options: LabelsConfig, images: Images, classes: Mapping[str, int | None] | None) -> Source:
    notes: tuple[str, ...] = ()
    chosen = options.format
    if chosen == "auto":
        if options.pattern is None:
            chosen, reason = tell_key_format(images.keys, images.skip, classes)
        else:
            chosen, reason = FILE_NAME, "input.labels.pattern is given"
        notes = (f"labels: {_KEY_FORMATS[chosen]}, since {reason}",)
    if chosen == FILE_NAME:
        return FileNames(images.keys, images.skip, classes, notes, options.pattern)
    return ClassFolders(images.keys, images.skip, classes, notes)


def _why_folder(label_format: str, labels: str) -> str:
    """Why annotations are taken for a folder of files, or nothing."""
    if label_format != "auto":
        return "input.labels.format says so" if label_format in IN_FOLDERS else ""
    return f"{os.path.basename(labels.rstrip('/'))} is a folder" if os.path.isdir(labels) else ""


def _open_folder(
    task: str,
    options: LabelsConfig,
    classes: Mapping[str, int | None] | None,
    labels: str,
    images: Images,
    reason: str,
) -> Source:
    chosen = options.format
    if chosen == "auto":
        chosen = "mask_images"
    if task == "classification":
        raise UsageError(f"{labels}: holds masks ({reason}), and task is classification. Use task: segmentation.")
    for option in [*(f"columns.{role}" for role in options.columns), *options.code]:
        raise ConfigError(f"input.labels.{option}", f"masks are files ({reason})", "Remove it.")
    notes = (f"labels: {chosen}, since {reason}",) if options.format == "auto" else ()
    return MaskImages(labels, images, classes, notes, options.pattern)


def _why_coco(label_format: str, labels: str) -> str:
    """Why a file is taken for COCO's, or nothing. No header of a table begins with a brace."""
    if label_format != "auto":
        return "input.labels.format says so" if label_format == "coco_json" else ""
    name = os.path.basename(labels)
    if name.lower().endswith(".json"):
        return f"{name} ends with .json"
    with open_table(labels) as file, suppress(UnicodeDecodeError):
        return f"{name} begins with a brace" if file.read(_LOOK_INTO).lstrip()[:1] == "{" else ""
    return ""  # Whoever reads it as a table says what is wrong.


def _refuse_for_coco(task: str, reason: str, labels: str, options: Sequence[str]) -> None:
    if task == "classification":
        raise UsageError(
            f"{labels}: holds masks (coco_json, since {reason}), and task is classification. Use task: segmentation."
        )
    if options:
        raise UsageError(
            f"input.labels.{options[0]}: {labels} is COCO JSON (since {reason}), which says such things itself. "
            "Remove the option."
        )


def _format_of(task: str, label_format: str, table: Table, found: Mapping[str, int]) -> tuple[str, str]:
    if label_format == "auto":
        masks = f"{table.name} has a column {table.header[found[MASK]]!r}" if MASK in found else ""
        label_format, reason = ("rle_csv", masks) if masks else ("label_csv", f"{table.name} has no column of masks")
    else:
        reason = "input.labels.format says so"
    if task == "segmentation" and label_format == "label_csv":
        raise missing_columns(table, _RLE_COLUMNS)
    if task == "classification" and label_format == "rle_csv":
        raise UsageError(
            f"{table.path}: holds masks ({reason}), and task is classification. "
            "Use task: segmentation, or input.labels.format: label_csv for its columns of image and class."
        )
    return label_format, reason
