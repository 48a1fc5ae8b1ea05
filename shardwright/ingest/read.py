"""Reads what the plan depends on: content IDs, and pixels where duplicates are found by them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np

from shardwright.config.images import FULL
from shardwright.duplicates.hashes import ImageHashes, as_int64
from shardwright.formats.base import Values
from shardwright.ingest.identify import HashedInput, hash_input
from shardwright.ingest.ingested_features import PROBE_FEATURES
from shardwright.ingest.known_files import KnownFiles, ProbeCache, ProbeRow
from shardwright.ingest.previous_dataset import PreviousDataset
from shardwright.ingest.probe import ProbeOptions, Spread, probe_input
from shardwright.ingest.recipe import IngestRecipe
from shardwright.ingest.survey import SurveyedInput
from shardwright.running.progress import progress

# Code and reason of a file that cannot be read.
UNREADABLE = "unreadable", "the file cannot be read; check its permissions"
_ROWS_AT_ONCE = 4096
_ALL_BITS = (1 << 64) - 1


def probe_values(probed: KnownFiles | None, position: int) -> Values:
    """Returns the probe features of one image, empty where they are not known yet."""
    if probed is None or not len(probed.hashes) or not probed.sound[position]:
        return MappingProxyType({})
    return _values(probed.hashes[position].tolist(), probed.quality[position].tolist())


def row_values(row: ProbeRow) -> Values:
    """Returns the probe features of an image that was decoded."""
    assert row.hashes is not None
    assert row.quality is not None
    return _values(row.hashes, row.quality)


def _values(hashes: Iterable[int], measures: Iterable[float]) -> Values:
    numbers = (*map(as_int64, hashes), *measures)
    return {name: [number] for name, number in zip(PROBE_FEATURES, numbers, strict=True)}


def probe_of_values(values: Values) -> list[Any] | None:
    """Returns the probe results that features contain, as `probe_json` does; `None` where there are none."""
    if not values:
        return None
    numbers = [values[name][0] for name in PROBE_FEATURES]
    count = len(ImageHashes._fields)
    return [[int(number) & _ALL_BITS for number in numbers[:count]], numbers[count:], None]


def read_input(
    recipe: IngestRecipe,
    surveyed: SurveyedInput,
    *,
    cache: str | None,
    workers: int | None,
    spread: Spread | None,
    quiet: bool,
) -> tuple[HashedInput, KnownFiles | None]:
    """Identifies an input, and probes it where the plan depends on pixels.

    Args:
        recipe: the options.
        surveyed: the input.
        cache: folder where probe rows are kept, if any is.
        workers: processes that probe; by default one per processor.
        spread: has images probed elsewhere; by default in these processes.
        quiet: show no progress.

    Returns:
        Its content, and the probe results that are known; `None` where there are none.
    """
    listing = surveyed.listing
    if not recipe.duplicates.looks_at_pixels:
        with progress(len(listing.keys), "hashing", quiet=quiet) as shown:
            hashed = hash_input(surveyed, shown)
        return hashed, _known_rows(recipe, surveyed, hashed)
    options = ProbeOptions(
        max_pixels=recipe.images.max_pixels,
        convert=recipe.images.unsupported_formats != "reject",
        checksum=recipe.images.checksum,
        pixels=recipe.duplicates.pixels is not None,
    )
    known, previous, read = surveyed.known, surveyed.previous, None
    same_checks = previous is not None and previous.same_checks(recipe.options()["images"])
    if known is not None and known.content.known.any():
        # Files that are not going to be written need no more than their hash.
        enough = np.array([i in surveyed.rejected for i in range(len(listing.keys))])
        if same_checks:
            enough |= known.sound
        read = np.flatnonzero(~(known.content.known & enough))
    if previous is not None and cache is not None and (read is None or not same_checks):
        _keep_rows(previous, ProbeCache.open(cache))
    part = listing if read is None else listing.part(read.tolist())
    skipped = surveyed.rejected if read is None else [i for i, p in enumerate(read.tolist()) if p in surveyed.rejected]
    with progress(len(part.keys), "probing", quiet=quiet) as shown:
        probed = probe_input(part, skipped, options, cache=cache, workers=workers, spread=spread, progress=shown)
    if known is not None and read is not None:
        probed = known.joined(read, probed)
    return hash_input(surveyed, hashed=probed.content), probed


def _known_rows(recipe: IngestRecipe, surveyed: SurveyedInput, hashed: HashedInput) -> KnownFiles | None:
    """Returns the measures that the previous dataset has of files that have not changed."""
    previous, known = surveyed.previous, surveyed.known
    if recipe.images.verify != FULL or previous is None or known is None:
        return None
    if not previous.same_checks(recipe.options()["images"]):
        return None
    known = replace(known, content=hashed.contents)
    if not surveyed.listing.checksums:
        previous.add_rows(surveyed.listing, known)
    return known


def _keep_rows(previous: PreviousDataset, cache: ProbeCache) -> None:
    """Copies the probe rows of a previous dataset into the cache, for files that have to be read again.

    If the file with the rows is damaged, none is copied, because the cache is trusted later.
    """
    with suppress(OSError, ValueError, TypeError, KeyError, OverflowError):
        rows = (
            (origin.content_id, origin.row) for origin in previous.input_records(whole=True) if origin.row is not None
        )
        while some := dict(islice(rows, _ROWS_AT_ONCE)):
            cache.keep(some)
