"""Opens annotations: the format that is stated or detected (`input.labels.format: auto`), with the reason.

A file or a folder that only one format can be is recognized by its head (`registry`). Another folder holds mask images;
another file is JSON lines, COCO JSON or a table, whose columns decide (`table_formats`). Without either, the keys of
the images state the classes: by folders, or by file names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardwright.config.input import LabelsConfig
from shardwright.dataset.manifest import NONE
from shardwright.errors import ConfigError, Reading, UsageError
from shardwright.formats.base import CLASSIFICATION, SEGMENTATION, AnnotationFormat, Request, Unlabeled
from shardwright.formats.class_folders import (
    CLASS_FOLDERS,
    FILE_NAME,
    ClassFolders,
    FileNames,
    class_level,
    detect_key_format,
)
from shardwright.formats.export_record import FoundExport
from shardwright.formats.exported import Exported, export_options
from shardwright.formats.head import Head
from shardwright.formats.image_names import quoted
from shardwright.formats.registry import decide, reader, recognize
from shardwright.formats.signs import YAML_ENDINGS
from shardwright.formats.table_formats import is_counts, open_table
from shardwright.formats.table_values import open_headless, run_columns
from shardwright.formats.tables import IMAGE, IMAGE_LABEL, MASK, Table, choose_columns
from shardwright.images.header import has_image_ending
from shardwright.label_formats import AUTO, BY_NAME, FILES, MASKS, TABLE

_KEY_FORMATS = {CLASS_FOLDERS: "class folders", FILE_NAME: "file_name"}


def open_source(request: Request, *, export: FoundExport | None = None, head: Head | None = None) -> AnnotationFormat:
    """Opens the annotations of an input.

    Args:
        request: what is asked.
        export: the export of ours that they are.
        head: of the path, where it was read already.

    Raises:
        UsageError: the annotations are missing, lack columns, do not fit the task, or can be read in two ways.
    """
    if export is None:
        return _open(request, head)
    options, classes = export_options(export.record, request.options, request.classes)
    request = replace(request, options=options, classes=classes, record=export.record)
    return Exported(request, _open(request, head), export)


def detect_task(labels: str | None, options: LabelsConfig, root: str = "", keys: Sequence[str] = ()) -> tuple[str, str]:
    """Detects the task that annotations are for.

    Args:
        labels: absolute path of the table or the folder, or `None`.
        options: `input.labels`.
        root: see `Head`.
        keys: likewise.

    Returns:
        The task, and why.

    Raises:
        UsageError: the file cannot be read, or fits both tasks.
    """
    if labels is None:
        return CLASSIFICATION, "there are no masks"
    head = Head.read(labels, root, keys)
    row, reason, called, _ = decide(options.format, head)
    if row is not None and (called or row.reads != TABLE):
        if row.name in ("box_csv", "captions"):
            return CLASSIFICATION, f"{head.name} holds {called or 'boxes'}"
        why = f"{reason}, of masks" if row.reads == MASKS else f"{head.name} is of an annotation tool"
        return SEGMENTATION, reason if row.name == "coco_json" else why
    if options.format in (AUTO, "captions", "numbers") and (lines := head.why_lines(several=options.format == AUTO)):
        return CLASSIFICATION, f"{lines}: there are no masks"
    table = open_headless(Table.open(labels), has_image_ending)
    if table.headless and run_columns(table, ()):
        return SEGMENTATION, f"{table.name} has run lengths"
    found = choose_columns(table, options.columns)
    if MASK not in found or not (IMAGE_LABEL in found or IMAGE in found):
        return CLASSIFICATION, f"{table.name} has no column of masks"
    header = table.header[found[MASK]]
    if MASK in options.columns or not is_counts(table, found):
        return SEGMENTATION, f"{table.name} has the column {header!r}"
    problem = f"{labels}: the column {header!r} may be masks as COCO counts, or a number. Set task."
    raise UsageError(problem).with_readings(
        Reading("it has masks", {"task": SEGMENTATION}), Reading("it has numbers", {"task": CLASSIFICATION})
    )


def _open(request: Request, head: Head | None) -> AnnotationFormat:
    options, images = request.options, request.images
    if request.record is not None and request.record.labels == NONE and options.format == AUTO:
        return Unlabeled(request)
    if not request.path:
        try:
            return _open_keys(request)
        except UsageError:
            _check_next_to_images(request)
            raise
    head = head or Head.read(request.path, images.root, images.keys)
    decision = decide(options.format, head)
    row, request = decision.row, replace(request, content=head.content)
    if row is None or row.reads == TABLE:
        return open_table(request, head, decision)
    request.check_one_file(row)
    if row.reads == MASKS and request.task == CLASSIFICATION:
        if not decision.called and options.format == AUTO:
            reader(row.reader)(request)  # Reports what else is in the folder.
        raise UsageError(
            f"{head.path}: holds masks ({decision.reason}), and task is classification. Use task: segmentation, or "
            "give a file of labels. Class folders are read from input.images."
        )
    if row.reads == FILES and not head.folder and head.ending not in YAML_ENDINGS:
        held = decision.called or row.name
        raise UsageError(f"input.labels.path: {head.path}: holds {held}. Give the folder of these files.")
    request.check_options(row, decision.reason)
    return reader(row.reader)(replace(request, notes=request.note(row.name, decision.reason)))


def _check_next_to_images(request: Request) -> None:
    """Checks that no files of an annotation tool are next to images whose names and folders state no class.

    Raises:
        UsageError: there are some; with the lines that read them.
    """
    root = request.images.root
    found = recognize(Head.read(root, root, request.images.keys)) if root and request.options.format == AUTO else None
    if found is not None and found.row is not None and found.row.reads == FILES:
        raise UsageError(
            f"input.labels.path: missing, and {root} holds {found.called} next to the images. To read them, write "
            f"input.labels: {{path: {quoted(root)}, format: {found.row.name}}}."
        )


def _open_keys(request: Request) -> AnnotationFormat:
    options, images, classes, record = request.options, request.images, request.classes, request.record
    if options.format == "none":
        return Unlabeled(request)
    if record is not None and options.format in ("auto", CLASS_FOLDERS):
        return ClassFolders(request, folders=record.folders)
    if request.task == SEGMENTATION:
        formats = "Segmentation needs a CSV with run lengths, COCO JSON, or a folder of masks. For images alone, set "
        formats += "task: classification and input.labels.format: none."
        raise ConfigError("input.labels.path", "missing", formats)
    notes: tuple[str, ...] = ()
    chosen = options.format
    found = class_level(images.keys, images.skip, classes, asked=chosen == CLASS_FOLDERS)
    if chosen == AUTO:
        if options.regex is None:
            chosen, reason = detect_key_format(images.keys, images.skip, classes, found)
        else:
            chosen, reason = FILE_NAME, "input.labels.regex is given"
        notes = request.note(_KEY_FORMATS[chosen], reason)
    request.check_options(BY_NAME[chosen], "input.labels.path is not given")
    if chosen == FILE_NAME:
        return FileNames(replace(request, notes=notes))
    if found.error:
        raise found.error
    notes += (found.note,) if found.note else ()
    return ClassFolders(replace(request, notes=notes), found.level)
