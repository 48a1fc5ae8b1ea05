"""`split.keep_from`: keeps images in the splits that they have in an earlier dataset."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config import SplitConfig
from shardwright.dataset.ledger import DUPLICATE, WRITTEN
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.shard_names import LEDGER_FOLDER
from shardwright.errors import CheckFailed, DatasetError, UsageError
from shardwright.ingest.renamed import InputFiles, find_renamed
from shardwright.splits import NEW
from shardwright.staging.commit import is_committed
from shardwright.storage import hash_file
from shardwright.storage.listing import KeyIndex


def named_dataset(option: str, path: str) -> ImageDataset:
    """Opens the dataset that an option names.

    Raises:
        UsageError: there is none.
        DatasetError: it is damaged.
    """
    try:
        return ImageDataset.open(path)
    except DatasetError as error:
        if is_committed(path):
            raise
        raise UsageError(f"{option}: {error}") from None


class PreviousSplits(NamedTuple):
    """The splits of an earlier dataset.

    Attributes:
        split_of: for each of today's images, the number of the split that it was written into, or would have been
            without a duplicate; `NEW` for images that were not there or were rejected.
        renamed: positions of images that had another key, in ascending order.
        gone: split -> how many of its images are not there today, neither under their keys nor by their bytes.
        not_compared: see `RenamedImages`.
    """

    split_of: npt.NDArray[np.int64]
    renamed: Sequence[int]
    gone: Counter[str]
    not_compared: int


def previous_splits(options: SplitConfig, path: str, files: InputFiles) -> PreviousSplits:
    """Returns the splits that images had, by their bytes or by their keys.

    Args:
        options: `split` of a recipe: `previous` is the digest that the earlier dataset must have.
        path: its folder, absolute.
        files: today's images.

    Raises:
        UsageError: its splits are not those of the configuration, or it is another fold.
        CheckFailed: its digest is not the one in the recipe.
        DatasetError: it is damaged.
    """
    dataset = ImageDataset.open(path)
    if dataset.manifest.digest != options.keep_from:
        raise CheckFailed(
            f"split.keep_from: {path} has changed since the run began (digest {dataset.manifest.digest[:12]}, expected "
            f"{str(options.keep_from)[:12]}). Run it again."
        )
    for part, checksum in sorted(dataset.manifest.parts.items()):
        if not part.startswith(LEDGER_FOLDER):
            continue
        found = hash_file(os.path.join(dataset.root, part))
        if found is None or found.content_id.hex() != checksum:
            raise DatasetError(f"split.keep_from: {part} of {path} is missing or damaged. Restore it.")
    unknown = sorted(set(dataset.splits) - set(options.names))
    if unknown:
        raise UsageError(
            f"split.keep_from: {path} has a split {unknown[0]!r}; this configuration has {', '.join(options.names)}. "
            "Name the splits alike."
        )
    if options.method == "kfold":
        _check_fold(options, dataset)
    number = {name: i for i, name in enumerate(options.names)}
    positions = KeyIndex(files.listing.keys)
    split_of = np.full(len(files.listing.keys), NEW, dtype=np.int64)
    # Keys of duplicates, whose images the earlier dataset has under another key.
    duplicates = set[int]()
    for row in dataset.ledger():
        if row.status in (WRITTEN, DUPLICATE) and row.split in number:
            position = positions.find(row.key)
            if position >= 0:
                split_of[position] = number[row.split]
                if row.status == DUPLICATE:
                    duplicates.add(position)
    renamed = find_renamed(dataset, options.names, files)
    for position, split in renamed.split_of.items():
        split_of[position] = split
    return PreviousSplits(split_of, sorted(renamed.split_of.keys() - duplicates), renamed.gone, renamed.not_compared)


def _check_fold(options: SplitConfig, dataset: ImageDataset) -> None:
    """Checks that the dataset is the same fold: an image that is `train` in one fold is `eval` in another."""
    before = dataset.manifest.recipe.get("split", {})
    if [before.get(name) for name in ("method", "num_folds", "fold_index")] != [
        options.method,
        options.num_folds,
        options.fold_index,
    ]:
        raise UsageError(
            f"split.keep_from: {dataset.root} is not fold {options.fold_index} of {options.num_folds}. Give the "
            "earlier dataset of the same fold."
        )
