"""The splits and groups that an input itself defines.

`split.method: predefined` reads splits from lists, a column, the annotations or the folders; `auto` does so where the
input states the split of every image. `split.group` reads groups of images that must be in one split, such as those of
a patient, a scene or a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, groupby

import numpy as np
import numpy.typing as npt

from shardwright.config import SplitConfig
from shardwright.config.limited_pattern import LimitedPattern
from shardwright.config.split import AUTO, HASH, PREDEFINED, TEST, GroupConfig, split_folders, split_word
from shardwright.errors import CheckFailed, ConfigError, Reading, UsageError
from shardwright.formats.base import AnnotationFormat, check_absent, shorten
from shardwright.formats.exported import Exported
from shardwright.formats.image_names import NameIndex
from shardwright.formats.rows import CsvFormat
from shardwright.ingest.split_lists import field_split, listed_image, listed_names, may_state_splits
from shardwright.ingest.survey import IngestInput
from shardwright.running.progress import counted
from shardwright.splits import UNASSIGNED, folder_split, split_named
from shardwright.storage import Refusal

CONFLICTING_SPLITS, CONFLICTING_GROUPS = "conflicting_splits", "conflicting_groups"
_SHOWN = 3
_UNKNOWN = "not known as a split"
# So many images in one group cannot be divided; fewer may be a part of a set.
_MANY = 10


@dataclass
class PredefinedSplits:
    """The splits that the input defines.

    Attributes:
        split_of: number of the split of every image of the listing, `UNASSIGNED` where the input names none.
        column: header of the column of a table that names them, if one does.
        refused: position -> why an image goes into none: the input names two.
        notes: how the splits were detected, for the user.
    """

    split_of: npt.NDArray[np.int64]
    column: str | None = None
    refused: dict[int, Refusal] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def predefined_splits(options: SplitConfig, surveyed: IngestInput, lists: Mapping[str, str]) -> PredefinedSplits:
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
    result = PredefinedSplits(np.full(len(keys), UNASSIGNED, dtype=np.int64), options.from_column)
    where = "the folders"
    stated: Iterable[tuple[int, str, str]]
    if lists:
        where = "split.from_lists"
        stated = _from_lists(lists, surveyed, result.notes)
    elif options.from_column is not None:
        where = f"column {options.from_column!r}"
        fields = column_fields(surveyed.source, "split.from_column", options.from_column)
        named = _named(fields, options.names, result.notes, options.from_column)
        stated = ((position, split, f"column {options.from_column}") for position, split, _ in named)
    elif surveyed.survey.splits:
        where = "the annotations"
        by_folder = _from_folders(keys, options.names, frozenset(surveyed.survey.classes), [])
        named = _named(surveyed.survey.splits.items(), options.names, result.notes)
        # An image without annotations is in the split of its folder.
        stated = chain(named, (row for row in by_folder if row[0] not in surveyed.survey.splits))
    else:
        stated = _from_folders(keys, options.names, frozenset(surveyed.survey.classes), result.notes)
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
        unknown = next((f" ({note.removeprefix('split: ')})" for note in result.notes if _UNKNOWN in note), "")
        raise CheckFailed(
            f"split.method: predefined, but by {where} no image is in {', '.join(options.names)}{unknown}; the images "
            f"are {shown}. Name splits there, or use another split.method."
        )
    return result


def resolve_method(options: SplitConfig, surveyed: IngestInput, alive: npt.NDArray[np.bool_]) -> SplitConfig:
    """Decides what `split.method: auto` means for an input.

    Args:
        options: `split`.
        surveyed: the input.
        alive: of every image of the listing, whether it can be written.

    Returns:
        The options with the method `predefined` where the input states a split for every image, `hash` where it states
        none; those given where they name a method.

    Raises:
        UsageError: it states splits for some of the images; with the readings.
    """
    if options.method != AUTO:
        return options
    by_input = _stated_by_input(options, surveyed)
    stated = alive & (by_input.split_of >= 0) if by_input is not None else np.zeros(len(alive), np.bool_)
    # A single word, such as a folder `train` among others, may mean anything; what is for tests is not learned from.
    words = set() if by_input is None else {options.names[i] for i in by_input.split_of[stated].tolist()}
    if by_input is None or (len(words) < 2 and words != {TEST}):
        return replace(options, method=HASH)
    missing = np.flatnonzero(alive & ~stated & ~np.isin(np.arange(len(alive)), list(by_input.refused))).tolist()
    if missing:
        raise _partly_stated(options, surveyed, by_input, stated, missing)
    return replace(options, method=PREDEFINED, from_column=by_input.column)


def moved_notes(options: SplitConfig, surveyed: IngestInput, orders: Mapping[str, npt.NDArray[np.int64]]) -> list[str]:
    """Returns a note on the images that a method puts into another split than the input states.

    Args:
        options: `split`; of the methods `auto` and `predefined` there is nothing to say.
        surveyed: the input.
        orders: split -> positions of its images.
    """
    by_input = None
    with suppress(UsageError):  # Columns that differ: the method is the answer to that question.
        by_input = _stated_by_input(options, surveyed) if options.method not in (AUTO, PREDEFINED) else None
    if by_input is None:
        return []
    counts = Counter(
        (options.names[number], split)
        for split, images in orders.items()
        for number in by_input.split_of[images].tolist()
        if number >= 0
    )
    moved = sum(count for (stated, split), count in counts.items() if stated != split)
    if not moved or len({stated for stated, _ in counts}) < 2:
        return []
    one, several = "image is in another split", "images are in another split"
    note = f"split: {counted(moved, one, several)} than the input states, since split.method is {options.method}"
    leaked = counts["test", "train"]
    return [f"{note}; {leaked:,} of the input's test are in train" if leaked else note]


def _stated_by_input(options: SplitConfig, surveyed: IngestInput) -> PredefinedSplits | None:
    """Returns the splits that the input states by itself; `None` where there are none."""
    column = split_column(surveyed)
    stating = replace(options, method=PREDEFINED, group=None, num_folds=None, fold_index=None, stratify=False)
    try:
        return predefined_splits(replace(stating, from_column=column and column[0], from_lists=None), surveyed, {})
    except CheckFailed:
        return None


def split_column(surveyed: IngestInput) -> tuple[str, set[str]] | None:
    """Returns the column of the table of labels that states splits by its header and its values, and these splits.

    All its values mean splits, or at least two do: what the others mean is asked. The column of the classes is none.

    Returns:
        `None` where there is no such column, or the annotations state splits themselves.

    Raises:
        UsageError: two columns put an image into different splits, as `is_train` and `is_valid` do; with the readings.
    """
    source = surveyed.source.inner if isinstance(surveyed.source, Exported) else surveyed.source
    if surveyed.survey.splits or not isinstance(source, CsvFormat):
        return None
    taken = {*source.resolved(surveyed.recipe.input.labels).columns.values(), *surveyed.survey.classes}
    stating: dict[str, dict[int, str | None]] = {}
    for header in source.header:
        if may_state_splits(header) and source.header.count(header) == 1 and header not in taken:
            fields = source.column("split.from_column", header)
            split_of = {image: field_split(header, text) for image, text in fields}
            words = set(split_of.values())
            if words != {None} and (None not in words or len(words) > 2):
                stating[header] = split_of
    if not stating:
        return None
    header, split_of = next(iter(stating.items()))
    if any(other != split_of for other in stating.values()):
        raise UsageError(
            f"split: the columns {shorten(list(map(repr, stating)))} put images into different splits. Write "
            "one column of train, eval and test, set split.from_column to the one that counts, or split.method: hash."
        ).with_readings(
            *(Reading(f"{name!r} counts", {"split.method": PREDEFINED, "split.from_column": name}) for name in stating),
            Reading("divide all images again, by a hash", {"split.method": HASH}),
        )
    return header, {word for word in split_of.values() if word is not None}


def _partly_stated(
    options: SplitConfig,
    surveyed: IngestInput,
    by_input: PredefinedSplits,
    stated: npt.NDArray[np.bool_],
    missing: Sequence[int],
) -> UsageError:
    keys = surveyed.listing.keys
    shown = shorten([keys[i] for i in missing[: _SHOWN + 1]])
    counts = Counter(options.names[i] for i in by_input.split_of[stated].tolist())
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    texts = surveyed.survey.splits
    if by_input.column is not None:
        texts = dict(column_fields(surveyed.source, "split.from_column", by_input.column))
    further = {word for i in missing if (word := _word_of(keys[i], texts.get(i, ""), by_input.column or ""))}
    taken = {"split.method": PREDEFINED} | ({} if by_input.column is None else {"split.from_column": by_input.column})
    hashed = Reading("divide all images again, by a hash", {"split.method": HASH})
    problem = f"split: the input states the split of {counts.total():,} images ({listed}), and none of {len(missing):,}"
    if unknown := sorted(further - set(options.names)):
        names = {"train": 0.8, "eval": 0.1, "test": 0.1}
        problem += f": {shown}, which belong to {', '.join(unknown)}, and split.ratios does not name that"
        return UsageError(f"{problem}. Add it to split.ratios, or set split.method: hash.").with_readings(
            Reading("take the splits of the input", {**taken, "split.ratios": names}), hashed
        )
    if words := sorted({texts.get(i, "") for i in missing} - {""}):
        problem += f" ({by_input.column or 'the annotations'}: {shorten(list(map(repr, words)))})"
    return UsageError(
        f"{problem}: {shown}. Set split.method: predefined and split.unlisted_images to their split, or split.method: "
        "hash."
    ).with_readings(
        *(
            Reading(f"they belong to {name}", {**taken, "split.unlisted_images": name})
            for name in ("train", *sorted(counts.keys() - {"train"}))
            if name in options.names
        ),
        hashed,
    )


def _word_of(key: str, stated: str, header: str) -> str | None:
    return field_split(header, stated) or next(filter(None, map(split_word, key.split("/")[:-1])), None)


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


def _from_lists(lists: Mapping[str, str], surveyed: IngestInput, notes: list[str]) -> Iterator[tuple[int, str, str]]:
    names = NameIndex(surveyed.listing.keys, frozenset(surveyed.rejected))
    for split, path in sorted(lists.items()):
        lines = listed_names(f"split.from_lists.{split}", split, path)
        unknown = []
        for line in lines:
            position = listed_image(line, names)
            if position is None and not surveyed.source.excludes([line.strip()]):
                unknown.append(line.strip())
            elif position is not None:
                yield position, split, "split.from_lists"
        check_absent(unknown, len(lines), f"split.from_lists.{split}: {path}", surveyed.recipe.input.labels)
        note = f"split: {split} from a list of {len(lines)}"
        if unknown:
            note += f", of which {len(unknown)} are not in the input: {shorten(list(map(repr, unknown)))}"
        notes.append(note)


def _named(
    stated: Iterable[tuple[int, str]], names: Sequence[str], notes: list[str], header: str = ""
) -> Iterator[tuple[int, str, str]]:
    """Finds splits by their names, below a header perhaps; other words are counted and noted."""
    meant: dict[str, str | None] = {}
    unknown: Counter[str] = Counter()
    for position, text in stated:
        if text not in meant:
            meant[text] = split_named(text, names) or split_named(field_split(header, text) or "", names)
        split = meant[text]
        if split is not None:
            yield position, split, "the annotations"
        elif text.strip():
            unknown[text] += 1
    _note_meanings(notes, meant, "")
    if unknown:
        shown = ", ".join(f"{text!r} ({count})" for text, count in unknown.most_common(_SHOWN))
        notes.append(f"split: {_UNKNOWN}: {shown}")


def _from_folders(
    keys: Sequence[str], names: Sequence[str], classes: frozenset[str], notes: list[str]
) -> Iterator[tuple[int, str, str]]:
    # Keys are sorted: most have the parent of the key before.
    parents = [parent for parent, _ in groupby(keys, lambda key: key[: key.rfind("/") + 1])]
    words = split_folders({folder for parent in parents for folder in parent.split("/")})
    meant: dict[str, str | None] = {}
    last, folder_and_split = "", None
    for position, key in enumerate(keys):
        parent = key[: key.rfind("/") + 1]
        if parent != last:
            last, folder_and_split = parent, folder_split(parent, names, words)
        if folder_and_split is not None and folder_and_split[0] not in classes:
            folder, split = folder_and_split
            meant[folder] = split
            yield position, split, "its folder"
    _note_meanings(notes, meant, "/")


def _note_meanings(notes: list[str], meant: Mapping[str, str | None], ending: str) -> None:
    shown = [f"{text}{ending} is {split}" for text, split in sorted(meant.items()) if split is not None]
    if shown:
        notes.append(f"split: {', '.join(shown)}")


@dataclass
class Groups:
    """The groups of an input's images.

    Attributes:
        names: group of every image of the listing, empty where the input names none.
        refused: position -> why an image has none: the input names two.
    """

    names: list[str]
    refused: dict[int, Refusal] = field(default_factory=dict)


def image_groups(options: GroupConfig, surveyed: IngestInput) -> Groups:
    """Finds the group of every image.

    Raises:
        ConfigError: there is no such column.
        CheckFailed: no image has a group, all have the same, or the groups are the classes.
    """
    keys = surveyed.listing.keys
    if options.regex is not None:
        matches = map(LimitedPattern(options.regex, "split.group.regex").search, keys)
        result = Groups([(match[1] or "") if match else "" for match in matches])
        where, none, fix = f"split.group.regex: {options.regex!r}", "finds no group in any image", "Change the pattern."
    else:
        assert options.column is not None
        result = _by_column(options.column, surveyed)
        where, none, fix = f"split.group.column: {options.column!r}", "is empty for every image", "Name another column."
    shown = f"the images are {', '.join(keys[:_SHOWN])}. {fix}"
    if not any(result.names):
        raise CheckFailed(f"{where} {none}; {shown}")
    if _are_classes(result.names, surveyed):
        raise CheckFailed(f"{where}: the groups are classes, so that each class would be in one split; {shown}")
    if len(keys) >= _MANY and len(set(result.names)) == 1 and not result.refused:
        raise CheckFailed(
            f"{where}: all {len(keys):,} images have the group {result.names[0]!r}, and one split; {shown}"
        )
    return result


def _by_column(column: str, surveyed: IngestInput) -> Groups:
    keys = surveyed.listing.keys
    result = Groups([""] * len(keys))
    for position, text in column_fields(surveyed.source, "split.group.column", column):
        before = result.names[position]
        if text and before and text != before:
            reason = f"column {column} contains {before!r} and {text!r}; an image has one group"
            result.refused[position] = Refusal(keys[position], CONFLICTING_GROUPS, reason)
        result.names[position] = before or text
    return result


def _are_classes(groups: Sequence[str], surveyed: IngestInput) -> bool:
    """Returns whether the group of each image is its class; groups may have the names of classes by chance."""
    named = [i for i, group in enumerate(groups) if group]
    if not {groups[i] for i in named} <= set(surveyed.survey.classes):
        return False
    classes = surveyed.labels_of(named)
    return all(classes[i][0] == groups[i] for i in named)
