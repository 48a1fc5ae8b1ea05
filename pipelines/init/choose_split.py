"""Chooses how the images of an input are divided: as the input states, else so that every split has every class."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config import SplitConfig
from shardwright.config.split import EVAL, HASH, PREDEFINED, split_folders, split_word, stated_split
from shardwright.errors import Reading, ShardwrightError, UsageError
from shardwright.formats.base import ClassesInText, shorten
from shardwright.formats.image_names import NameIndex
from shardwright.ingest.split_inputs import predefined_splits, split_column
from shardwright.ingest.split_lists import SPLITS_BY_ID, listed_image, stated_splits
from shardwright.ingest.splitting import ClassSets, class_sets
from shardwright.pipelines.init.inventory import Inventory
from shardwright.pipelines.init.read_trial import DetectedInput, absolute
from shardwright.running.progress import counted
from shardwright.splits import ClassTable, assign_splits, join_units
from shardwright.storage import hash_file, is_remote, read_bytes
from shardwright.storage.limits import MOST_LIST_BYTES
from shardwright.storage.listing import name_lines

STRATIFIED = "stratified"
_NOT_STATED = Reading("the stated splits do not count", {"split.method": HASH})
# VOC and its kin call all that is not in `test` so; next to lists of both it says nothing new.
_NOT_TEST = re.compile("train[_-]?val", re.IGNORECASE)
# Shares for few images: with five of a class, each of three splits has one.
_FEW, _TWO = {"train": 0.6, EVAL: 0.2, "test": 0.2}, {"train": 0.8, EVAL: 0.2}
_ROWS_SEEN = 1000
# Of one of so many lines of a list at least, the image is in the input.
_LISTED = 10
# Masks are read for their classes where images are so few that a split may lack one.
_MOST_READ = 500


class ChosenSplit(NamedTuple):
    """How images are divided.

    Attributes:
        config: `split`.
        counts: images in each split, of those that are not rejected.
        comment: why, for the configuration.
        stated: whether the input itself states the splits.
    """

    config: SplitConfig
    counts: Mapping[str, int]
    comment: str
    stated: bool


def choose_split(found: DetectedInput, inventory: Inventory | None) -> ChosenSplit:
    """Chooses how the images are divided; what the user gave stays.

    Raises:
        UsageError: some images have no stated split, or a class has too few images; with readings.
    """
    good = [i for i in range(len(found.surveyed.listing.keys)) if i not in found.surveyed.rejected]
    if any(path == "split" or path.startswith("split.") for path in found.options):
        config = found.config.split
        stated = config.method == PREDEFINED
        return ChosenSplit(config, _divide(found, config, good) or {}, "As it was given.", stated)
    for statement in _statements(found, inventory):
        source, config = statement.source, statement.config
        try:
            stated_by = predefined_splits(config, found.surveyed, _lists(config))
        except ShardwrightError as error:
            if error.readings:
                raise
            continue
        split_of = stated_by.split_of[good]
        if stated_by.refused and config.from_lists:
            twice = [refusal.key for refusal in stated_by.refused.values()]
            problem = f"{source} put {counted(len(twice), 'image', 'images')} into several splits: {shorten(twice)}"
            raise UsageError(f"{found.config.input.images}: {problem}. Correct them.").with_readings(_NOT_STATED)
        counts = {name: int((split_of == i).sum()) for i, name in enumerate(config.names)}
        counts = {name: count for name, count in counts.items() if count}
        without = [found.surveyed.listing.keys[i] for i, split in zip(good, split_of, strict=True) if split < 0]
        whole = "train" in counts and len(counts) > 1
        if whole and not without:
            if statement.readings:
                raise UsageError(f"{found.config.input.images}: {source}. Choose one.").with_readings(
                    *statement.readings, _NOT_STATED
                )
            return _stated(source, config, counts)
        # What is stated to be for tests must not be learned from, even if nothing else is stated.
        if without and (
            (whole and len(without) < sum(counts.values())) or ("test" in counts and "train" not in counts)
        ):
            raise _without_split(found, source, config, without)
    return _undefined(found, good)


def _stated(source: str, config: SplitConfig, counts: Mapping[str, int]) -> ChosenSplit:
    total = sum(counts.values())
    shares = {name: round(count / total, 4) for name, count in counts.items()}
    shares["train"] = round(1 - sum(share for name, share in shares.items() if name != "train"), 4)
    lists = config.from_lists and {name: path for name, path in config.from_lists.items() if name in counts}
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    comment = f"predefined: {source} states the splits ({shown})."
    return ChosenSplit(replace(config, ratios=shares, from_lists=lists), counts, comment, True)


def _options(config: SplitConfig) -> dict[str, Any]:
    """Returns the settings of stated splits."""
    options: dict[str, Any] = {"split.method": PREDEFINED}
    options |= {} if config.from_column is None else {"split.from_column": config.from_column}
    options |= {} if config.from_lists is None else {"split.from_lists": dict(config.from_lists)}
    return options | (
        {} if config.from_lists and "train" in config.from_lists else {"split.ratios": dict(config.ratios)}
    )


def _without_split(found: DetectedInput, source: str, config: SplitConfig, without: Sequence[str]) -> UsageError:
    options = _options(config)
    total = len(found.surveyed.listing.keys) - len(found.surveyed.rejected)
    problem = f"{source} states a split for {total - len(without):,} of {total:,} images; none for {shorten(without)}"
    return UsageError(f"{found.config.input.images}: {problem}.{_rejects(found)}").with_readings(
        Reading("the others are in train", {**options, "split.unlisted_images": "train"}),
        _NOT_STATED,
    )


class _Statement(NamedTuple):
    """What may state the splits.

    Attributes:
        source: what does, for messages; a problem, where there are readings.
        config: `split`.
        readings: of numbers, or of several divisions.
    """

    source: str
    config: SplitConfig
    readings: tuple[Reading, ...] = ()


def _statements(found: DetectedInput, inventory: Inventory | None) -> Iterator[_Statement]:
    """Yields what may state the splits: the annotations or folders, a column, and lists."""
    surveyed = found.surveyed
    classes = set(surveyed.survey.classes)
    folders = {folder for key in surveyed.listing.keys for folder in key.split("/")[:-1]} - classes
    words = {word for text in surveyed.survey.splits.values() if (word := split_word(text))}
    words |= set(split_folders(folders).values())
    if "test" in words or ("train" in words and len(words) > 1):
        yield _Statement("the input itself", _predefined({*words, "train"}))
    column = split_column(surveyed)
    if column is not None and "train" in column[1] and len(column[1]) > 1:
        yield _Statement(f"the column {column[0]!r}", replace(_predefined(column[1]), from_column=column[0]))
    if inventory is None or inventory.spans:
        return
    names = NameIndex(surveyed.listing.keys, frozenset(surveyed.rejected))
    for divisions in _split_lists(inventory, names):
        configs = [replace(_predefined({*lists, "train"}), from_lists=lists) for lists in divisions]
        source, several = shorten(list(divisions[0].values())), len(divisions) > 1
        readings = [
            Reading(f"the splits are those of {shorten(sorted({*lists.values()}))}", _options(config))
            for lists, config in zip(divisions, configs, strict=True)
        ]
        problem = f"{len(divisions)} divisions are stated, as {source}" if several else source
        yield _Statement(problem, configs[0], tuple(readings) if several else ())
    for key in inventory.keys:
        if not key.lower().endswith((".csv", ".tsv", SPLITS_BY_ID)):
            continue
        stated = None
        with suppress(ShardwrightError):
            stated = stated_splits("split.from_lists", os.path.join(inventory.root, key))
        if stated is not None and any(listed_image(name, names) is not None for name, _ in stated.rows[:_ROWS_SEEN]):
            path, words = inventory.named(key), {word for _, word in stated.rows}
            config = replace(_predefined({*words, "train"}), from_lists=dict.fromkeys(sorted(words), path))
            meant = Reading("0 is train, 1 is eval and 2 is test", _options(config))
            problem = f"{path} states the splits as numbers"
            yield _Statement(problem if stated.by_number else path, config, (meant,) if stated.by_number else ())


def _predefined(words: set[str]) -> SplitConfig:
    return SplitConfig(ratios=dict.fromkeys(sorted(words), 1 / len(words)), method=PREDEFINED)


def _split_lists(inventory: Inventory, names: NameIndex) -> Iterator[list[dict[str, str]]]:
    """Yields lists of images, as split -> path: text files of one folder that are called after splits.

    `train1.txt` and `test1.txt`, `train2.txt` and `test2.txt` are two divisions of the same images.
    """
    by_folder: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for key in inventory.keys:
        if not key.lower().endswith((".txt", ".lst")):
            continue
        stem = _NOT_TEST.sub("train", os.path.splitext(os.path.basename(key))[0])
        split = stated_split(stem)
        if split is not None:
            words = re.findall(r"[^\W_]+", stem)
            rest = "_".join(word for word in words if split_word(word) is None)
            number = next((re.sub(r"\D", "", word) for word in words if split_word(word)), "")
            of_folder = by_folder.setdefault((os.path.dirname(key), rest), {})
            of_folder.setdefault(number, {}).setdefault(split, inventory.named(key))
    for divisions in by_folder.values():
        found = []
        for lists in divisions.values():
            if EVAL in lists and _NOT_TEST.search(os.path.basename(lists.get("train", ""))):
                del lists["train"]
            if ("test" in lists or ("train" in lists and len(lists) > 1)) and all(
                _names_images(path, names) for path in lists.values()
            ):
                found.append(lists)
        if found:
            yield found


def _names_images(path: str, names: NameIndex) -> bool:
    """Returns whether a file lists images, of which at least some are in the input."""
    with suppress(OSError, UnicodeDecodeError, ShardwrightError):
        lines = name_lines(read_bytes(absolute(path), most=MOST_LIST_BYTES).decode("utf-8-sig"))[:_ROWS_SEEN]
        return _LISTED * sum(listed_image(line, names) is not None for line in lines) > len(lines)
    return False


def _lists(config: SplitConfig) -> dict[str, str]:
    return {split: absolute(path) for split, path in (config.from_lists or {}).items()}


def _undefined(found: DetectedInput, good: Sequence[int]) -> ChosenSplit:
    """Chooses among a hash and shares of every class, where nothing states splits."""
    config = replace(found.config.split, method=HASH)
    hashed = "hash: new images never move old ones. Or: group, stratified, kfold, predefined."
    classes = _classes_of(found)
    if "{" in str(found.config.input.images) or len(good) < len(config.names):
        return ChosenSplit(config, _divide(found, config, good) or {}, hashed, False)
    if not (lacking := _lacking(found, config, good, classes)):
        return ChosenSplit(config, _divide(found, config, good, classes) or {}, hashed, False)
    if classes is None or not any(classes[i] for i in good):
        return ChosenSplit(config, _divide(found, config, good) or {}, hashed, False)
    even = replace(config, method=STRATIFIED)
    for chosen in (even, replace(even, ratios=_FEW)):
        if not (rest := _lacking(found, chosen, good, classes)):
            comment = f"stratified: a hash would leave {shorten(lacking)}. Every class has its share in every split."
            return ChosenSplit(chosen, _divide(found, chosen, good, classes) or {}, comment, False)
    readings = [Reading(f"{shorten(rest)}, which is no mistake", {"split.method": STRATIFIED, "split.ratios": _FEW})]
    if not _lacking(found, replace(even, ratios=_TWO), good, classes):
        options = {"split.method": STRATIFIED, "split.ratios": _TWO}
        readings.insert(0, Reading("two splits, with every class in both", options))
    problem = f"{len(good)} images are too few for {len(config.names)} splits with every class: {shorten(rest)}"
    fix = "Add images, or choose."
    raise UsageError(f"{found.config.input.images}: {problem}.{_rejects(found)} {fix}").with_readings(*readings)


def _rejects(found: DetectedInput) -> str:
    """Returns a sentence on the inputs that are rejected, since they may be those that a split lacks; or nothing."""
    surveyed = found.surveyed
    rejects = [*surveyed.rejected.values(), *surveyed.survey.refused, *surveyed.listing.refused]
    codes = Counter(one.code for one in rejects)
    listed = ", ".join(f"{code} {count:,}" for code, count in codes.most_common())
    first = f" ({listed}), e.g. {rejects[0].key}: {rejects[0].reason}" if rejects else ""
    return f" {counted(len(rejects), 'input is', 'inputs are')} rejected{first}." if rejects else ""


def _classes_of(found: DetectedInput) -> ClassSets | None:
    """Returns the classes of each image; `None` where masks would have to be read, or there are no classes."""
    surveyed = found.surveyed
    in_masks = isinstance(surveyed.source.dialect, ClassesInText)
    if not surveyed.survey.classes or (in_masks and len(surveyed.listing.keys) > _MOST_READ):
        return None
    try:
        return class_sets(surveyed.source.annotations(), len(surveyed.listing.keys), surveyed.source.dialect)
    except ShardwrightError:
        return None  # The ingest reports it with its place.


def _lacking(found: DetectedInput, config: SplitConfig, good: Sequence[int], classes: ClassSets | None) -> list[str]:
    """Returns what splits lack, as texts: images, or a class that has enough of them."""
    split_of = _split_of(found, config, good, classes)
    lacking = []
    for number, name in enumerate(config.names):
        inside = [good[at] for at in np.flatnonzero(split_of == number).tolist()]
        if not inside:
            lacking.append(f"no image in {name}")
        elif classes is not None:
            there = {label for i in inside for label in classes[i]}
            wanted = {label for i in good for label in classes[i]}
            lacking += [f"no {found.surveyed.survey.classes[label]} in {name}" for label in sorted(wanted - there)]
    return lacking


def _split_of(found: DetectedInput, config: SplitConfig, good: Sequence[int], classes: ClassSets | None) -> Any:
    table = None
    if config.method == STRATIFIED and classes is not None:
        pairs = [(at, label) for at, i in enumerate(good) for label in classes[i]]
        table = ClassTable(*(np.array(column, np.int64) for column in zip(*pairs, strict=True)))
    units = join_units([found.surveyed.listing.keys[i] for i in good], None, _clusters(found, good), config.salt)
    return assign_splits(units, config.ratios, table=table).split_of


def _clusters(found: DetectedInput, good: Sequence[int]) -> npt.NDArray[np.int64]:
    """Returns the number of each image's cluster of equal files, of which all are in one split; below 0 for none."""
    listing, clusters = found.surveyed.listing, np.full(len(good), -1, np.int64)
    if len(good) > _MOST_READ or is_remote(listing.root):
        return clusters
    sizes = Counter(listing.sizes[i] for i in good)
    seen: dict[bytes, list[int]] = {}
    for at, i in enumerate(good):
        content = hash_file(listing.path(i)) if sizes[listing.sizes[i]] > 1 else None
        if content is not None:
            seen.setdefault(content.content_id, []).append(at)
    for number, places in enumerate(same for same in seen.values() if len(same) > 1):
        clusters[places] = number
    return clusters


def _divide(
    found: DetectedInput, config: SplitConfig, good: Sequence[int], classes: ClassSets | None = None
) -> Mapping[str, int] | None:
    """Returns the images of each split; `None` where only the ingest knows them."""
    if config.method == PREDEFINED:
        with suppress(ShardwrightError):
            split_of = predefined_splits(config, found.surveyed, _lists(config)).split_of[good]
            counts = Counter(config.names[n] if n >= 0 else config.unlisted_images for n in split_of.tolist())
            return {name: counts[name] for name in config.names}
        return None
    if config.method == STRATIFIED:
        classes = _classes_of(found) if classes is None else classes
        if classes is None or not any(classes[i] for i in good):
            return None
    if config.method not in (HASH, STRATIFIED) or config.keep_from is not None or config.group is not None:
        return None
    counts = Counter(_split_of(found, config, good, classes).tolist())
    return {name: counts[i] for i, name in enumerate(config.names)}
