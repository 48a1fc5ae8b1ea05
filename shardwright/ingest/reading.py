"""Reading all of an input once: hashed, and with `images.verify: full` looked at in the same pass."""

from __future__ import annotations

from types import MappingProxyType

from shardwright.config.images import FULL
from shardwright.console import progress
from shardwright.ingest.features import PROBE_FEATURES
from shardwright.ingest.inputs import HashedInput, SurveyedInput, hash_input
from shardwright.ingest.recipe import IngestRecipe
from shardwright.probe.hashes import as_int64
from shardwright.probe.run import ProbedInput, ProbeOptions, probe_input
from shardwright.sources.base import Values


def probe_values(probed: ProbedInput | None, position: int) -> Values:
    """These features of one image that was found sound."""
    if probed is None:
        return MappingProxyType({})
    hashes = [[as_int64(value)] for value in probed.hashes[position].tolist()]
    measures = [[value] for value in probed.quality[position].tolist()]
    return dict(zip(PROBE_FEATURES, (*hashes, *measures), strict=True))


def read_input(
    recipe: IngestRecipe, surveyed: SurveyedInput, *, cache: str | None, workers: int | None, quiet: bool
) -> tuple[HashedInput, ProbedInput | None]:
    """Hashes an input, and probes it where the recipe says so.

    Args:
        recipe: the options.
        surveyed: the input.
        cache: folder where probe rows are kept, if any is.
        workers: processes that probe; by default one per processor.
        quiet: show no progress.

    Returns:
        Its content, and what its pixels tell.
    """
    count = len(surveyed.listing.keys)
    if recipe.images.verify != FULL:
        with progress(count, "hashing", quiet=quiet) as shown:
            return hash_input(surveyed, shown), None
    options = ProbeOptions(
        max_pixels=recipe.images.max_pixels,
        convert=recipe.images.convert != "reject",
        pixels=recipe.duplicates.pixels is not None,
    )
    with progress(count, "probing", quiet=quiet) as shown:
        probed = probe_input(surveyed.listing, surveyed.rejected, options, cache=cache, workers=workers, progress=shown)
    return hash_input(surveyed, hashed=probed.files()), probed
