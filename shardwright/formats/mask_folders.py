"""Which folders hold the masks of which folders of images, by the names of the folders alone.

| folders | masks of `a/images/1.png` |
|---|---|
| a folder of objects for each image | `a/masks/1.png`, `a/masks/2.png` |
| a folder of masks for each of images | of `train/images`: `train/masks`; of `val`: `valannot`; of `Slide_1`: `GT_1` |
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shardwright.images.header import has_image_ending

OBJECT_FOLDERS = ("masks", "mask", "objects")
# Words for masks and for images in the names of folders, with what separates them from other words.
MASK_WORDS = re.compile(
    r"[_ -]*(?:(?:1st|2nd)_manual|(?<!with)(?<!with[_ -])(?<!without)(?<!without[_ -])masks?|label(?:l?ed|s)?|"
    r"anno(?:t(?:ation)?)?s?|seg(?:mentation)?s?|semantics?|instances?|panoptic|boundar(?:y|ies)|ground.?truths?|trimaps?|"
    r"manual|(?<![a-z])(?:gt|labs?)(?![a-z])|^gt|^targets?$)[_ -]*",
    re.I,
)
_IMAGES_IN = re.compile(r"[_ -]*(?:images?|imgs?|input|frames?|photos?|pictures?)[_ -]*", re.I)


def object_masks(keys: Sequence[str]) -> frozenset[str]:
    """Returns the keys in folders of objects: they are called after masks, and next to each is one image.

    Args:
        keys: keys of images and masks in one folder.
    """
    tops: Counter[str] = Counter()
    inside: dict[str, str] = {}
    for key in keys:
        top, _, name = key.rpartition("/")[0].rpartition("/")
        if name.lower() in OBJECT_FOLDERS and top:
            inside[key] = top
        else:
            tops.update("/".join(key.split("/")[: i + 1]) for i in range(key.count("/")))
    return frozenset(key for key, top in inside.items() if tops[top] == 1)


class Place(NamedTuple):
    """Where the images of a folder of masks are, and the class of its masks, or an empty text."""

    images: str
    label: str


def parallel_folders(keys: Iterable[str]) -> dict[str, Place]:
    """Returns folders of masks and the folder of images of each, where there are several such pairs.

    Their names differ in the words for masks and images alone, as of `train/masks` and `train/images`, or of `valannot`
    and `val`; or a folder of masks has one other next to it: `a/lung masks` and `a/images`. A folder of masks may hold
    one folder for each class: `train/masks/car`.

    Args:
        keys: keys of images and masks below one folder; other files do not count.
    """
    holding = set[str]()
    for key in keys:
        folder = key.rpartition("/")[0]
        if folder not in holding and has_image_ending(key):
            holding.add(folder)
    folders = sorted(holding)
    if pairs := _pair(folders):
        return {mask: Place(images, "") for mask, images in pairs.items()}
    of_class = {folder: folder.rpartition("/")[0] for folder in folders if "/" in folder}
    of_class = {folder: top for folder, top in of_class.items() if MASK_WORDS.fullmatch(top.rpartition("/")[2])}
    pairs = _pair(sorted({of_class.get(folder, folder) for folder in folders})) if of_class else {}
    return {mask: Place(pairs[top], mask[len(top) + 1 :]) for mask, top in of_class.items() if top in pairs}


def _pair(folders: Sequence[str]) -> dict[str, str]:
    """Returns folder of masks -> its folder of images, if there are several pairs."""
    # What all have in common says nothing, such as `Segmentation Data`.
    start = len(os.path.commonpath(folders)) if folders else 0
    masks = {folder: _without(MASK_WORDS, folder) for folder in folders if MASK_WORDS.search(folder, start)}
    images: dict[tuple[str, ...], list[str]] = {}
    for folder in folders:
        if folder not in masks:
            images.setdefault(_without(_IMAGES_IN, folder), []).append(folder)
    near: dict[str, list[str]] = {}
    for folder in folders:
        near.setdefault(folder.rpartition("/")[0], []).append(folder)
    beside = {mask: [one for one in near[mask.rpartition("/")[0]] if one != mask] for mask in masks if "/" in mask}
    pairs = {}
    for folder, rest in masks.items():
        fitting = images.get(rest) or beside.get(folder, [])
        if len(fitting) == 1 and fitting[0] not in masks:
            pairs[folder] = fitting[0]
    if len(set(pairs.values())) == len(pairs) > 1:
        return pairs
    # `Slide_01` and `GT_01`: the rest of both kinds of names is the same.
    others = [folder for folder in folders if folder not in masks]
    together = len(near) == 1 and len(masks) == len(others) > 1
    rests = [_between(list(some)) for some in (masks, others)] if together else [{}]
    return (
        {rests[0][rest]: rests[1][rest] for rest in rests[0]}
        if rests[0] and rests[0].keys() == rests[-1].keys()
        else {}
    )


def _between(folders: Sequence[str]) -> dict[str, str]:
    """Returns what is not common to all folders -> the folder."""
    start = common_start(folders).rstrip("0123456789")
    end = common_start([folder[len(start) :][::-1] for folder in folders])
    return {folder[len(start) : len(folder) - len(end)].lower(): folder for folder in folders}


def _without(words: re.Pattern[str], folder: str) -> tuple[str, ...]:
    return tuple(filter(None, (words.sub("", part).lower() for part in folder.split("/"))))


def common_start(names: Sequence[str]) -> str:
    """Returns what all names begin with."""
    first, last = min(names), max(names)
    return next((first[:i] for i, letter in enumerate(first) if last[i : i + 1] != letter), first)
