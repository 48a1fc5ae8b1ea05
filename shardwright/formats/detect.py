"""Detects the format of annotations (`input.labels.format: auto`) with the reason, and opens them.

A file or a folder of an annotation tool is recognized by what only that tool writes. Another folder holds mask images
or a tree of Pascal VOC; another file is JSON lines, COCO JSON or a table, whose columns decide.
Without either, the keys of the images state the classes: by folders, or by file names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from shardwright.config.input import AUTO, COCO_RULE, IN_FOLDERS, OF_TOOLS, REFUSE, TFRECORD, LabelsConfig
from shardwright.dataset.manifest import NONE
from shardwright.errors import ConfigError, Reading, UsageError
from shardwright.formats.base import AnnotationFormat, FormatInput, Images, Unlabeled
from shardwright.formats.captions import CaptionCoco, CaptionCsv, CaptionJsonl
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
from shardwright.formats.known_tools import FOLDERS, READERS, KnownTool, check_known, find_tool
from shardwright.formats.label_csv import LabelCsv
from shardwright.formats.mask_images import MaskImages, list_masks
from shardwright.formats.numbers import LinesTable, Numbers
from shardwright.formats.objects import ObjectInput
from shardwright.formats.one_hot import OneHotCsv
from shardwright.formats.pascal_voc import MASKS, PascalVoc
from shardwright.formats.rle_csv import RleCsv
from shardwright.formats.rows import TableInput
from shardwright.formats.table_formats import (
    CAPTIONS,
    NUMBERS,
    TableFormat,
    TableRequest,
    detect_table,
    find_number_columns,
    is_counts,
)
from shardwright.formats.table_values import find_image_column, headless_roles, open_headless, run_columns
from shardwright.formats.tables import (
    CAPTION,
    IMAGE,
    IMAGE_LABEL,
    MASK,
    ONE_FILE,
    JoinedTable,
    Spans,
    Table,
    choose_columns,
    columns_note,
    shown_header,
)
from shardwright.formats.yolo import YAML_ENDINGS
from shardwright.images.header import has_image_ending
from shardwright.storage import is_folder, open_table
from shardwright.untrusted import parse_untrusted_json

SEGMENTATION, CLASSIFICATION = "segmentation", "classification"
BOX_CSV = "box_csv"
# Formats of which no file of annotations is read.
WITHOUT_PATH = (CLASS_FOLDERS, FILE_NAME, "none", TFRECORD)
# The only options of tables that such formats have.
_OF_TABLES = {
    "via_json": ("columns.label",),
    **dict.fromkeys(("label_jsonl", "box_csv"), ("columns.image", "columns.label")),
}
_KEY_FORMATS = {CLASS_FOLDERS: "class folders", FILE_NAME: "file_name"}
_LOOK_INTO = 4096
# The options of tables that JSON lines have, too.
_OF_LINES = ("columns.image", "columns.caption")
# Names of images that must all be unknown, and all be known by a pattern.
_NAMES_SEEN = 1000


@dataclass(frozen=True)
class _Request:
    """The arguments of `open_source`, without the path."""

    task: str
    options: LabelsConfig
    classes: Mapping[str, int | None] | None
    images: Images
    spans: Spans
    record: ExportRecord | None

    def note(self, label_format: str, reason: str) -> tuple[str, ...]:
        """Returns a note of a format, where it was detected."""
        return (f"labels: {label_format}, since {reason}",) if self.options.format == "auto" else ()

    @property
    def of_table(self) -> TableRequest:
        """Returns the arguments for a table."""
        return TableRequest(self.task, self.options, self.classes, self.record is not None)

    def given(self, notes: tuple[str, ...] = ()) -> FormatInput:
        """Returns the arguments that every format has."""
        return FormatInput(self.images, self.classes, notes)

    def names(self, *, exact: bool = False) -> NameIndex:
        """Returns how annotations name the images."""
        images = self.images
        return NameIndex(
            images.keys, images.skip, self.options.key_regex, exact=exact, root=images.root, first=images.first
        )


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
        return _open(_Request(task, options, classes, images, spans, None), labels)
    options, classes = export_options(export.record, options, classes)
    request = _Request(task, options, classes, images, spans, export.record)
    return Exported(request.given(), _open(request, labels), export)


def _open(request: _Request, path: str | None) -> AnnotationFormat:
    options, record, images = request.options, request.record, request.images
    if record is not None and record.labels == NONE and options.format == "auto":
        return Unlabeled(request.given())
    if path is None:
        try:
            return _open_keys(request)
        except UsageError:
            _check_next_to_images(request)
            raise
    tool = detect_tool(options.format, path, images.root, images.keys)
    check_known(path, tool)
    if tool is not None and tool.format == CAPTIONS:
        return _open_coco_captions(request, path, tool)
    if tool is not None or options.format in OF_TOOLS:
        return _open_tool(request, path, tool)
    if reason := detect_folder(options.format, path):
        _check_spans(request.spans, f"{path} holds masks")
        return _open_folder(request, path, reason)
    for option, default in (("regex", None), ("unlisted_values", REFUSE), ("values", AUTO), ("threshold", {})):
        if getattr(options, option) != default:
            raise _not_used(option, f"{path} is not a folder of masks")
    if reason := _detect_lines(options.format, path):
        _check_spans(request.spans, f"{path} holds JSON lines")
        return _open_lines(request, path, reason)
    if reason := _detect_coco(options.format, path):
        _check_spans(request.spans, f"{path} is COCO JSON")
        return _open_coco(request, path, reason)
    for option in ("boxes", *(["polygons"] if options.polygons != COCO_RULE else [])):
        if getattr(options, option):
            raise _not_used(option, f"{path} is not COCO JSON")
    return _open_table(request, path)


def _check_next_to_images(request: _Request) -> None:
    """Checks that no files of an annotation tool are next to images whose names and folders state no class.

    Raises:
        UsageError: there are some; with the lines that read them.
    """
    root = request.images.root
    tool = detect_tool(request.options.format, root, root, request.images.keys) if root else None
    if tool is not None and tool.format:
        raise UsageError(
            f"input.labels.path: missing, and {root} holds {tool.name} next to the images. To read them, write "
            f"input.labels: {{path: {quoted(root)}, format: {tool.format}}}."
        )


def detect_tool(label_format: str, path: str, root: str = "", keys: Sequence[str] = ()) -> KnownTool | None:
    """Returns the annotation tool that a file or a folder is of, where the format is to be detected.

    Args:
        label_format: `input.labels.format`.
        path: absolute path of the file or the folder.
        root: folder of the images.
        keys: the images; in a folder of annotations these do not count.
    """
    if label_format == CAPTIONS and not is_folder(path):
        tool = find_tool(path)
        return tool if tool is not None and tool.format == CAPTIONS else None
    if label_format != "auto" or (is_folder(path) and is_folder(os.path.join(path, MASKS))):
        return None
    inside = is_folder(path) and f"{root}/".startswith(f"{path.rstrip('/')}/")
    return find_tool(path, frozenset(os.path.join(root, key) for key in keys) if inside else ())


def _open_tool(request: _Request, path: str, tool: KnownTool | None) -> AnnotationFormat:
    options = request.options
    chosen = options.format if tool is None else tool.format
    reason = "input.labels.format is set" if tool is None else f"{os.path.basename(path.rstrip('/'))} holds {tool.name}"
    _check_spans(request.spans, f"{path} is of an annotation tool ({reason})")
    if chosen in FOLDERS and not is_folder(path) and not path.lower().endswith(YAML_ENDINGS):
        held = chosen if tool is None else tool.name
        raise UsageError(f"input.labels.path: {path}: holds {held}. Give the folder of these files.")
    given = [*options.of_tables, *(["regex"] if options.regex is not None else [])]
    for option in given:
        if option not in _OF_TABLES.get(chosen, ()):
            raise _not_used(option, f"not used by {chosen} ({reason})")
    return READERS[chosen](
        ObjectInput(
            images=request.images,
            classes=request.classes,
            notes=request.note(chosen, reason),
            path=path,
            names=request.names(),
            options=options,
            masks=request.task == SEGMENTATION,
        )
    )


def _not_used(option: str, problem: str) -> ConfigError:
    return ConfigError(f"input.labels.{option}", problem, f"Remove input.labels.{option}.")


def _check_spans(spans: Spans, what: str) -> None:
    if spans.parts:
        raise UsageError(
            f"input.labels.path: {what}, and of several spans, or with on_conflict: with_span, only CSV tables are "
            "joined. Read one span, or write one file for all."
        )


def detect_task(labels: str | None, options: LabelsConfig, root: str = "", keys: Sequence[str] = ()) -> tuple[str, str]:
    """Detects the task that annotations are for.

    Args:
        labels: absolute path of the table or the folder, or `None`.
        options: `input.labels`.
        root: see `detect_tool`.
        keys: likewise.

    Returns:
        The task, and why.

    Raises:
        UsageError: the file cannot be read, or fits both tasks.
    """
    if labels is None:
        return CLASSIFICATION, "there are no masks"
    tool = detect_tool(options.format, labels, root, keys)
    if options.format == BOX_CSV or (tool is not None and tool.format in (BOX_CSV, CAPTIONS)):
        return CLASSIFICATION, f"{os.path.basename(labels)} holds {'boxes' if tool is None else tool.name}"
    if options.format in OF_TOOLS or (tool is not None and tool.format):
        return SEGMENTATION, f"{os.path.basename(labels.rstrip('/'))} is of an annotation tool"
    if reason := detect_folder(options.format, labels):
        return SEGMENTATION, f"{reason}, of masks"
    if reason := _detect_lines(options.format, labels):
        return CLASSIFICATION, f"{reason}: there are no masks"
    if reason := _detect_coco(options.format, labels):
        return SEGMENTATION, reason
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


# --- without a path: the keys


def _open_keys(request: _Request) -> AnnotationFormat:
    options, images, classes, record = request.options, request.images, request.classes, request.record
    if options.format == "none":
        return Unlabeled(request.given())
    if record is not None and options.format in ("auto", CLASS_FOLDERS):
        return ClassFolders(request.given(), folders=record.folders)
    if request.task == "segmentation":
        formats = "Segmentation needs a CSV with run lengths, COCO JSON, or a folder of masks. For images alone, set "
        formats += "task: classification and input.labels.format: none."
        raise ConfigError("input.labels.path", "missing", formats)
    notes: tuple[str, ...] = ()
    chosen = options.format
    found = class_level(images.keys, images.skip, classes, asked=chosen == CLASS_FOLDERS)
    if chosen == "auto":
        if options.regex is None:
            chosen, reason = detect_key_format(images.keys, images.skip, classes, found)
        else:
            chosen, reason = FILE_NAME, "input.labels.regex is given"
        notes = request.note(_KEY_FORMATS[chosen], reason)
    if chosen == FILE_NAME:
        return FileNames(request.given(notes), options.regex)
    check_either(found)
    notes += (found.note,) if found.note else ()
    return ClassFolders(request.given(notes), found.level)


# --- folders


def detect_folder(label_format: str, labels: str) -> str:
    """Returns why annotations are taken for a folder of files, or an empty text."""
    if label_format != "auto":
        return "input.labels.format is set" if label_format in IN_FOLDERS else ""
    return f"{os.path.basename(labels.rstrip('/'))} is a folder" if is_folder(labels) else ""


def _open_folder(request: _Request, path: str, reason: str) -> AnnotationFormat:
    options, chosen = request.options, request.options.format
    if chosen == "auto":
        chosen = "pascal_voc" if is_folder(os.path.join(path, MASKS)) else "mask_images"
        reason += f" that holds {MASKS}" if chosen == "pascal_voc" else ""
    if request.task == "classification":
        if options.format == "auto" and chosen == "mask_images":
            list_masks(path)  # Reports what else is in the folder.
        raise UsageError(
            f"{path}: holds masks ({reason}), and task is classification. Use task: segmentation, or give a file of "
            "labels. Class folders are read from input.images."
        )
    given = [*(f"columns.{role}" for role in options.columns), *options.code]
    only = [name for name in ("regex", "key_regex", "threshold") if getattr(options, name) and chosen == "pascal_voc"]
    for option in [*given, *only]:
        raise _not_used(option, f"not used by {chosen} ({reason})")
    notes = request.note(chosen, reason)
    if chosen == "pascal_voc":
        return PascalVoc(request.given(notes), path, options)
    return MaskImages(request.given(notes), path, options, request.record)


# --- JSON


def _detect_lines(label_format: str, path: str) -> str:
    """Returns why a file is taken for JSON lines, or an empty text; a table has a header instead."""
    if label_format not in ("auto", CAPTIONS, NUMBERS):
        return ""
    name = os.path.basename(path)
    if name.lower().endswith((".jsonl", ".ndjson", ".jsonlines")):
        return f"{name} ends with {os.path.splitext(name)[1]}"
    with open_table(path) as file, suppress(ValueError):
        # The first line of a JSON document of many lines is not an object, and a document of one line is COCO's.
        first, second = file.readline(_LOOK_INTO), file.readline(_LOOK_INTO)
        several = label_format != "auto" or isinstance(parse_untrusted_json(second), dict)
        if isinstance(parse_untrusted_json(first), dict) and several:
            return f"each line of {name} is a JSON object"
    return ""


def _open_lines(request: _Request, path: str, reason: str) -> AnnotationFormat:
    if request.task == "segmentation":
        raise UsageError(f"{path}: JSON lines ({reason}) hold captions or numbers, no masks. Use task: classification.")
    if request.classes is not None:
        problem = f"{path} holds captions or numbers and no classes ({reason})"
        raise ConfigError("input.classes", problem, "Remove input.classes.")
    if request.options.format != CAPTIONS:
        numbers = _numbers_of_lines(request, path)
        if numbers is not None:
            return numbers
    for option in request.options.of_tables:
        if option not in _OF_LINES:
            raise _not_used(option, f"{path} is not a CSV ({reason})")
    notes = request.note("captions", reason)
    return CaptionJsonl(request.given(notes), path, request.names(), request.options.columns)


def _numbers_of_lines(request: _Request, path: str) -> AnnotationFormat | None:
    """Opens JSON lines as a table of numbers; `None` where the format is not set and they have captions or no numbers.

    Raises:
        UsageError: the format is set, and the first line is not an object.
    """
    wanted = request.options.format == NUMBERS
    if not wanted and set(request.options.columns) - {IMAGE}:
        return None
    try:
        table = LinesTable.open(path)
    except UsageError:
        if wanted:
            raise
        return None
    found = choose_columns(table, request.options.columns)
    if not wanted and (IMAGE not in found or CAPTION in found):
        return None
    detected = find_number_columns(request.of_table, table, found)
    return None if detected is None else _open_rows(request, table, detected)


def _open_coco_captions(request: _Request, path: str, tool: KnownTool) -> AnnotationFormat:
    reason = f"{os.path.basename(path)} holds {tool.name}"
    _check_spans(request.spans, reason)
    if request.task == SEGMENTATION:
        raise UsageError(f"{path}: holds {tool.name}, no masks. Use task: classification.")
    if request.classes is not None:
        raise ConfigError("input.classes", f"{path} holds {tool.name} and no classes", "Remove input.classes.")
    for option in request.options.of_tables:
        raise _not_used(option, f"{path} is not a table ({reason})")
    return CaptionCoco(request.given(request.note(CAPTIONS, reason)), path, request.names())


def _detect_coco(label_format: str, path: str) -> str:
    """Returns why a file is taken for COCO's, or an empty text. No header of a table begins with a brace."""
    if label_format != "auto":
        return "input.labels.format is set" if label_format == "coco_json" else ""
    name = os.path.basename(path)
    if name.lower().endswith(".json"):
        return f"{name} ends with .json"
    with open_table(path) as file, suppress(UnicodeDecodeError):
        return f"{name} begins with a brace" if file.read(_LOOK_INTO).lstrip()[:1] == "{" else ""
    return ""  # The reader of tables reports what is wrong.


def _open_coco(request: _Request, path: str, reason: str) -> AnnotationFormat:
    options, masks = request.options, request.task == "segmentation"
    if not masks and not options.boxes:
        raise UsageError(
            f"{path}: holds masks (coco_json, since {reason}), and task is classification. Use task: segmentation, "
            "or input.labels.boxes: true for boxes without masks."
        )
    for option in options.of_tables:
        raise _not_used(option, f"{path} is COCO JSON (since {reason}), which states this itself")
    notes = request.note("coco_json", reason)
    return CocoJson(request.given(notes), path, request.names(), options, masks=masks)


# --- tables


def _open_table(request: _Request, path: str) -> AnnotationFormat:
    table = JoinedTable.join(request.spans.parts) if request.spans.parts else Table.open(path)
    options = request.options
    if request.record is None:
        table = open_headless(table, has_image_ending)
    if IMAGE not in options.columns and options.key_regex is None and request.record is None:
        column = find_image_column(table, choose_columns(table, options.columns), request.names())
        if column is not None:
            roles = {**(headless_roles(table, column) if table.headless else {}), **options.columns}
            named = replace(options, columns={**roles, IMAGE: table.header[column]})
            request = replace(request, options=named)
    return _open_rows(request, table, detect_table(request.of_table, table))


def _open_rows(request: _Request, table: Table, detected: TableFormat) -> AnnotationFormat:
    options, images, spans, record = request.options, request.images, request.spans, request.record
    for name in options.of_classes if detected.format != "label_csv" else ():
        raise _not_used(name, f"{table.path} is not a table of classes ({detected.reason})")
    if detected.one_hot is not None and options.separator:
        raise _not_used("separator", f"{table.path} has a column for each class")
    headless = (f"{table.name}: its first line is a row, since it names an image",) if table.headless else ()
    notes = (
        *request.note(detected.format, detected.reason),
        *headless,
        columns_note(table, detected.roles, detected.captions),
    )
    if isinstance(table, JoinedTable):
        table = table.with_images(detected.roles[IMAGE_LABEL if IMAGE_LABEL in detected.roles else IMAGE], spans.agree)
    taken = {*detected.roles.values(), *detected.captions, *(detected.one_hot.columns if detected.one_hot else ())}
    left = [header for i, header in enumerate(table.header) if i not in taken and header not in ("", *detected.numbers)]
    if left and not options.features:
        notes = (*notes, f"left out: {shown_header(left)} (input.labels.features takes further columns)")
    names = request.names(exact=record is not None)
    hint = ""
    if options.key_regex is None and IMAGE in detected.roles and record is None:
        names, note, hint = _by_parts(table, detected.roles[IMAGE], images, names)
        notes = (*notes, *note)
    given = TableInput(
        table=table,
        columns=detected.roles,
        images=images,
        names=names,
        classes=request.classes,
        notes=notes,
        further=FurtherColumns(
            table, detected.numbers or options.features, taken, len(images.keys), required=bool(detected.numbers)
        ),
        captions=detected.captions,
        hint=hint,
    )
    if detected.format == "rle_csv":
        return RleCsv(given, options.rle.given, record)
    if detected.format == CAPTIONS:
        return CaptionCsv(given)
    if detected.format == NUMBERS:
        return Numbers(given, detected.numbers)
    if detected.one_hot is not None:
        return OneHotCsv(given, detected.one_hot)
    return LabelCsv(given, options, record)


def _by_parts(table: Table, column: int, images: Images, names: NameIndex) -> tuple[NameIndex, tuple[str, ...], str]:
    """Returns how rows name images where none of the first names is a path or a file name, see `detect_key_pattern`.

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
    line = f"input.labels.key_regex: {quoted(guess.pattern)}"
    # A number that a path contains too may be the row's number; a name of several pieces does not match by chance.
    if guess.found < len(first) or guess.pieces < 2:
        return names, (), f"{guess.found} of its first {len(first)} names are images by {line}"
    note = f"{line}, since no name is a path, and by their parts each of the first {len(first)} is one image"
    return NameIndex(images.keys, images.skip, guess.pattern), (note,), ""
