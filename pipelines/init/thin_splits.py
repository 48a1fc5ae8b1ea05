"""Finds out whether a split by hash leaves a split, or a class of a split, without images, as it may with few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from shardwright.config import SplitConfig
from shardwright.ingest.splitting import class_sets
from shardwright.ingest.survey import SurveyedInput
from shardwright.splits.hashing import Splitter

_SHOWN = 3
# A class of four images gets one in each of these splits, and one of fewer cannot.
_ENOUGH, _OF_FEW = 4, {"train": 0.6, "eval": 0.2, "test": 0.2}
# Above this, reading all annotations again takes seconds, and a class that splits lack is one of a few images.
_MOST_IMAGES = 50_000


def thin_splits(options: SplitConfig, surveyed: SurveyedInput) -> tuple[str, SplitConfig]:
    """Returns what a split by hash would leave out, though there are images enough, and the split that does not.

    Args:
        options: `split`, with the default shares and method.
        surveyed: the input.

    Returns:
        The words for it and a stratified split; no words and the same options if nothing is left out.
    """
    keys, classes = surveyed.listing.keys, surveyed.survey.classes
    accepted = [image for image in range(len(keys)) if image not in surveyed.rejected]
    if not _ENOUGH <= len(accepted) <= _MOST_IMAGES:
        return "", options
    splitter = Splitter.of(options.ratios, options.salt)
    split_of = {image: splitter.split(keys[image]) for image in accepted}
    sets = (
        class_sets(surveyed.source.annotations(), len(keys), surveyed.source.dialect) if classes else [()] * len(keys)
    )
    images = Counter((split_of[image], label) for image in accepted for label in sets[image])
    sizes = Counter(label for image in accepted for label in sets[image])
    enough = [label for label in range(len(classes)) if sizes[label] >= _ENOUGH]
    reason = ""
    for name in splitter.names:
        missing = [classes[label] for label in enough if not images[name, label]]
        if name not in split_of.values():
            reason = reason or f"{name} without images"
        elif missing:
            reason = reason or f"{name} without an image of {_listed(missing)}"
    if not reason:
        return "", options
    rarest = min((sizes[label] for label in enough), default=len(accepted))
    small = all(round(share * rarest, 6) >= 1 for share in options.ratios.values())
    return reason, replace(options, method="stratified", ratios=options.ratios if small else _OF_FEW)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
