"""Opens tables, whose columns decide on the format: CSV, Parquet, and JSON lines of captions or numbers."""

from __future__ import annotations

from dataclasses import replace

from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import AnnotationFormat, Images
from shardwright.formats.captions import CaptionCoco, CaptionCsv, CaptionJsonl
from shardwright.formats.columns import FurtherColumns
from shardwright.formats.head import Head
from shardwright.formats.image_names import NameIndex, detect_key_pattern, quoted
from shardwright.formats.label_csv import LabelCsv
from shardwright.formats.numbers import LinesTable, Numbers
from shardwright.formats.one_hot import OneHotCsv
from shardwright.formats.registry import Decision
from shardwright.formats.request import SEGMENTATION, Request
from shardwright.formats.rle_csv import RleCsv
from shardwright.formats.rows import TableInput
from shardwright.formats.table_formats import CAPTIONS, NUMBERS, TableFormat, detect_table, find_number_columns
from shardwright.formats.table_values import find_image_column, headless_roles, open_headless
from shardwright.formats.tables import (
    CAPTION,
    IMAGE,
    IMAGE_LABEL,
    JoinedTable,
    Table,
    choose_columns,
    columns_note,
    shown_header,
)
from shardwright.images.header import has_image_ending
from shardwright.label_formats import AUTO, BY_NAME

# Names of images that must all be unknown, and all be known by a pattern.
_NAMES_SEEN = 1000


def open_table(request: Request, head: Head, decision: Decision) -> AnnotationFormat:
    """Opens a table.

    Args:
        request: what is asked.
        head: of the file.
        decision: the format where the configuration states it, or COCO captions.

    Raises:
        UsageError: columns are missing, do not fit the task, or can be read in two ways.
    """
    chosen = request.options.format
    if decision.called:
        return _open_coco_captions(request, head, decision)
    if chosen in (AUTO, CAPTIONS, NUMBERS) and (reason := head.why_lines(several=chosen == AUTO)):
        return _open_lines(request, head.path, reason)
    table = JoinedTable.join(request.spans.parts) if request.spans.parts else Table.open(head.path, head.content)
    options = request.options
    if request.record is None:
        table = open_headless(table, has_image_ending)
    if IMAGE not in options.columns and options.key_regex is None and request.record is None:
        column = find_image_column(table, choose_columns(table, options.columns), request.names())
        if column is not None:
            roles = {**(headless_roles(table, column) if table.headless else {}), **options.columns}
            named = replace(options, columns={**roles, IMAGE: table.header[column]})
            request = replace(request, options=named)
    return _open_rows(request, table, detect_table(request, table))


def _open_lines(request: Request, path: str, reason: str) -> AnnotationFormat:
    request.check_one_file(path, BY_NAME[CAPTIONS])
    if request.task == SEGMENTATION:
        raise UsageError(f"{path}: JSON lines ({reason}) hold captions or numbers, no masks. Use task: classification.")
    if request.classes is not None:
        problem = f"{path} holds captions or numbers and no classes ({reason})"
        raise ConfigError("input.classes", problem, "Remove input.classes.")
    if request.options.format != CAPTIONS:
        numbers = _numbers_of_lines(request, path)
        if numbers is not None:
            return numbers
    request.check_options(BY_NAME[CAPTIONS], reason, without=("features",))
    notes = request.note("captions", reason)
    return CaptionJsonl(request.given(notes), path, request.names(), request.options.columns)


def _numbers_of_lines(request: Request, path: str) -> AnnotationFormat | None:
    """Opens JSON lines as a table of numbers; `None` where the format is not set and they have captions or no numbers.

    Raises:
        UsageError: the format is set, and the first line is not an object.
    """
    wanted = request.options.format == NUMBERS
    if not wanted and set(request.options.columns) - {IMAGE}:
        return None
    try:
        table = LinesTable.of(path)
    except UsageError:
        if wanted:
            raise
        return None
    found = choose_columns(table, request.options.columns)
    if not wanted and (IMAGE not in found or CAPTION in found):
        return None
    detected = find_number_columns(request, table, found)
    return None if detected is None else _open_rows(request, table, detected)


def _open_coco_captions(request: Request, head: Head, decision: Decision) -> AnnotationFormat:
    row, called = BY_NAME[CAPTIONS], decision.called
    request.check_one_file(head.path, row)
    if request.task == SEGMENTATION:
        raise UsageError(f"{head.path}: holds {called}, no masks. Use task: classification.")
    if request.classes is not None:
        raise ConfigError("input.classes", f"{head.path} holds {called} and no classes", "Remove input.classes.")
    request.check_options(row, f"{head.name} holds {called}", without=("columns.image", "columns.caption", "features"))
    return CaptionCoco(request.given(request.note(CAPTIONS, decision.reason)), head.path, request.names())


def _open_rows(request: Request, table: Table, detected: TableFormat) -> AnnotationFormat:
    options, images, spans, record = request.options, request.images, request.spans, request.record
    one_hot = ("separator",) if detected.one_hot is not None else ()
    request.check_options(BY_NAME[detected.format], detected.reason, without=one_hot)
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
