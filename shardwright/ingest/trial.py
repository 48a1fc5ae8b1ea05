"""Some images of an input, made into examples as the writers of shards do, without writing anything.

The survey reads tables and names. Masks are read with their image only, by the writer of its shard: an error in all of
them would come to light after the images were read. A trial finds it before.
"""

from __future__ import annotations

from typing import NamedTuple

from shardwright.config.images import FULL
from shardwright.dataset.stored_image import prepare
from shardwright.formats.base import ImageSample
from shardwright.images.decode import header_of
from shardwright.images.header import ImageError
from shardwright.ingest.example import BadMask, ExampleSpec, encode_sample
from shardwright.ingest.known_files import ProbeRow, decode_file
from shardwright.ingest.plan import example_spec
from shardwright.ingest.read import UNREADABLE
from shardwright.ingest.recipe import IngestRecipe
from shardwright.ingest.survey import SurveyedInput
from shardwright.ingest.tasks import Annotated, ImageRow
from shardwright.storage import Refusal, read_each


class Trial(NamedTuple):
    """The result of a trial.

    Attributes:
        tried: number of images that were tried.
        rejected: those that an ingest would reject, with the reason.
    """

    tried: int
    rejected: list[Refusal]


def try_images(recipe: IngestRecipe, surveyed: SurveyedInput, most: int) -> Trial:
    """Makes examples of some images, evenly spaced in the order of their keys, and drops them.

    Args:
        recipe: the options.
        surveyed: the input.
        most: number of images to try at most.
    """
    spec = example_spec(recipe, surveyed)
    samples = _samples(surveyed, spec, most)
    files = read_each(surveyed.listing.root, samples, lambda sample: sample.path, lambda sample: sample.size)
    return Trial(len(samples), [refusal for sample, data in files if (refusal := _try(recipe, spec, sample, data))])


def _samples(surveyed: SurveyedInput, spec: ExampleSpec, most: int) -> list[ImageSample]:
    listing = surveyed.listing
    alive = [i for i in range(len(listing.keys)) if i not in surveyed.rejected]
    chosen = alive[:: max(1, -(-len(alive) // most))]
    annotated, wanted = Annotated(), set(chosen)
    for annotation in surveyed.source.annotations():
        if annotation.image in wanted:
            annotated.add(annotation)
    rows = ((i, ImageRow(listing.keys[i], listing.path(i), listing.sizes[i], "", 0, "", "", {})) for i in chosen)
    return [annotated.pop_sample(i, row, spec.task, ordered=spec.ordered) for i, row in rows]


def _try(recipe: IngestRecipe, spec: ExampleSpec, sample: ImageSample, data: bytes | None) -> Refusal | None:
    """Returns why an image would be rejected, `None` where it would be written."""
    options = recipe.images
    if data is None:
        return Refusal(sample.key, *UNREADABLE)
    try:
        stored, header, frame = prepare(data, options)
        if options.verify == FULL:
            original = header_of(data, max_pixels=options.max_pixels, convert=options.unsupported_formats != "reject")
            row = decode_file(data, original, max_pixels=options.max_pixels, pixels=False)
            if isinstance(row, ProbeRow):
                return Refusal(sample.key, row.code, row.reason)
        encode_sample(spec, sample, stored, "", header, frame)
    except (ImageError, BadMask) as error:
        return Refusal(sample.key, error.code, error.reason)
    return None
