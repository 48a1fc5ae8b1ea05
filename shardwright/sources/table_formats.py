"""Which format a table of annotations has, by its columns, told with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardwright.config.labels import LabelsConfig
from shardwright.errors import ConfigError, UsageError
from shardwright.sources.base import Images, Source
from shardwright.sources.captions import CaptionCsv
from shardwright.sources.csv_source import TableInput
from shardwright.sources.export_record import ExportRecord
from shardwright.sources.further_columns import FurtherColumns
from shardwright.sources.joined_tables import ONE_FILE, JoinedTable, Spans
from shardwright.sources.key_patterns import quoted, tell_key_pattern
from shardwright.sources.label_csv import LabelCsv
from shardwright.sources.names import NameIndex
from shardwright.sources.one_hot import OneHot, OneHotCsv, tell_one_hot
from shardwright.sources.rle_csv import RleCsv
from shardwright.sources.tables import (
    CAPTION,
    IMAGE,
    IMAGE_LABEL,
    LABEL,
    MASK,
    Table,
    caption_columns,
    choose_columns,
    columns_note,
    missing_columns,
    reduce_header,
    shown_header,
)

# Names of images that must all be unknown, and all be known by a pattern.
_NAMES_SEEN = 1000
_RLE_COLUMNS = (
    "Image_Label,EncodedPixels (file_Class) or ImageId,ClassId,EncodedPixels or ImageId_ClassId,EncodedPixels or, for "
    "one class, ImageId,EncodedPixels"
)


@dataclass(frozen=True)
class _Told:
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
) -> Source:
    """Opens a CSV of annotations; see `shardwright.sources.detect.open_source`."""
    table = JoinedTable.join(spans.parts) if spans.parts else Table.open(path)
    told = _tell(task, options, classes, table)
    for name in options.of_classes if told.format != "label_csv" else ():
        raise ConfigError(f"input.labels.{name}", f"{table.path} is no table of classes ({told.reason})", "Remove it.")
    if told.one_hot is not None and options.separator:
        raise ConfigError("input.labels.separator", f"{table.path} has a column for each class", "Remove it.")
    notes = (f"labels: {told.format}, since {told.reason}",) if options.format == "auto" else ()
    notes = (*notes, columns_note(table, told.roles, told.captions))
    if isinstance(table, JoinedTable):
        table = table.with_images(told.roles[IMAGE_LABEL if IMAGE_LABEL in told.roles else IMAGE], spans.agree)
    taken = {*told.roles.values(), *told.captions, *(told.one_hot.columns if told.one_hot else ())}
    left = [header for i, header in enumerate(table.header) if i not in taken and header]
    if left and not options.features:
        notes = (*notes, f"left out: {shown_header(left)} (input.labels.features takes further columns)")
    names = NameIndex(images.keys, images.skip, options.key_pattern, exact=record is not None)
    hint = ""
    if options.key_pattern is None and IMAGE in told.roles and record is None:
        names, note, hint = _by_parts(table, told.roles[IMAGE], images, names)
        notes = (*notes, *note)
    given = TableInput(
        table=table,
        columns=told.roles,
        images=images,
        names=names,
        classes=classes,
        notes=notes,
        further=FurtherColumns(table, options.features, taken, len(images.keys)),
        captions=told.captions,
        hint=hint,
    )
    if told.format == "rle_csv":
        return RleCsv(given, options.code, record)
    if told.format == "captions":
        return CaptionCsv(given)
    if told.one_hot is not None:
        return OneHotCsv(given, told.one_hot)
    return LabelCsv(given, options, record)


def _tell(task: str, options: LabelsConfig, classes: Mapping[str, int | None] | None, table: Table) -> _Told:
    found = choose_columns(table, options.columns)
    if task == "classification" and MASK not in options.columns and _is_counts(table, found):
        del found[MASK]
    wanted, reason = options.format, "input.labels.format says so"
    if wanted == "auto" and MASK in found:
        wanted, reason = "rle_csv", f"{table.name} has a column {table.header[found[MASK]]!r}"
    if wanted == "rle_csv":
        return _masks(task, options, table, found, reason)
    if task == "segmentation":
        raise missing_columns(table, _RLE_COLUMNS)
    if IMAGE in found and LABEL not in found and wanted != "captions":
        asked = [table.header.index(name) for name in options.features if name in table.header]
        taken = {*asked, *(found[role] for role in (IMAGE, CAPTION) if role in found)}
        one_hot = tell_one_hot(table, taken, classes, options.multi)
        if one_hot is not None:
            reason = one_hot.reason if wanted == "auto" else reason
            return _Told("label_csv", reason, {IMAGE: found[IMAGE]}, _asked_captions(options, found), one_hot)
    captions = caption_columns(table, found, list(found.values()))
    if wanted == "captions" or (wanted == "auto" and IMAGE in found and LABEL not in found and captions):
        if IMAGE not in found or not captions:
            raise missing_columns(table, "one column for the image and one or more for its captions")
        _refuse_classes(table, classes)
        shown = shown_header([table.header[i] for i in captions])
        reason = f"{table.name} has no classes, but captions in {shown}" if wanted == "auto" else reason
        return _Told("captions", reason, {IMAGE: found[IMAGE]}, captions)
    if not {IMAGE, LABEL} <= set(found):
        expected = "one column for the image and one for its class, e.g. image,label, or a column of 0 and 1 a class"
        raise missing_columns(table, expected)
    reason = f"{table.name} has no column of masks" if wanted == "auto" else reason
    return _Told("label_csv", reason, {role: found[role] for role in (IMAGE, LABEL)}, _asked_captions(options, found))


def _by_parts(table: Table, column: int, images: Images, names: NameIndex) -> tuple[NameIndex, tuple[str, ...], str]:
    """How rows name images where none of the first names is a path or a file name, see `key_patterns`.

    Returns:
        How they do, a note if that is by parts of their paths, and what to say if no row should match.
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
    told = tell_key_pattern(list(first), images.keys, images.skip)
    if told is None:
        return names, (), ""
    line = f"input.labels.key_pattern: {quoted(told.pattern)}"
    # A number that stands in a path as well may be the row's own; what is put together of several pieces is no chance.
    if told.found < len(first) or told.pieces < 2:
        return names, (), f"Of its first {len(first)} names {told.found} are images by {line}"
    note = f"{line}, since no name is a path, and by their parts each of the first {len(first)} is one image"
    return NameIndex(images.keys, images.skip, told.pattern), (note,), ""


def _masks(task: str, options: LabelsConfig, table: Table, found: Mapping[str, int], reason: str) -> _Told:
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
    return _Told("rle_csv", reason, chosen, _asked_captions(options, found))


def _is_counts(table: Table, found: Mapping[str, int]) -> bool:
    """Whether the column of masks is one only if the task says so: many a table counts something."""
    return MASK in found and reduce_header(table.header[found[MASK]]) == "counts"


def _asked_captions(options: LabelsConfig, found: Mapping[str, int]) -> tuple[int, ...]:
    """Captions beside labels or masks only where the configuration names their column."""
    return (found[CAPTION],) if CAPTION in options.columns else ()


def _refuse_classes(table: Table, classes: Mapping[str, int | None] | None) -> None:
    if classes is not None:
        raise UsageError(
            f"{table.path}: holds captions and no classes, but input.classes names some. Remove input.classes, or say "
            "by input.labels.columns.label which column holds them."
        )
