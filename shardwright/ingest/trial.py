"""Some images of an input, made into examples as the writers of shards do, without writing anything.

The survey reads tables and names. Masks are read with their image only, by the writer of its shard: an error in all of
them would come to light after the images were read. A trial finds it before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shardwright.config.images import FULL
from shardwright.dataset.stored_image import prepare
from shardwright.errors import AnnotationError
from shardwright.formats.base import IGNORE
from shardwright.images.boxes import LABEL, XMAX, XMIN, YMAX, YMIN
from shardwright.images.decode import header_of
from shardwright.images.header import ImageError, ImageHeader
from shardwright.images.orientation import transposes
from shardwright.images.read_header import other_format
from shardwright.ingest.example import ExampleSpec, image_features
from shardwright.ingest.known_files import ProbeRow, decode_file
from shardwright.ingest.plan import example_spec
from shardwright.ingest.probe import UNREADABLE
from shardwright.ingest.recipe import IngestRecipe
from shardwright.ingest.survey import IngestInput
from shardwright.ingest.tasks import ImageRow, Job, Stored
from shardwright.masks.rle import Runs, from_flat
from shardwright.storage import Refusal, read_each
from shardwright.tfrecords.encode import FeatureValue, TypedList

# Bytes of all images of a trial: it takes a moment, whatever they are.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class TriedImage:
    """An image that was tried; `shardwright.display.thumbnails.StoredImage` where it would be written.

    Attributes:
        position: its place in the listing.
        path: its file.
        displayed: height and width of the file as it is displayed; `None` where it cannot be read.
        turned: whether Exif exchanges its sides.
        converted: the format of a file that is stored in another one; else empty.
        refusal: why it would be rejected; `None` where it would be written.
        header: of the bytes to store.
        encoded: the bytes to store.
    """

    position: int
    path: str
    displayed: tuple[int, int] | None = None
    turned: bool = False
    converted: str = ""
    refusal: Refusal | None = None
    header: ImageHeader | None = None
    encoded: bytes = b""
    _spec: ExampleSpec | None = field(default=None, repr=False)
    _features: Mapping[str, FeatureValue] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the stored pixels."""
        return (0, 0) if self.header is None else (self.header.height, self.header.width)

    @property
    def orientation(self) -> int:
        """1 to 8, as Exif numbers them."""
        return 1 if self.header is None else self.header.orientation

    @property
    def format(self) -> str:
        """`jpeg` or `png`; empty where it would be rejected."""
        return "" if self.header is None else self.header.format

    @property
    def labels(self) -> tuple[int, ...]:
        """Numbers of its classes, and `IGNORE` where some of its pixels are not counted."""
        ignored = (IGNORE,) if len(self.runs(IGNORE)) else ()
        return (*self._values("image/class/label"), *ignored)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of its classes."""
        return tuple(text.decode("utf-8") for text in self._values("image/class/text"))

    @property
    def boxes(self) -> dict[str, list[Any]]:
        """Edges and classes (from 1) of its boxes in the stored frame, by feature; empty where it has none."""
        return {name: values for name in (XMIN, YMIN, XMAX, YMAX, LABEL) if (values := self._values(name))}

    def runs(self, label: int) -> Runs:
        """Returns the mask of a class, or of `IGNORE`, in the stored frame, int64 (n, 2)."""
        name = "" if self._spec is None else self._spec.mask_feature(label)
        return from_flat(np.asarray(self._values(name), np.int64))

    def _values(self, name: str) -> list[Any]:
        value = self._features.get(name)
        return list(value.values) if isinstance(value, TypedList) else []


def try_images(surveyed: IngestInput, most: int) -> Iterator[TriedImage]:
    """Makes examples of some images, evenly spaced in the order of their keys, one after the other.

    Args:
        surveyed: the input.
        most: number of images to try at most; fewer where they are large.
    """
    alive = [i for i in range(len(surveyed.listing.keys)) if i not in surveyed.rejected]
    size = sum(surveyed.listing.sizes[i] for i in alive)
    most = max(1, min(most, len(alive), len(alive) * _MOST_BYTES // max(1, size)))
    return try_these(surveyed, sorted({alive[at * len(alive) // most] for at in range(most)}) if alive else [])


def try_these(surveyed: IngestInput, positions: Sequence[int]) -> Iterator[TriedImage]:
    """Makes examples of the images at some positions of the listing; see `try_images`."""
    spec, listing = example_spec(surveyed.recipe, surveyed), surveyed.listing
    files = ((i, ImageRow(listing.keys[i], listing.path(i), listing.sizes[i], pin=listing.pin(i))) for i in positions)
    jobs = {i: Job(file) for i, file in files}
    for annotation in surveyed.source.annotations():
        if annotation.image in jobs:
            jobs[annotation.image].add(annotation)
    read = read_each(
        listing.root, jobs.values(), lambda job: job.file.path, lambda job: job.file.size, lambda job: job.file.pin
    )
    for i, (job, data) in zip(jobs, read, strict=True):
        yield _try(surveyed.recipe, spec, job, data, TriedImage(i, job.file.path))


def _try(recipe: IngestRecipe, spec: ExampleSpec, job: Job, data: bytes | None, tried: TriedImage) -> TriedImage:
    options, key = recipe.images, job.file.key
    if data is None:
        return replace(tried, refusal=Refusal(key, *UNREADABLE))
    try:
        job.stored = Stored(*prepare(data, options))
        kind = other_format(data) if options.unsupported_formats != "reject" else ""
        frame = job.stored.frame
        turned = transposes(frame.orientation)
        tried = replace(tried, displayed=frame.size(displayed=True), turned=turned, converted=kind)
        if options.verify == FULL:
            original = header_of(data, max_pixels=options.max_pixels, convert=options.unsupported_formats != "reject")
            row = decode_file(data, original, max_pixels=options.max_pixels, pixels=False)
            if isinstance(row, ProbeRow):
                return replace(tried, refusal=Refusal(key, row.code, row.reason))
        features = image_features(spec, job)
    except ImageError as error:
        return replace(tried, refusal=Refusal(key, error.code, error.reason))
    except AnnotationError as error:
        return replace(tried, refusal=Refusal(key, error.code, str(error)))
    return replace(tried, header=job.stored.header, encoded=job.stored.data, _spec=spec, _features=features)
