"""Divides the images of an input into splits, and each split into shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shardwright.config import ShardsConfig, SplitConfig
from shardwright.config.split import FAIL, PREDEFINED
from shardwright.dataset.sharding import deal_classes, shard_bounds, shards_of
from shardwright.duplicates.find import DuplicateDecision
from shardwright.errors import CheckFailed
from shardwright.formats.base import NO_LABEL, Annotation, ClassesInText, MaskCode, shorten
from shardwright.ingest.known_files import FileHashes
from shardwright.ingest.split_inputs import image_groups, predefined_splits
from shardwright.ingest.survey import IngestInput
from shardwright.running.progress import counted
from shardwright.splits import NEW, Assignment, ClassTable, Folds, assign_splits, join_units, split_order
from shardwright.staging.staging import PlannedShard
from shardwright.storage import Refusal, map_threads
from shardwright.storage.listing import StringArray

if TYPE_CHECKING:
    from shardwright.ingest.previous_splits import PreviousSplits

ClassSets = Sequence[tuple[int, ...]]
Positions = npt.NDArray[np.int64]

BRIDGES = "bridges_splits"
_SHOWN = 3


def cut_shards(
    orders: Mapping[str, Positions], sizes: Positions, options: ShardsConfig, classes: ClassSets | None
) -> dict[PlannedShard, Positions]:
    """Cuts splits into shards.

    Args:
        orders: split -> positions in the listing, in the order of the records.
        sizes: bytes that each file of the listing takes in a shard.
        options: `shards`.
        classes: classes of every image of the listing, for `shards.balance`.

    Returns:
        The images of every shard, in the order of its records.
    """
    shards: dict[PlannedShard, Positions] = {}
    for split, images in orders.items():
        count = shards_of(options, len(images), int(sizes[images].sum()))
        if classes is not None and options.balance == "class":
            parts = [images[dealt] for dealt in deal_classes([classes[i] for i in images.tolist()], count)]
        else:
            parts = [images[begin:end] for begin, end in pairwise(shard_bounds(len(images), count))]
        shards |= {PlannedShard(split, number, len(parts)): part for number, part in enumerate(parts)}
    return shards


def class_sets(annotations: Iterable[Annotation], images: int, code: MaskCode) -> ClassSets:
    """Returns the classes that annotations give each image, ascending; equal sets are one object.

    Args:
        annotations: all of them.
        images: number of images.
        code: how masks are written; asked for the classes of those whose row names none.
    """
    known: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
    sets: list[tuple[int, ...]] = [()] * images
    for image, labels in _labels(annotations, code):
        new = [label for label in labels if label >= 0 and label not in sets[image]]
        if new:
            joined = tuple(sorted((*sets[image], *new)))
            sets[image] = known.setdefault(joined, joined)
    return sets


def _labels(annotations: Iterable[Annotation], code: MaskCode) -> Iterator[tuple[int, Iterable[int]]]:
    if not isinstance(code, ClassesInText):
        return ((image, (label,)) for image, label, *_ in annotations)

    def look(annotation: Annotation) -> tuple[int, Iterable[int]]:
        if annotation.label != NO_LABEL or annotation.text is None:
            return annotation.image, (annotation.label,)
        return annotation.image, code.classes(annotation.text)

    return map_threads(look, annotations)


@dataclass(frozen=True)
class SplitImages:
    """An input in its splits.

    Attributes:
        orders: split -> positions in the listing, in the order of the records; every split is there.
        refused: position -> why an image that could be written goes into no split.
        notes: what the user should know.
    """

    orders: dict[str, Positions]
    refused: dict[int, Refusal]
    notes: tuple[str, ...]


def split_images(
    options: SplitConfig,
    previous_path: str | None,
    surveyed: IngestInput,
    contents: FileHashes,
    accepted: Positions,
    classes: ClassSets | None = None,
    same: DuplicateDecision | None = None,
) -> SplitImages:
    """Divides images into splits.

    Args:
        options: `split` of a recipe.
        previous_path: folder of the dataset that `split.keep_from` is the digest of.
        surveyed: the input.
        contents: hashes of its files, where they are known.
        accepted: positions in the listing, ascending, of images that are going to be written.
        classes: classes of every image of the listing; needed where splits are stratified.
        same: which images are duplicates, and which of those are kept for others that are left out.

    Raises:
        UsageError, DatasetError: a list, a column or the previous dataset is not what it should be.
        CheckFailed: images without a split where `split.unlisted_images` is `fail`; nothing to train on.
    """
    stated = predefined_splits(options, surveyed, surveyed.lists) if options.method == PREDEFINED else None
    grouped = image_groups(options.group, surveyed) if options.group is not None else None
    conflicts = {**(stated.refused if stated else {}), **(grouped.refused if grouped else {})}
    refused = {int(i): conflicts[i] for i in accepted if i in conflicts}
    accepted = np.fromiter((i for i in accepted if i not in refused), dtype=np.int64)
    keys = StringArray(surveyed.listing.keys[i] for i in accepted)
    groups = None if grouped is None else [grouped.names[i] for i in accepted.tolist()]
    declared = None if stated is None else _with_rest(options, stated.split_of[accepted], keys)
    previous = _previous(options, previous_path, surveyed, contents, same)
    folds = None
    if options.method == "kfold" and options.num_folds is not None and options.fold_index is not None:
        folds = Folds(options.num_folds, options.fold_index)
    units = join_units(keys, groups, None if same is None else same.clusters[accepted], options.salt)
    assigned = assign_splits(
        units,
        dict.fromkeys(options.names, 1.0) if declared is not None else options.ratios,
        folds=folds,
        table=_class_table(classes, accepted) if options.method == "stratified" or options.stratify else None,
        declared=declared,
        previous=None if previous is None else previous.split_of[accepted],
    )
    for i, pair in assigned.bridging.items():
        sides = " and ".join(_placed(assigned, keys, image) for image in pair)
        reason = f"belongs together with {sides}, which the earlier dataset has in different splits"
        refused[int(accepted[i])] = Refusal(keys[i], BRIDGES, reason)
    orders = split_order(units.of_keys, assigned.split_of, len(assigned.names))
    notes = [
        *_notes(options, assigned, keys, groups),
        *_renamed_notes(previous, surveyed.listing.keys, len(keys) - assigned.kept),
    ]
    return SplitImages(
        {split: accepted[order] for split, order in zip(assigned.names, orders, strict=True)},
        refused,
        (*(stated.notes if stated else ()), *notes),
    )


def _previous(
    options: SplitConfig,
    path: str | None,
    surveyed: IngestInput,
    contents: FileHashes,
    same: DuplicateDecision | None,
) -> PreviousSplits | None:
    """Returns the split that the previous dataset has each image in, where there is such a dataset."""
    if options.keep_from is None:
        return None
    from shardwright.ingest.previous_splits import InputFiles, previous_splits

    assert path is not None
    usable = np.ones(len(surveyed.listing.keys), np.bool_)
    usable[list(surveyed.rejected)] = False
    files = InputFiles(surveyed.listing, contents, surveyed.recipe.images.checksum, usable)
    previous = previous_splits(options, path, files)
    for i, kept in sorted((i, same.kept_image(i)) for i in same.kept) if same is not None else ():
        # An image that is kept for an old duplicate counts as old itself.
        if previous.split_of[kept] == NEW:
            previous.split_of[kept] = previous.split_of[i]
    return previous


def _renamed_notes(previous: PreviousSplits | None, keys: Sequence[str], new: int) -> list[str]:
    """Returns notes on images that have another name than in the earlier dataset, or are not there."""
    if previous is None:
        return []
    notes = []
    if previous.renamed:
        one, several = "image has another name and stays", "images have other names and stay"
        shown = shorten([keys[i] for i in previous.renamed[: _SHOWN + 1]])
        notes.append(f"split: {counted(len(previous.renamed), one, several)} where the same bytes were: {shown}")
    if previous.gone:
        one, several = (
            "image of the earlier dataset is not there today",
            "images of the earlier dataset are not there today",
        )
        splits = ", ".join(f"{split} {count:,}" for split, count in sorted(previous.gone.items()))
        note = f"split: {counted(previous.gone.total(), one, several)} ({splits})"
        if new:
            what = "A renamed image" if previous.not_compared else "An image with another name and other bytes"
            note += f". {what} counts as new, and may be in another split now"
        notes.append(note)
    return notes


def _with_rest(options: SplitConfig, split_of: Positions, keys: Sequence[str]) -> Positions:
    missing = np.flatnonzero(split_of < 0)
    if len(missing) and options.unlisted_images == FAIL:
        shown = ", ".join(keys[i] for i in missing[:_SHOWN].tolist()) + (", …" if len(missing) > _SHOWN else "")
        raise CheckFailed(
            f"split.method: predefined, but {len(missing)} of {len(keys)} images are in no split: {shown}. "
            "Set split.unlisted_images to the split they shall go into, or complete the splits in the input."
        )
    return np.where(split_of < 0, options.names.index(options.unlisted_images), split_of) if len(missing) else split_of


def _class_table(classes: ClassSets | None, accepted: Positions) -> ClassTable:
    assert classes is not None
    shown = [classes[i] for i in accepted.tolist()]
    if not any(shown):
        raise CheckFailed("split: the annotations name no class of any image to stratify by. Use split.method: hash.")
    images = np.repeat(np.arange(len(shown), dtype=np.int64), [len(labels) for labels in shown])
    return ClassTable(images, np.array([label for labels in shown for label in labels], dtype=np.int64))


def _notes(options: SplitConfig, assigned: Assignment, keys: Sequence[str], groups: Sequence[str] | None) -> list[str]:
    """Returns notes on the splits; none on plain splits by hash, whose sizes are in the table at the end."""
    counts = assigned.counts()
    total = sum(counts.values())
    if total and "train" in options.names and not counts.get("train") and options.method != "hash":
        shown = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise CheckFailed(f"split: no image is in train ({shown}). Change split.method or its options.")
    notes = []
    if options.method != "hash" or options.keep_from is not None:
        shares = ", ".join(f"{name} {count / max(1, total):.3f} ({count})" for name, count in counts.items())
        notes.append(f"split: {shares}")
    if groups is not None:
        alone = groups.count("")
        none = f"; without one: {counted(alone, 'image')}, e.g. {keys[groups.index('')]}" if alone else ""
        notes.append(f"split: {counted(len(set(groups) - {''}), 'group')}{none}")
    if options.keep_from is not None:
        new = len(keys) - assigned.kept
        kept = counted(assigned.kept, "image stays", "images stay")
        notes.append(f"split: {kept} in the splits of the earlier dataset, {new:,} new")
    if assigned.bridging:
        one, several = "new image joins two splits and is", "new images join two splits and are"
        notes.append(f"split: {counted(len(assigned.bridging), one, several)} written to neither")
    if assigned.leaks:
        shown = " and ".join(_placed(assigned, keys, image) for image in assigned.leaks[0])
        leaking = counted(len(assigned.leaks), "group or cluster leaks", "groups or clusters leak")
        notes.append(f"split: {leaking}, being in several splits, e.g. {shown}")
    notes += [f"split: no image is in {name}" for name, count in counts.items() if total and not count]
    return notes


def _placed(assigned: Assignment, keys: Sequence[str], i: int) -> str:
    return f"{keys[i]} ({assigned.names[int(assigned.split_of[i])]})"
