"""Reads all of an input once: hashes it and, with `images.verify: full`, probes it in the same pass."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from types import MappingProxyType

import numpy as np

from shardwright.config.images import FULL
from shardwright.duplicates.hashes import as_int64
from shardwright.formats.base import Values
from shardwright.ingest.features import PROBE_FEATURES
from shardwright.ingest.known_files import KnownFiles, ProbeCache
from shardwright.ingest.previous_dataset import PreviousDataset
from shardwright.ingest.probe import ProbeOptions, probe_input
from shardwright.ingest.recipe import IngestRecipe
from shardwright.ingest.survey import HashedInput, SurveyedInput, hash_input
from shardwright.progress import progress

_ROWS_AT_ONCE = 4096


def probe_values(probed: KnownFiles | None, position: int) -> Values:
    """Returns the probe features of one image that could be decoded."""
    if probed is None:
        return MappingProxyType({})
    hashes = [[as_int64(value)] for value in probed.hashes[position].tolist()]
    measures = [[value] for value in probed.quality[position].tolist()]
    return dict(zip(PROBE_FEATURES, (*hashes, *measures), strict=True))


def read_input(
    recipe: IngestRecipe, surveyed: SurveyedInput, *, cache: str | None, workers: int | None, quiet: bool
) -> tuple[HashedInput, KnownFiles | None]:
    """Hashes an input, and probes it with `images.verify: full`.

    Args:
        recipe: the options.
        surveyed: the input.
        cache: folder where probe rows are kept, if any is.
        workers: processes that probe; by default one per processor.
        quiet: show no progress.

    Returns:
        Its content, and the probe results; `None` where it is not probed.
    """
    listing = surveyed.listing
    if recipe.images.verify != FULL:
        with progress(len(listing.keys), "hashing", quiet=quiet) as shown:
            return hash_input(surveyed, shown), None
    options = ProbeOptions(
        max_pixels=recipe.images.max_pixels,
        convert=recipe.images.convert != "reject",
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
        probed = probe_input(part, skipped, options, cache=cache, workers=workers, progress=shown)
    if known is not None and read is not None:
        probed = known.joined(read, probed)
    return hash_input(surveyed, hashed=probed.content), probed


def _keep_rows(previous: PreviousDataset, cache: ProbeCache) -> None:
    """Copies the probe rows of a previous dataset into the cache, for files that have to be read again.

    If the file with the rows is damaged, none is copied, because the cache is trusted later.
    """
    with suppress(OSError, ValueError, TypeError, KeyError, OverflowError):
        rows = ((origin.sha256, origin.row) for origin in previous.input_records(whole=True) if origin.row is not None)
        while some := dict(islice(rows, _ROWS_AT_ONCE)):
            cache.keep(some)
