"""`input.labels.format: auto`: which format the annotations have, told with the reason."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress

from shardwright.config.labels import REFUSE, LabelsConfig
from shardwright.errors import ConfigError, UsageError
from shardwright.manifest import NONE
from shardwright.sources.base import Images, Source
from shardwright.sources.captions import CaptionJsonl
from shardwright.sources.coco_json import CocoJson
from shardwright.sources.export_record import ExportRecord, FoundExport
from shardwright.sources.exported import Exported, export_options
from shardwright.sources.file_names import FileNames
from shardwright.sources.folders import ClassFolders, class_level, refuse_either
from shardwright.sources.joined_tables import ONE_FILE, Spans
from shardwright.sources.key_layouts import CLASS_FOLDERS, FILE_NAME, tell_key_format
from shardwright.sources.mask_folders import open_folder, tell_folder
from shardwright.sources.names import NameIndex
from shardwright.sources.table_formats import open_table_source
from shardwright.sources.unlabelled import Unlabelled
from shardwright.storage import open_table

_LOOK_INTO = 4096
# What may be said of JSON lines among the options of tables.
_OF_LINES = ("columns.image", "columns.caption")
_KEY_FORMATS = {CLASS_FOLDERS: "class folders", FILE_NAME: "file_name"}


def open_source(
    *,
    task: str,
    options: LabelsConfig,
    classes: Mapping[str, int | None] | None,
    labels: str | None,
    images: Images,
    spans: Spans = ONE_FILE,
    export: FoundExport | None = None,
) -> Source:
    """Opens the annotations of an input.

    Args:
        task: `segmentation` or `classification`.
        options: `input.labels`; where the annotations lie is said by `labels`, not by its path.
        classes: `input.classes`.
        labels: absolute path of the table or the folder, or `None`.
        images: what is listed.
        spans: the tables of several spans, of which `labels` is the newest.
        export: the export of ours that they are.

    Raises:
        UsageError: the annotations are missing, lack columns, do not fit the task, or can be read in two ways.
    """
    if export is None:
        return _open(task, options, classes, labels, images, spans)
    options, classes = export_options(export.record, options, classes)
    return Exported(_open(task, options, classes, labels, images, spans, export.record), export, images)


def _open(
    task: str,
    options: LabelsConfig,
    classes: Mapping[str, int | None] | None,
    labels: str | None,
    images: Images,
    spans: Spans,
    record: ExportRecord | None = None,
) -> Source:
    if record is not None and record.labels == NONE and options.format == "auto":
        return Unlabelled(images)
    if labels is None:
        if options.format == "none":
            return Unlabelled(images)
        if record is not None and options.format in ("auto", CLASS_FOLDERS):
            return ClassFolders(images.keys, images.skip, classes, (), folders=record.folders)
        if task == "segmentation":
            raise ConfigError(
                "input.labels.path",
                "missing",
                "Segmentation needs a CSV with run lengths, COCO JSON, or a folder of masks.",
            )
        return _open_keys(options, images, classes)
    why_folder = tell_folder(options.format, labels)
    if why_folder:
        _refuse_spans(spans, f"{labels} holds masks")
        return open_folder(task, options, classes, labels, images, why_folder, record)
    if options.pattern is not None:
        raise ConfigError("input.labels.pattern", f"{labels} is no folder of masks", "Remove it.")
    if options.others != REFUSE:
        raise ConfigError("input.labels.others", f"{labels} is no folder of masks", "Remove it.")
    why_lines = _why_lines(options.format, labels)
    if why_lines:
        _refuse_spans(spans, f"{labels} holds JSON lines")
        return _open_lines(task, options, classes, labels, images, why_lines)
    why_coco = _why_coco(options.format, labels)
    if why_coco:
        _refuse_spans(spans, f"{labels} is COCO JSON")
        _refuse_for_coco(task, why_coco, labels, options)
        told = (f"labels: coco_json, since {why_coco}",) if options.format == "auto" else ()
        names = NameIndex(images.keys, images.skip, options.key_pattern)
        return CocoJson(labels, images, names, classes, told, boxes=options.boxes, masks=task == "segmentation")
    if options.boxes:
        raise ConfigError("input.labels.boxes", f"{labels} is no COCO JSON", "Remove it.")
    return open_table_source(task, options, classes, labels, images, spans, record)


def _refuse_spans(spans: Spans, what: str) -> None:
    if spans.parts:
        raise UsageError(
            f"input.labels.path: {what}, and of several spans, or with on_conflict: with_span, only CSV tables are "
            "joined. Read one span, or write one file for all."
        )


def _open_keys(options: LabelsConfig, images: Images, classes: Mapping[str, int | None] | None) -> Source:
    notes: tuple[str, ...] = ()
    chosen = options.format
    found = class_level(images.keys, images.skip, classes, asked=chosen == CLASS_FOLDERS)
    if chosen == "auto":
        if options.pattern is None:
            chosen, reason = tell_key_format(images.keys, images.skip, classes, found)
        else:
            chosen, reason = FILE_NAME, "input.labels.pattern is given"
        notes = (f"labels: {_KEY_FORMATS[chosen]}, since {reason}",)
    if chosen == FILE_NAME:
        return FileNames(images.keys, images.skip, classes, notes, options.pattern)
    refuse_either(found)
    notes += (found.note,) if found.note else ()
    return ClassFolders(images.keys, images.skip, classes, notes, found.level)


def _why_lines(label_format: str, labels: str) -> str:
    """Why a file is taken for JSON lines, or nothing; a table has a header instead."""
    if label_format not in ("auto", "captions"):
        return ""
    name = os.path.basename(labels)
    if name.lower().endswith((".jsonl", ".ndjson", ".jsonlines")):
        return f"{name} ends with {os.path.splitext(name)[1]}"
    with open_table(labels) as file, suppress(ValueError, RecursionError):
        # The first line of a JSON document of many lines is no object by itself, and one of a single line is COCO's.
        first, second = file.readline(_LOOK_INTO), file.readline(_LOOK_INTO)
        if isinstance(json.loads(first), dict) and (label_format == "captions" or isinstance(json.loads(second), dict)):
            return f"each line of {name} is a JSON object"
    return ""


def _open_lines(
    task: str,
    options: LabelsConfig,
    classes: Mapping[str, int | None] | None,
    labels: str,
    images: Images,
    reason: str,
) -> Source:
    if task == "segmentation":
        raise UsageError(f"{labels}: JSON lines ({reason}) hold captions, no masks. Use task: classification.")
    if classes is not None:
        raise ConfigError("input.classes", f"{labels} holds captions and no classes ({reason})", "Remove it.")
    for option in options.of_tables:
        if option not in _OF_LINES:
            raise ConfigError(f"input.labels.{option}", f"{labels} is no CSV ({reason})", "Remove it.")
    notes = (f"labels: captions, since {reason}",) if options.format == "auto" else ()
    names = NameIndex(images.keys, images.skip, options.key_pattern)
    return CaptionJsonl(labels, images, names, notes, options.columns)


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


def _refuse_for_coco(task: str, reason: str, labels: str, options: LabelsConfig) -> None:
    if task == "classification" and not options.boxes:
        raise UsageError(
            f"{labels}: holds masks (coco_json, since {reason}), and task is classification. Use task: segmentation, "
            "or input.labels.boxes: true for boxes without masks."
        )
    for option in options.of_tables:
        raise UsageError(
            f"input.labels.{option}: {labels} is COCO JSON (since {reason}), which says such things itself. "
            "Remove the option."
        )
