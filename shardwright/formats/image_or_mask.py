"""Which files are images and which are masks, where the two folders overlap: no file is both.

| folders | masks |
|---|---|
| `images: data`, `labels.path: data/masks` | what is in `data/masks` (the listing of the images leaves it out) |
| `images: data/img`, `labels.path: data` | what is not in `data/img` |
| one folder for both | `x_mask.png` and other suffixes of `mask_names`; `x.png` of `x.jpg`; `x_car.png`, `car_x.png` |
| `train/images/a.png`, `train/masks/a.png`, `val/images/b.png`, … | what is in the folders called after masks |
| `a/images/a.png`, `a/masks/1.png`, `a/masks/2.png` | what is in folders called `masks`, next to one image each |
| Pascal VOC's tree as `images` | what is in `SegmentationClass` and `SegmentationObject` |

`input.labels.regex` decides where it is given: a file is a mask if the pattern finds its image, another file.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence

from shardwright.config.input import LabelsConfig
from shardwright.config.limited_pattern import LimitedPattern
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.head import Head
from shardwright.formats.mask_folders import object_masks, parallel_folders
from shardwright.formats.mask_images import LOSSY, list_masks
from shardwright.formats.mask_names import (
    CLASS_PREFIX,
    ImageStems,
    beside_photographs,
    numbered_suffix,
    pattern_names,
    suffix_pairs,
)
from shardwright.formats.registry import decide
from shardwright.formats.signs import VOC_MASKS as MASKS
from shardwright.formats.signs import VOC_OBJECTS as OBJECTS
from shardwright.label_formats import MASKS as MASK_FOLDER
from shardwright.storage import Listing

_SHOWN = 3


def without_masks(
    images: Listing, options: LabelsConfig, head: Head, excluded: frozenset[str] = frozenset()
) -> tuple[Listing, frozenset[str], str]:
    """Takes the masks out of the images.

    Args:
        images: what is listed, in the folder of the annotations or around it.
        options: `input.labels`.
        head: of the annotations.
        excluded: absolute paths of files that are neither.

    Returns:
        The images; their paths, where the folder of the masks holds some of them, too; a note, or an empty text.

    Raises:
        UsageError: all files may be either.
    """
    labels = head.path
    row = decide(options.format, head).row
    if row is None or row.reads != MASK_FOLDER:
        return images, frozenset(), ""
    if row.name == "pascal_voc" or head.holds(MASKS):
        below = [bool({MASKS, OBJECTS} & {*images.path(i)[len(labels) :].split("/")}) for i in range(len(images.keys))]
        return _split(images, below, "in " + MASKS)
    masks = list_masks(labels)
    names = {path: key for i, key in enumerate(masks.keys) if (path := masks.path(i)) not in excluded}
    both = {i: names[path] for i in range(len(images.keys)) if (path := images.path(i)) in names}
    if not both:
        return images, frozenset(), ""
    if options.regex is not None:
        found, how = _by_pattern(images, both, options.regex), f"by input.labels.regex {options.regex!r}"
        if not found and len(both) == len(names):
            raise ConfigError(
                "input.labels.regex",
                f"{options.regex!r} finds no file that is the mask of another one, e.g. {next(iter(both.values()))}",
                "Write what the masks' names have and the images' names lack, e.g. '(?P<image>.+)_mask'.",
            )
    elif len(both) < len(names):
        found, how = set(), ""
    else:
        found, how = next(((some, how) for some, how in _pairs(images, both) if some), (set(), ""))
        if not found:
            shown = ", ".join([images.keys[i] for i in both][:_SHOWN])
            raise UsageError(
                f"input.labels.path: images and masks are in one folder, and no name shows which are masks: {shown}. "
                "Set input.labels.regex, e.g. '(?P<image>.+)_mask', or put the masks into a separate folder."
            )
    return _split(images, [i in found for i in range(len(images.keys))], how)


def _split(images: Listing, masks: Sequence[bool], how: str) -> tuple[Listing, frozenset[str], str]:
    kept = [i for i, is_mask in enumerate(masks) if not is_mask]
    paths = frozenset(images.path(i) for i in kept)
    if len(kept) == len(masks):
        return images, paths, ""
    part = dataclasses.replace(images.part(kept), refused=images.refused)
    return part, paths, f"images: {len(masks) - len(kept)} of {len(masks)} files are masks, not images ({how})"


def _by_pattern(images: Listing, both: dict[int, str], pattern: str) -> set[int]:
    stems = ImageStems(images.keys, frozenset())
    named = pattern_names(LimitedPattern(pattern, "input.labels.regex"), stems)
    found = {i: named(os.path.splitext(key)[0]) for i, key in both.items()}
    return {i for i, name in found.items() if name is not None and stems.find(name[0], bare=True) != i}


def _pairs(images: Listing, both: dict[int, str]) -> Iterator[tuple[set[int], str]]:
    """Files that are masks by one rule after the other."""
    keys = images.keys
    stem_of = {i: os.path.splitext(keys[i])[0] for i in both}
    stems = {os.path.splitext(key)[0] for key in keys}
    known = [
        (suffix, image)
        for suffix, image in suffix_pairs(stems, stem_of.values())
        if any(stem.endswith(suffix) and stem[: -len(suffix)] + image in stems for stem in stem_of.values())
    ]
    yield _ending(stem_of, [suffix for suffix, _ in known]), f"by the suffix {' or '.join(name for name, _ in known)}"
    parallel = parallel_folders(keys)
    yield {i for i in both if keys[i].rpartition("/")[0] in parallel}, "in a folder of masks for each folder of images"
    inside = object_masks(keys)
    yield {i for i in both if keys[i] in inside}, "in a folder of objects for each image"
    photographs = ImageStems(keys, frozenset(i for i, key in enumerate(keys) if not key.lower().endswith(LOSSY)))
    others = {i: stem for i, stem in stem_of.items() if i in photographs.skip}
    for layout in beside_photographs([keys[i] for i in others], photographs):
        named = {i: name for i, stem in others.items() if (name := layout.names(stem)) is not None}
        found = {i for i, (stem, _) in named.items() if photographs.find(stem, bare=False) is not None}
        # One prefix alone is that of a camera.
        if layout.name != CLASS_PREFIX or len({named[i][1] for i in found}) > 1:
            yield found, f"by {layout.name}"


def _ending(stem_of: dict[int, str], suffixes: Sequence[str]) -> set[int]:
    ends = tuple(suffixes)
    return {i for i, stem in stem_of.items() if stem.endswith(ends) or (numbered_suffix(stem) in ends)}
