"""Tries some images of an input, and looks whether some of them are masks.

A trial reads images with their annotations as an ingest does: what an ingest would stop for is a question before a
configuration is written. A mask is stored without loss and has few colors. Photographs have hundreds, also in a small
sample of their pixels.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from shardwright.dataset.ledger import UNLISTED
from shardwright.errors import CheckFailed, Reading
from shardwright.formats.base import IGNORE
from shardwright.images.decode import convert, decode
from shardwright.images.header import ImageError
from shardwright.images.read_header import read_header
from shardwright.ingest.survey import IngestInput
from shardwright.ingest.trial import try_images
from shardwright.masks.rle import area
from shardwright.pipelines.init.inventory import LOSSLESS
from shardwright.pipelines.init.read_trial import EXCLUDE, IMAGES, DetectedInput
from shardwright.running.progress import counted
from shardwright.staging.commit import allowed_rejects, needed_share
from shardwright.storage import Refusal, map_threads, read_bytes, readers

_ORIENTATION, _FORMATS, _MAX_REJECTS = (
    "input.labels.orientation",
    "images.unsupported_formats",
    "rejects.max_fraction",
)
# Annotations that do not fit their images. More than a part of them means that they are read wrongly.
_MISFITS = frozenset(("size_mismatch", "beyond_image"))
# Rows of a table that cannot be right, whatever their image is.
_OF_ROWS = frozenset(("bad_row", "conflicting_labels"))
# Enough that a share of rejects is known, and tried in a moment; pixels of a few tell masks from photographs.
_TRIED, _DECODED, _SHOWN = 512, 32, 3
# Colors of a mask at most, and of a photograph at least, among the pixels of a grid.
_FEW, _MANY, _GRID = 16, 48, 64
# Share of the files that each of the two kinds has at least.
_SHARE = 0.15
# What a sample of the images may miss of the share of rejects.
_OF_A_SAMPLE = 0.01


@dataclass
class ImageSample:
    """Some images of an input that were tried.

    Attributes:
        sizes: heights and widths, as displayed -> images.
        formats: of the files that are stored in another one.
        refused: those that would be rejected, by their position.
        turned: whether Exif exchanges the sides of some.
        classes: images of each class, of those that would be written.
        pixels: of those that would be written.
        masked: of these, in masks.
        tried: how many were tried.
        is_whole: whether all of them were.
    """

    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    formats: set[str] = field(default_factory=set)
    refused: dict[int, Refusal] = field(default_factory=dict)
    turned: bool = False
    classes: Counter[str] = field(default_factory=Counter)
    pixels: int = 0
    masked: int = 0
    tried: int = 0
    is_whole: bool = False

    @property
    def size(self) -> tuple[int, int] | None:
        """Returns height and width, as displayed, of the median image; `None` where none can be read."""
        if not self.sizes:
            return None
        height, width = (statistics.median_low(side) for side in zip(*self.sizes.elements(), strict=True))
        return height, width


def try_input(found: DetectedInput) -> tuple[DetectedInput, ImageSample]:
    """Tries images, and converts those of other formats, so that they are not rejected.

    Returns:
        The input, where all of its images were tried with the rejects among them; and what was seen.

    Raises:
        CheckFailed: an ingest would stop for its rejects; with readings.
    """
    converted = found
    if _FORMATS not in found.options:
        converted = found.with_options({**found.options, _FORMATS: "png"})
    sample = ImageSample()
    for image in try_images(converted.surveyed, _TRIED):
        sample.tried += 1
        sample.sizes.update([image.displayed] if image.displayed else [])
        sample.formats |= {image.converted} - {""}
        sample.turned |= image.turned
        sample.classes.update(set(image.classes))
        if image.refusal is not None:
            sample.refused[image.position] = image.refusal
        sample.pixels += math.prod(image.size)
        sample.masked += sum(area(image.runs(label)) for label in image.labels if label != IGNORE)
    surveyed = found.surveyed
    sample.is_whole = sample.tried == len(surveyed.listing.keys) - len(surveyed.rejected)
    found = converted if sample.formats else found
    if sample.is_whole:
        rejected = {**surveyed.rejected, **sample.refused}
        found = replace(found, surveyed=replace(found.surveyed, rejected=rejected))
    _check_rejects(found, sample)
    return found, sample


def _check_rejects(found: DetectedInput, sample: ImageSample) -> None:
    """Raises `CheckFailed` where an ingest would reject more than the configuration allows."""
    surveyed = found.surveyed
    listed = (*surveyed.survey.refused, *surveyed.listing.refused)
    total = len(surveyed.listing.keys) + len(listed) + len(surveyed.spans.passed_over)
    known = [one for one in (*surveyed.rejected.values(), *listed) if one.code != UNLISTED]
    good, refused = len(surveyed.listing.keys) - len(surveyed.rejected), list(sample.refused.values())
    unread = 0 if sample.is_whole or not sample.tried else math.ceil(len(refused) * good / sample.tried)
    rejects = len(known) + unread
    if rejects <= allowed_rejects(found.config.rejects.max_fraction, total) and (good > unread or not sample.tried):
        return
    seen = known if sample.is_whole else [*known, *refused]
    codes = Counter(one.code for one in seen)
    counts = ", ".join(f"{code} {count:,}" for code, count in codes.most_common())
    about, looked = ("about ", f" ({sample.tried:,} images were tried)") if unread else ("", "")
    # The first of each kind.
    kinds = {one.code: one for one in reversed(seen)}
    first = "; ".join(f"{kinds[code].key}: {kinds[code].reason}" for code, _ in codes.most_common(_SHOWN))
    fix = "Correct these files, or leave them out."
    if codes.keys() <= _OF_ROWS:
        several = "s" if len(seen) > 1 else ""
        fix = f"Correct the row{several}, or leave the image{several} out."
    error = CheckFailed(
        f"{found.config.input.images}: {about}{rejects:,} of {total:,} inputs would be rejected{looked}, and "
        f"{_MAX_REJECTS} is {found.config.rejects.max_fraction:g}: {counts}. For example "
        f"{first}. {fix}"
    )
    misfits = sum(codes[code] for code in _MISFITS)
    readings = []
    if misfits and sample.turned and _ORIENTATION not in found.options:
        frames = {"displayed": "as they are displayed", "stored": "as they are stored, not turned by Exif"}
        readings = [
            Reading(f"annotations are of the images {how}", {_ORIENTATION: frame}) for frame, how in frames.items()
        ]
    own = sorted({one.key for one in known} & {*surveyed.listing.keys})
    # In vain where a table names them.
    left_out = bool(known) and {one.key for one in known} <= {*found.options.get(EXCLUDE, ())}
    if sample.is_whole and 0 < len(own) == len(known) <= _SHOWN and EXCLUDE not in found.options:
        readings.append(
            Reading(f"{', '.join(own)} is not part of the set", {IMAGES: found.options[IMAGES], EXCLUDE: own})
        )
    if good > unread and not left_out and not 2 * misfits > len(seen) > total / 2:
        share = min(1.0, needed_share(rejects, total) + (_OF_A_SAMPLE if unread else 0))
        what = f"{about}{counted(rejects, 'input is', 'inputs are')} rejected"
        readings.append(Reading(what, {_MAX_REJECTS: round(share, 4)}))
    raise error.with_readings(*readings)


def find_masks(surveyed: IngestInput, max_pixels: int, aside: Collection[int]) -> tuple[Sequence[str], Sequence[str]]:
    """Looks at some files at even distances.

    Args:
        surveyed: the input, without annotations.
        max_pixels: `images.max_pixels`.
        aside: positions of files that do not count, such as plots.

    Returns:
        The keys of files that look like masks, and of photographs; nothing where all are of one kind.
    """
    listing = surveyed.listing
    if not any(key.lower().endswith(LOSSLESS) for key in listing.keys):
        return (), ()
    good = [i for i in range(len(listing.keys)) if i not in surveyed.rejected and i not in aside]
    chosen = sorted({good[at * len(good) // _DECODED] for at in range(_DECODED)}) if good else []
    counts = map_threads(lambda i: _colors(listing.path(i), listing.pin(i), max_pixels), chosen, readers(listing.root))
    looked = [(listing.keys[i], count) for i, count in zip(chosen, counts, strict=True)]
    masks = [key for key, count in looked if 0 < count <= _FEW and key.lower().endswith(LOSSLESS)]
    photographs = [key for key, count in looked if count >= _MANY]
    few = min(len(masks), len(photographs)) < max(2, _SHARE * len(looked))
    return ((), ()) if few else (masks, photographs)


def _colors(path: str, pin: str, max_pixels: int) -> int:
    """Returns how many colors a grid of pixels of a file has, 0 where it cannot be read."""
    with suppress(OSError, ImageError):
        data = read_bytes(path, pin)
        try:
            picture = decode(data, read_header(data, max_pixels=max_pixels))
        except ImageError:
            picture, _ = convert(data, max_pixels=max_pixels)
        pixels = np.asarray(picture)
        rows, columns = (max(1, side // _GRID) for side in pixels.shape[:2])
        grid = pixels[::rows, ::columns]
        return len(np.unique(grid.reshape(-1, *grid.shape[2:]), axis=0))
    return 0
