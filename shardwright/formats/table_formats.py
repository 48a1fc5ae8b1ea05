"""Detects the format of a table by its columns: run lengths, classes, captions or numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardwright.config.input import FLOAT, LabelsConfig
from shardwright.errors import Reading, UsageError
from shardwright.formats.image_names import quoted
from shardwright.formats.numbers import are_fractions, find_numbers
from shardwright.formats.one_hot import OneHot, detect_one_hot
from shardwright.formats.request import Request
from shardwright.formats.table_values import class_readings, mask_readings
from shardwright.formats.tables import (
    CAPTION,
    IMAGE,
    IMAGE_LABEL,
    LABEL,
    MASK,
    Table,
    caption_columns,
    choose_columns,
    missing_columns,
    reduce_header,
    shown_header,
)

CAPTIONS, NUMBERS = "captions", "numbers"
_RLE_COLUMNS = (
    "Image_Label,EncodedPixels (file_Class) or ImageId,ClassId,EncodedPixels or ImageId_ClassId,EncodedPixels or, for "
    "one class, ImageId,EncodedPixels"
)


@dataclass(frozen=True)
class TableFormat:
    """A format, why it is that one, and its columns.

    Attributes:
        format: `rle_csv`, `label_csv`, `captions` or `numbers`.
        reason: why.
        roles: columns that have a role.
        captions: columns of captions.
        one_hot: columns of classes.
        numbers: columns of numbers, with their types.
    """

    format: str
    reason: str
    roles: Mapping[str, int]
    captions: tuple[int, ...] = ()
    one_hot: OneHot | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)


def detect_table(request: Request, table: Table) -> TableFormat:
    """Returns the format of a table.

    Raises:
        UsageError: columns are missing, do not fit the task, or can be read in two ways.
    """
    task, options = request.task, request.options
    found = choose_columns(table, options.columns)
    if task == "classification" and MASK not in options.columns and is_counts(table, found):
        del found[MASK]
    wanted, reason = options.format, "input.labels.format is set"
    if wanted == "auto" and MASK in found:
        wanted, reason = "rle_csv", f"{table.name} has a column {table.header[found[MASK]]!r}"
    if wanted == "rle_csv":
        return _masks(task, options, table, found, reason)
    taken = {found[IMAGE]} if IMAGE in found else set()
    if task == "segmentation":
        raise missing_columns(table, _RLE_COLUMNS).with_readings(*mask_readings(table, taken))
    if wanted == NUMBERS:
        numbers = find_number_columns(request, table, found)
        assert numbers is not None, "the format is set"
        return numbers
    if IMAGE in found and LABEL not in found and wanted != CAPTIONS:
        asked = [table.header.index(name) for name in options.features if name in table.header]
        taken = {*asked, *(found[role] for role in (IMAGE, CAPTION) if role in found)}
        one_hot = detect_one_hot(table, taken, request.classes, options.multi_label)
        if one_hot is not None:
            reason = one_hot.reason if wanted == "auto" else reason
            return TableFormat("label_csv", reason, {IMAGE: found[IMAGE]}, _asked_captions(options, found), one_hot)
    captions = caption_columns(table, found, list(found.values()))
    if wanted == "captions" or (wanted == "auto" and IMAGE in found and LABEL not in found and captions):
        if IMAGE not in found or not captions:
            raise missing_columns(table, "one column for the image and one or more for its captions")
        _check_classes(table, request.classes)
        shown = shown_header([table.header[i] for i in captions])
        reason = f"{table.name} has no classes, but captions in {shown}" if wanted == "auto" else reason
        return TableFormat("captions", reason, {IMAGE: found[IMAGE]}, captions)
    if wanted == "auto" and IMAGE in found and LABEL not in found:
        numbers = find_number_columns(request, table, found)
        if numbers is not None:
            return numbers
    if not {IMAGE, LABEL} <= set(found):
        expected = "one column for the image and one for its class, e.g. image,label, or a column of 0 and 1 a class"
        possible = class_readings(table, taken) if wanted == "auto" and IMAGE in found else []
        raise missing_columns(table, expected).with_readings(*mask_readings(table, taken), *possible)
    if wanted == "auto":
        _check_label_numbers(request, table, found[LABEL])
        reason = f"{table.name} has no column of masks"
    return TableFormat(
        "label_csv", reason, {role: found[role] for role in (IMAGE, LABEL)}, _asked_captions(options, found)
    )


def find_number_columns(request: Request, table: Table, found: Mapping[str, int]) -> TableFormat | None:
    """Returns the columns of numbers of a table; `None` where the format is not set and there are none.

    Raises:
        UsageError: the format is set, and there are none; or it is not set, and other columns are not numbers.
    """
    options, chosen = request.options, request.options.format == NUMBERS
    if IMAGE not in found:
        raise missing_columns(table, "one column for the image and one or more of numbers")
    columns = find_numbers(table, {found[IMAGE]})
    wanted = columns.wanted(options.features)
    shown = shown_header(columns.numbers)
    if chosen and not wanted:
        raise missing_columns(table, "one column for the image and one or more of numbers")
    if not chosen and (columns.flags or not columns.numbers or request.classes is not None):
        return None
    if not chosen and columns.others and not options.features:
        if table.headless:
            raise UsageError(
                f"{table.path}: has no header, and its columns of numbers ({len(columns.numbers)}) and of texts "
                f"({1 + len(columns.others)}) may mean several things. Write the header above its first line."
            )
        line = "{" + ", ".join(f"{quoted(name)}: float" for name in columns.numbers) + "}"
        raise UsageError(
            f"{table.path}: no column of classes was found. The columns {shown} hold numbers, and "
            f"{shown_header(columns.others)} do not. To read the numbers, set input.labels.format: numbers and "
            f"input.labels.features: {line}."
        ).with_readings(
            *mask_readings(table, {found[IMAGE]}),
            *class_readings(table, {found[IMAGE]}),
            Reading(
                f"the columns {shown} are numbers to predict, and {shown_header(columns.others)} are left out",
                {"input.labels.format": NUMBERS, "input.labels.features": dict.fromkeys(columns.numbers, FLOAT)},
            ),
        )
    reason = f"{table.name} has no classes, but numbers in {shown}" if not chosen else "input.labels.format is set"
    return TableFormat(NUMBERS, reason, {IMAGE: found[IMAGE]}, numbers=wanted)


def _check_label_numbers(request: Request, table: Table, column: int) -> None:
    """Checks that the column of classes is not one of numbers with fractions, where nothing states that it is.

    Raises:
        UsageError: it is; with both readings.
    """
    options = request.options
    stated = request.classes is not None or request.record is not None or LABEL in options.columns
    if stated or options.multi_label is not None or options.separator or not are_fractions(table, column):
        return
    header = table.header[column]
    raise UsageError(
        f"{table.path}: the column {header!r} holds numbers with fractions. Set input.labels.format: numbers to read "
        "them as numbers, or label_csv if each of them is a class."
    ).with_readings(
        Reading(f"{header!r} is a number to predict", {"input.labels.format": NUMBERS}),
        Reading(f"each value of {header!r} is a class", {"input.labels.format": "label_csv"}),
    )


def _masks(task: str, options: LabelsConfig, table: Table, found: Mapping[str, int], reason: str) -> TableFormat:
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
    return TableFormat("rle_csv", reason, chosen, _asked_captions(options, found))


def is_counts(table: Table, found: Mapping[str, int]) -> bool:
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
