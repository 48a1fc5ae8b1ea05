"""Detects the format of annotations (`input.labels.format: auto`) with the reason, and opens them.

A folder holds mask images or a tree of Pascal VOC; a file is JSON lines, COCO JSON or a table, whose columns decide;
without either, the keys of the images state the classes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from shardwright.config.input import IN_FOLDERS, REFUSE, LabelsConfig
from shardwright.dataset.manifest import NONE
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import AnnotationFormat, Images, Unlabelled
from shardwright.formats.captions import CaptionCsv, CaptionJsonl
from shardwright.formats.class_folders import (
    CLASS_FOLDERS,
    FILE_NAME,
    ClassFolders,
    FileNames,
    check_either,
    class_level,
    detect_key_format,
)
from shardwright.formats.coco import CocoJson
from shardwright.formats.columns import FurtherColumns
from shardwright.formats.export_record import ExportRecord, FoundExport
from shardwright.formats.exported import Exported, export_options
from shardwright.formats.image_names import NameIndex, detect_key_pattern, quoted
from shardwright.formats.label_csv import LabelCsv
from shardwright.formats.mask_images import MaskImages
from shardwright.formats.one_hot import OneHot, OneHotCsv, detect_one_hot
from shardwright.formats.pascal_voc import MASKS, PascalVoc
from shardwright.formats.rle_csv import RleCsv
from shardwright.formats.rows import TableInput
from shardwright.formats.tables import (
    CAPTION,
    IMAGE,
    IMAGE_LABEL,
    LABEL,
    MASK,
    ONE_FILE,
    JoinedTable,
    Spans,
    Table,
    caption_columns,
    choose_columns,
    columns_note,
    missing_columns,
    reduce_header,
    shown_header,
)
from shardwright.storage import is_folder, open_table


def detect_folder(label_format: str, labels: str) -> str:
    """Returns why annotations are taken for a folder of files, or an empty text."""
    if label_format != "auto":
        return "input.labels.format is set" if label_format in IN_FOLDERS else ""
    return f"{os.path.basename(labels.rstrip('/'))} is a folder" if is_folder(labels) else ""


def open_folder(
    task: str,
    options: LabelsConfig,
    classes: Mapping[str, int | None] | None,
    labels: str,
    images: Images,
    reason: str,
    record: ExportRecord | None = None,
) -> AnnotationFormat:
    """Opens a folder of annotations; see `detect.open_source`.

    Args:
        task: `segmentation` or `classification`.
        options: `input.labels`.
        classes: `input.classes`.
        labels: absolute path of the folder.
        images: what is listed.
        reason: the text that `detect_folder` returned.
        record: of the export of ours that the folder is a part of.

    Raises:
        UsageError: the task or an option does not fit, or there are no masks.
    """
    chosen = options.format
    if chosen == "auto":
        chosen = "pascal_voc" if is_folder(os.path.join(labels, MASKS)) else "mask_images"
        reason += f" that holds {MASKS}" if chosen == "pascal_voc" else ""
    if task == "classification":
        raise UsageError(f"{labels}: holds masks ({reason}), and task is classification. Use task: segmentation.")
    given = [*(f"columns.{role}" for role in options.columns), *options.code]
    for option in [*given, *(["pattern"] if options.pattern and chosen == "pascal_voc" else [])]:
        raise ConfigError(f"input.labels.{option}", f"not used by {chosen} ({reason})", "Remove it.")
    notes = (f"labels: {chosen}, since {reason}",) if options.format == "auto" else ()
    if chosen == "pascal_voc":
        return PascalVoc(labels, images, classes, notes, options.others)
    return MaskImages(labels, images, classes, notes, options.pattern, options.others, record)


# Names of images that must all be unknown, and all be known by a pattern.
_NAMES_SEEN = 1000
_RLE_COLUMNS = (
    "Image_Label,EncodedPixels (file_Class) or ImageId,ClassId,EncodedPixels or ImageId_ClassId,EncodedPixels or, for "
    "one class, ImageId,EncodedPixels"
)


@dataclass(frozen=True)
class _TableFormat:
    """A format, why it is that one, and its columns.

    Attributes:
        format: `rle_csv`, `label_csv` or `captions`.
        reason: why.
        roles: columns that have a role.
        captions: columns of captions.
        one_hot: columns of classes.
    """

    format: str
    reason: str
    roles: Mapping[str, int]
    captions: tuple[int, ...] = ()
    one_hot: OneHot | None = None


def open_table_source(
    task: str,
    options: LabelsConfig,
    classes: Mapping[str, int | None] | None,
    path: str,
    images: Images,
    spans: Spans = ONE_FILE,
    record: ExportRecord | None = None,
) -> AnnotationFormat:
    """Opens a CSV of annotations; see `shardwright.formats.detect.open_source`."""
    table = JoinedTable.join(spans.parts) if spans.parts else Table.open(path)
    detected = _detect_table(task, options, classes, table)
    for name in options.of_classes if detected.format != "label_csv" else ():
        problem = f"{table.path} is not a table of classes ({detected.reason})"
        raise ConfigError(f"input.labels.{name}", problem, "Remove it.")
    if detected.one_hot is not None and options.separator:
        raise ConfigError("input.labels.separator", f"{table.path} has a column for each class", "Remove it.")
    notes = (f"labels: {detected.format}, since {detected.reason}",) if options.format == "auto" else ()
    notes = (*notes, columns_note(table, detected.roles, detected.captions))
    if isinstance(table, JoinedTable):
        table = table.with_images(detected.roles[IMAGE_LABEL if IMAGE_LABEL in detected.roles else IMAGE], spans.agree)
    taken = {*detected.roles.values(), *detected.captions, *(detected.one_hot.columns if detected.one_hot else ())}
    left = [header for i, header in enumerate(table.header) if i not in taken and header]
    if left and not options.features:
        notes = (*notes, f"left out: {shown_header(left)} (input.labels.features takes further columns)")
    names = NameIndex(images.keys, images.skip, options.key_pattern, exact=record is not None)
    hint = ""
    if options.key_pattern is None and IMAGE in detected.roles and record is None:
        names, note, hint = _by_parts(table, detected.roles[IMAGE], images, names)
        notes = (*notes, *note)
    given = TableInput(
        table=table,
        columns=detected.roles,
        images=images,
        names=names,
        classes=classes,
        notes=notes,
        further=FurtherColumns(table, options.features, taken, len(images.keys)),
        captions=detected.captions,
        hint=hint,
    )
    if detected.format == "rle_csv":
        return RleCsv(given, options.code, record)
    if detected.format == "captions":
        return CaptionCsv(given)
    if detected.one_hot is not None:
        return OneHotCsv(given, detected.one_hot)
    return LabelCsv(given, options, record)


def _detect_table(
    task: str, options: LabelsConfig, classes: Mapping[str, int | None] | None, table: Table
) -> _TableFormat:
    found = choose_columns(table, options.columns)
    if task == "classification" and MASK not in options.columns and _is_counts(table, found):
        del found[MASK]
    wanted, reason = options.format, "input.labels.format is set"
    if wanted == "auto" and MASK in found:
        wanted, reason = "rle_csv", f"{table.name} has a column {table.header[found[MASK]]!r}"
    if wanted == "rle_csv":
        return _masks(task, options, table, found, reason)
    if task == "segmentation":
        raise missing_columns(table, _RLE_COLUMNS)
    if IMAGE in found and LABEL not in found and wanted != "captions":
        asked = [table.header.index(name) for name in options.features if name in table.header]
        taken = {*asked, *(found[role] for role in (IMAGE, CAPTION) if role in found)}
        one_hot = detect_one_hot(table, taken, classes, options.multi)
        if one_hot is not None:
            reason = one_hot.reason if wanted == "auto" else reason
            return _TableFormat("label_csv", reason, {IMAGE: found[IMAGE]}, _asked_captions(options, found), one_hot)
    captions = caption_columns(table, found, list(found.values()))
    if wanted == "captions" or (wanted == "auto" and IMAGE in found and LABEL not in found and captions):
        if IMAGE not in found or not captions:
            raise missing_columns(table, "one column for the image and one or more for its captions")
        _check_classes(table, classes)
        shown = shown_header([table.header[i] for i in captions])
        reason = f"{table.name} has no classes, but captions in {shown}" if wanted == "auto" else reason
        return _TableFormat("captions", reason, {IMAGE: found[IMAGE]}, captions)
    if not {IMAGE, LABEL} <= set(found):
        expected = "one column for the image and one for its class, e.g. image,label, or a column of 0 and 1 a class"
        raise missing_columns(table, expected)
    reason = f"{table.name} has no column of masks" if wanted == "auto" else reason
    return _TableFormat(
        "label_csv", reason, {role: found[role] for role in (IMAGE, LABEL)}, _asked_captions(options, found)
    )


def _by_parts(table: Table, column: int, images: Images, names: NameIndex) -> tuple[NameIndex, tuple[str, ...], str]:
    """How rows name images where none of the first names is a path or a file name, see `key_patterns`.

    Returns:
        How they do, a note if that is by parts of their paths, and a hint if no row should match.
    """
    first: dict[str, None] = {}
    for row in table.rows():
        name = row.fields[column].strip() if column < len(row.fields) else ""
        if not name or name in first:
            continue
        if names.find(name) is not None:
            return names, (), ""
        first[name] = None
        if len(first) == _NAMES_SEEN:
            break
    guess = detect_key_pattern(list(first), images.keys, images.skip)
    if guess is None:
        return names, (), ""
    line = f"input.labels.key_pattern: {quoted(guess.pattern)}"
    # A number that a path contains too may be the row's number; a name of several pieces does not match by chance.
    if guess.found < len(first) or guess.pieces < 2:
        return names, (), f"Of its first {len(first)} names {guess.found} are images by {line}"
    note = f"{line}, since no name is a path, and by their parts each of the first {len(first)} is one image"
    return NameIndex(images.keys, images.skip, guess.pattern), (note,), ""


def _masks(task: str, options: LabelsConfig, table: Table, found: Mapping[str, int], reason: str) -> _TableFormat:
    if task == "classification":
        raise UsageError(
            f"{table.path}: holds masks ({reason}), and task is classification. "
            "Use task: segmentation, or input.labels.format: label_csv for its columns of image and class."
        )
    if MASK not in found or not (IMAGE_LABEL in found or IMAGE in found):
        raise missing_columns(table, _RLE_COLUMNS)
    # With one column for both, a separate image or label column that only looks like one must not count.
    roles = (IMAGE_LABEL, MASK) if IMAGE_LABEL in found else (IMAGE, LABEL, MASK)
    chosen = {role: found[role] for role in roles if role in found}
    return _TableFormat("rle_csv", reason, chosen, _asked_captions(options, found))


def _is_counts(table: Table, found: Mapping[str, int]) -> bool:
    """Returns whether the column of masks is one in segmentation only: many tables have counts of something else."""
    return MASK in found and reduce_header(table.header[found[MASK]]) == "counts"


def _asked_captions(options: LabelsConfig, found: Mapping[str, int]) -> tuple[int, ...]:
    """Returns captions next to labels or masks, only where the configuration names their column."""
    return (found[CAPTION],) if CAPTION in options.columns else ()


def _check_classes(table: Table, classes: Mapping[str, int | None] | None) -> None:
    if classes is not None:
        raise UsageError(
            f"{table.path}: contains captions and no classes, but input.classes names some. Remove input.classes, or "
            "name the column of classes in input.labels.columns.label."
        )


_LOOK_INTO = 4096
# The options of tables that JSON lines have, too.
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
) -> AnnotationFormat:
    """Opens the annotations of an input.

    Args:
        task: `segmentation` or `classification`.
        options: `input.labels`; the path is in `labels`, not in its `path`.
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
) -> AnnotationFormat:
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
    why_folder = detect_folder(options.format, labels)
    if why_folder:
        _check_spans(spans, f"{labels} holds masks")
        return open_folder(task, options, classes, labels, images, why_folder, record)
    if options.pattern is not None:
        raise ConfigError("input.labels.pattern", f"{labels} is not a folder of masks", "Remove it.")
    if options.others != REFUSE:
        raise ConfigError("input.labels.others", f"{labels} is not a folder of masks", "Remove it.")
    why_lines = _why_lines(options.format, labels)
    if why_lines:
        _check_spans(spans, f"{labels} holds JSON lines")
        return _open_lines(task, options, classes, labels, images, why_lines)
    why_coco = _why_coco(options.format, labels)
    if why_coco:
        _check_spans(spans, f"{labels} is COCO JSON")
        _check_for_coco(task, why_coco, labels, options)
        notes = (f"labels: coco_json, since {why_coco}",) if options.format == "auto" else ()
        names = NameIndex(images.keys, images.skip, options.key_pattern)
        return CocoJson(labels, images, names, classes, notes, boxes=options.boxes, masks=task == "segmentation")
    if options.boxes:
        raise ConfigError("input.labels.boxes", f"{labels} is not COCO JSON", "Remove it.")
    return open_table_source(task, options, classes, labels, images, spans, record)


def _check_spans(spans: Spans, what: str) -> None:
    if spans.parts:
        raise UsageError(
            f"input.labels.path: {what}, and of several spans, or with on_conflict: with_span, only CSV tables are "
            "joined. Read one span, or write one file for all."
        )


def _open_keys(options: LabelsConfig, images: Images, classes: Mapping[str, int | None] | None) -> AnnotationFormat:
    notes: tuple[str, ...] = ()
    chosen = options.format
    found = class_level(images.keys, images.skip, classes, asked=chosen == CLASS_FOLDERS)
    if chosen == "auto":
        if options.pattern is None:
            chosen, reason = detect_key_format(images.keys, images.skip, classes, found)
        else:
            chosen, reason = FILE_NAME, "input.labels.pattern is given"
        notes = (f"labels: {_KEY_FORMATS[chosen]}, since {reason}",)
    if chosen == FILE_NAME:
        return FileNames(images.keys, images.skip, classes, notes, options.pattern)
    check_either(found)
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
        # The first line of a JSON document of many lines is not an object, and a document of one line is COCO's.
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
) -> AnnotationFormat:
    if task == "segmentation":
        raise UsageError(f"{labels}: JSON lines ({reason}) hold captions, no masks. Use task: classification.")
    if classes is not None:
        raise ConfigError("input.classes", f"{labels} holds captions and no classes ({reason})", "Remove it.")
    for option in options.of_tables:
        if option not in _OF_LINES:
            raise ConfigError(f"input.labels.{option}", f"{labels} is not a CSV ({reason})", "Remove it.")
    notes = (f"labels: captions, since {reason}",) if options.format == "auto" else ()
    names = NameIndex(images.keys, images.skip, options.key_pattern)
    return CaptionJsonl(labels, images, names, notes, options.columns)


def _why_coco(label_format: str, labels: str) -> str:
    """Returns why a file is taken for COCO's, or an empty text. No header of a table begins with a brace."""
    if label_format != "auto":
        return "input.labels.format is set" if label_format == "coco_json" else ""
    name = os.path.basename(labels)
    if name.lower().endswith(".json"):
        return f"{name} ends with .json"
    with open_table(labels) as file, suppress(UnicodeDecodeError):
        return f"{name} begins with a brace" if file.read(_LOOK_INTO).lstrip()[:1] == "{" else ""
    return ""  # The reader of tables reports what is wrong.


def _check_for_coco(task: str, reason: str, labels: str, options: LabelsConfig) -> None:
    if task == "classification" and not options.boxes:
        raise UsageError(
            f"{labels}: holds masks (coco_json, since {reason}), and task is classification. Use task: segmentation, "
            "or input.labels.boxes: true for boxes without masks."
        )
    for option in options.of_tables:
        raise UsageError(
            f"input.labels.{option}: {labels} is COCO JSON (since {reason}), which states this itself. "
            "Remove the option."
        )
