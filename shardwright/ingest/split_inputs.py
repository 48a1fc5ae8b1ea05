"""The splits and groups that an input itself defines.

`split.method: predefined` reads splits from lists, a column, the annotations or the folders. `split.group` reads groups
of images that must be in one split, such as those of a patient, a scene or a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt

from shardwright.config import SplitConfig
from shardwright.config.limited_pattern import LimitedPattern
from shardwright.config.split import GroupConfig
from shardwright.errors import CheckFailed, ConfigError, UsageError
from shardwright.formats.base import AnnotationFormat
from shardwright.formats.exported import Exported
from shardwright.formats.image_names import NameIndex
from shardwright.formats.rows import CsvFormat
from shardwright.ingest.survey import SurveyedInput
from shardwright.splits import UNASSIGNED, folder_split, split_named
from shardwright.storage import Refusal, read_bytes
from shardwright.storage.limits import MOST_LIST_BYTES
from shardwright.storage.listing import name_lines

CONFLICTING_SPLITS = "conflicting_splits"
_SHOWN = 3


@dataclass
class PredefinedSplits:
    """The splits that the input defines.

    Attributes:
        split_of: number of the split of every image of the listing, `UNASSIGNED` where the input names none.
        refused: position -> why an image goes into none: the input names two.
        notes: how the splits were detected, for the user.
    """

    split_of: npt.NDArray[np.int64]
    refused: dict[int, Refusal] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def predefined_splits(options: SplitConfig, surveyed: SurveyedInput, lists: Mapping[str, str]) -> PredefinedSplits:
    """Finds the split that the input itself puts every image into.

    Args:
        options: `split`.
        surveyed: the input.
        lists: split -> absolute path of the file that lists its images.

    Raises:
        UsageError: a list cannot be read, the column is not there.
        CheckFailed: nothing that was looked for names an image or a split.
    """
    keys = surveyed.listing.keys
    result = PredefinedSplits(np.full(len(keys), UNASSIGNED, dtype=np.int64))
    where = "the folders"
    stated: Iterable[tuple[int, str, str]]
    if lists:
        where = "split.from_lists"
        stated = _from_lists(lists, surveyed, result.notes)
    elif options.from_column is not None:
        where = f"column {options.from_column!r}"
        stated = _from_column(options, surveyed, result.notes)
    elif surveyed.survey.splits:
        where = "the annotations"
        by_folder = _from_folders(keys, options.names, [])
        named = _named(surveyed.survey.splits.items(), options.names, result.notes)
        # An image without annotations is in the split of its folder.
        stated = chain(named, (one for one in by_folder if one[0] not in surveyed.survey.splits))
    else:
        stated = _from_folders(keys, options.names, result.notes)
    for position, split, source in stated:
        number = options.names.index(split)
        before = int(result.split_of[position])
        if before not in (UNASSIGNED, number):
            both = f"{options.names[before]} and {split}"
            result.refused[position] = Refusal(
                keys[position], CONFLICTING_SPLITS, f"{source} assigns {both}; an image has one"
            )
        result.split_of[position] = number
    if not (result.split_of >= 0).any():
        shown = ", ".join(keys[:_SHOWN])
        raise CheckFailed(
            f"split.method: predefined, but {where} name no image of {', '.join(options.names)}; the images are "
            f"{shown}. Name splits there, or use another split.method."
        )
    return result


def column_fields(source: AnnotationFormat, option: str, header: str) -> Iterator[tuple[int, str]]:
    """Yields image and field of a column of the table of labels, for every row that names an image.

    Raises:
        ConfigError: the annotations are not a table, or it has no such column.
    """
    source = source.inner if isinstance(source, Exported) else source
    if not isinstance(source, CsvFormat):
        raise ConfigError(
            option, f"{header!r}: the annotations are not a CSV", f"Remove {option}, or give a CSV of labels."
        )
    return source.column(option, header)


def _from_lists(lists: Mapping[str, str], surveyed: SurveyedInput, notes: list[str]) -> Iterator[tuple[int, str, str]]:
    names = NameIndex(surveyed.listing.keys, frozenset(surveyed.rejected))
    for split, path in sorted(lists.items()):
        lines = _lines(f"split.from_lists.{split}", path)
        unknown = []
        for line in lines:
            position = names.find(line)
            if position is None:
                unknown.append(line.strip())
            else:
                yield position, split, "split.from_lists"
        note = f"split: {split} from a list of {len(lines)}"
        if unknown:
            note += f", of which {len(unknown)} are not in the input, e.g. {unknown[0]!r}"
        notes.append(note)


def _lines(option: str, path: str) -> list[str]:
    try:
        text = read_bytes(path, most=MOST_LIST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{option}: {path} cannot be read ({error.strerror or error}). Check the path.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: {path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
    return name_lines(text)


def _from_column(options: SplitConfig, surveyed: SurveyedInput, notes: list[str]) -> Iterator[tuple[int, str, str]]:
    assert options.from_column is not None
    fields = column_fields(surveyed.source, "split.from_column", options.from_column)
    for position, split, _ in _named(fields, options.names, notes):
        yield position, split, f"column {options.from_column}"


def _named(stated: Iterable[tuple[int, str]], names: Sequence[str], notes: list[str]) -> Iterator[tuple[int, str, str]]:
    """Finds splits by their names; other words are counted and noted."""
    meant: dict[str, str | None] = {}
    unknown: Counter[str] = Counter()
    for position, text in stated:
        if text not in meant:
            meant[text] = split_named(text, names)
        split = meant[text]
        if split is not None:
            yield position, split, "the annotations"
        elif text.strip():
            unknown[text] += 1
    _note_meanings(notes, meant, "")
    if unknown:
        shown = ", ".join(f"{text!r} ({count})" for text, count in unknown.most_common(_SHOWN))
        notes.append(f"split: not known as a split: {shown}")


def _from_folders(keys: Sequence[str], names: Sequence[str], notes: list[str]) -> Iterator[tuple[int, str, str]]:
    meant: dict[str, str | None] = {}
    for position, key in enumerate(keys):
        found = folder_split(key, names)
        if found is not None:
            folder, split = found
            meant[folder] = split
            yield position, split, "its folder"
    _note_meanings(notes, meant, "/")


def _note_meanings(notes: list[str], meant: Mapping[str, str | None], ending: str) -> None:
    shown = [f"{text}{ending} is {split}" for text, split in sorted(meant.items()) if split is not None]
    if shown:
        notes.append(f"split: {', '.join(shown)}")


CONFLICTING_GROUPS = "conflicting_groups"


@dataclass
class Groups:
    """The groups of an input's images.

    Attributes:
        names: group of every image of the listing, empty where the input names none.
        refused: position -> why an image has none: the input names two.
    """

    names: list[str]
    refused: dict[int, Refusal] = field(default_factory=dict)


def image_groups(options: GroupConfig, surveyed: SurveyedInput) -> Groups:
    """Finds the group of every image.

    Raises:
        ConfigError: there is no such column.
        CheckFailed: no image has a group.
    """
    keys = surveyed.listing.keys
    if options.regex is not None:
        result = Groups(_by_pattern(options.regex, keys))
        where, fix = f"split.group.regex: {options.regex!r} finds no group in any image", "Change the pattern."
    else:
        assert options.column is not None
        result = _by_column(options.column, surveyed)
        where, fix = f"split.group.column: {options.column!r} is empty for every image", "Name another column."
    if not any(result.names):
        raise CheckFailed(f"{where}; the images are {', '.join(keys[:_SHOWN])}. {fix}")
    return result


def _by_pattern(pattern: str, keys: Sequence[str]) -> list[str]:
    found = map(LimitedPattern(pattern, "split.group.regex").search, keys)
    return [(match[1] or "") if match else "" for match in found]


def _by_column(column: str, surveyed: SurveyedInput) -> Groups:
    keys = surveyed.listing.keys
    result = Groups([""] * len(keys))
    for position, text in column_fields(surveyed.source, "split.group.column", column):
        before = result.names[position]
        if text and before and text != before:
            reason = f"column {column} contains {before!r} and {text!r}; an image has one group"
            result.refused[position] = Refusal(keys[position], CONFLICTING_GROUPS, reason)
        result.names[position] = before or text
    return result
