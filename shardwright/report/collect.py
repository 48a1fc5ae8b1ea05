"""Collects in one pass over the records all that the report counts, and the locations of the images that it shows.

Measures of pixels come from the features that the ingest wrote. A dataset without them is measured on a sample of
images, chosen by a hash of the keys. Shapes of masks come from a sample, too. Memory use is constant, except for about
60 bytes for each image, from which duplicates are found.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from shardwright.dataset.example_view import ExampleReader, ExampleView, sampling_hash
from shardwright.dataset.random_access import RecordLocation
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.display.numbers import Histogram, Scale
from shardwright.fingerprint import text_number
from shardwright.images.header import ImageError
from shardwright.images.quality import Quality, measure, thumbnail
from shardwright.progress import SILENT, Progress
from shardwright.report.mask_shapes import MaskShapes
from shardwright.report.samples import LowestK, key_folder

SHAPES_OF = 3000
MEASURED_OF = 1500
MOST_CLASSES = 24
_RANDOM, _PER_CLASS, _EXTREME = 24, 6, 12
_MOST_SIZES = 4096

_QUALITY = ("brightness", "contrast", "sharpness", "colorfulness")


@dataclass(frozen=True)
class Options:
    """Sizes of the samples.

    Attributes:
        seed: seed of the random samples.
        shapes: about how many images have the shapes of their masks measured.
        measured: about how many images are measured if the dataset contains no measures.
    """

    seed: int = 0
    shapes: int = SHAPES_OF
    measured: int = MEASURED_OF


DEFAULTS = Options()


@dataclass
class Columns:
    """A few numbers of every image, from which duplicates are found."""

    shard: array[int] = field(default_factory=lambda: array("l"))
    offset: array[int] = field(default_factory=lambda: array("q"))
    content: array[int] = field(default_factory=lambda: array("Q"))
    perceptual: array[int] = field(default_factory=lambda: array("Q"))
    average: array[int] = field(default_factory=lambda: array("Q"))
    labels: array[int] = field(default_factory=lambda: array("Q"))
    masks: array[int] = field(default_factory=lambda: array("Q"))


@dataclass
class Collected:
    """The result of one pass.

    Attributes:
        dataset: the dataset that was read.
        shards: its shards, as `RecordLocation.shard` numbers them.
        images: split -> images.
        classes: split -> images of each class.
        unlabelled: split -> images of no class.
        histograms: by name; `pixels`, `aspect`, `bytes`, the measures of quality, and `coverage/<number of class>`.
        sizes: (height, width) -> images; `None` stands for those beyond the first few thousand sizes.
        formats: format -> images.
        channels: channels -> images.
        orientations: Exif orientation -> images.
        folders: first folder of the key -> images, of the first few hundred.
        areas: class -> pixels of its masks.
        pixels: pixels of all images.
        shapes: shapes of the masks; `None` if none are stored as runs.
        measured: number of images whose pixels were measured; `None` if the records contain the measures.
        columns: numbers from which duplicates are found.
        random: a random sample of images.
        by_class: a random sample of the images of each class.
        smallest: masks that cover the smallest part of their image.
        largest: masks that cover the largest part.
    """

    dataset: ImageDataset
    shards: list[LocatedShard]
    images: Counter[str] = field(default_factory=Counter)
    classes: dict[str, Counter[int]] = field(default_factory=dict)
    unlabelled: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    sizes: Counter[tuple[int, int] | None] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    channels: Counter[int] = field(default_factory=Counter)
    orientations: Counter[int] = field(default_factory=Counter)
    folders: Counter[str] = field(default_factory=Counter)
    areas: Counter[int] = field(default_factory=Counter)
    pixels: int = 0
    shapes: MaskShapes | None = None
    measured: int | None = None
    columns: Columns = field(default_factory=Columns)
    random: LowestK = field(default_factory=lambda: LowestK(_RANDOM))
    by_class: dict[int, LowestK] = field(default_factory=dict)
    smallest: LowestK = field(default_factory=lambda: LowestK(_EXTREME))
    largest: LowestK = field(default_factory=lambda: LowestK(_EXTREME))

    @property
    def total(self) -> int:
        """Number of images."""
        return sum(self.images.values())

    def class_count(self, label: int, split: str | None = None) -> int:
        """Returns the number of images of a class, in one split or in all."""
        return sum(counts[label] for name, counts in self.classes.items() if split in (None, name))


def collect(dataset: ImageDataset, options: Options = DEFAULTS, shown: Progress = SILENT) -> Collected:
    """Reads a dataset once.

    Args:
        dataset: the dataset.
        options: sizes of the samples.
        shown: advances with every image.

    Raises:
        DatasetError: the dataset is damaged.
    """
    reader = ExampleReader(dataset.manifest)
    shards = [shard for split in dataset.splits for shard in dataset.shards(split)]
    found = Collected(dataset, shards)
    found.histograms = _histograms(len(dataset.manifest.classes) if reader.areas else 0)
    if reader.runs:
        found.shapes = MaskShapes(len(dataset.manifest.classes))
    if reader.quality is None:
        found.measured = 0
    total = max(1, sum(shard.records for shard in shards))
    collector = _Collector(found, options, options.shapes / total, options.measured / total)
    for number, shard in enumerate(shards):
        for key, offset, payload in dataset.placed_records(shard):
            collector.add(shard.split, reader.read(key, payload), RecordLocation(number, offset))
            shown.advance()
    return found


def _histograms(masks: int) -> dict[str, Histogram]:
    scales = {
        "pixels": Scale(1, 2**30, log=True),
        "aspect": Scale(1 / 32, 32, log=True),
        "bytes": Scale(16, 2**30, log=True),
        "brightness": Scale(0, 1),
        "contrast": Scale(0, 0.5),
        "sharpness": Scale(0, 1),
        "colorfulness": Scale(0, 1),
        **{f"coverage/{label}": Scale(1e-6, 1, log=True) for label in range(masks)},
    }
    return {name: Histogram(name, scale) for name, scale in scales.items()}


@dataclass
class _Collector:
    """Adds images to a `Collected`."""

    found: Collected
    options: Options
    shapes_share: float
    measured_share: float

    def add(self, split: str, facts: ExampleView, place: RecordLocation) -> None:
        """Adds one image."""
        found = self.found
        found.images[split] += 1
        self._count(split, facts)
        drawn = sampling_hash(facts.key, self.options.seed)
        found.random.offer(drawn, facts.key, place)
        counts = found.classes.setdefault(split, Counter())
        labels = set(facts.labels)
        counts.update(labels)
        if not labels:
            found.unlabelled[split] += 1
        for label in labels:
            if label not in found.by_class:
                found.by_class[label] = LowestK(_PER_CLASS)
            found.by_class[label].offer(sampling_hash(facts.key, self.options.seed + 1), facts.key, place)
        self._masks(split, facts, place, drawn)
        self._quality(split, facts, drawn)
        columns, hashes = found.columns, facts.hashes
        columns.shard.append(place.shard)
        columns.offset.append(place.offset)
        columns.content.append(facts.content)
        columns.labels.append(text_number(",".join(map(str, sorted(labels)))))
        columns.masks.append(text_number(f"{facts.areas}") if facts.areas else 0)
        if hashes is not None:
            columns.perceptual.append(hashes[0])
            columns.average.append(hashes[1])

    def _count(self, split: str, facts: ExampleView) -> None:
        found = self.found
        height, width = facts.size
        if height and width:
            found.pixels += height * width
            found.histograms["pixels"].add(split, height * width)
            found.histograms["aspect"].add(split, width / height)
        found.histograms["bytes"].add(split, facts.bytes)
        size = (height, width)
        found.sizes[size if size in found.sizes or len(found.sizes) < _MOST_SIZES else None] += 1
        found.formats[facts.format] += 1
        found.channels[facts.channels] += 1
        found.orientations[facts.orientation] += 1
        folder = key_folder(facts.key)
        if folder in found.folders or len(found.folders) < _MOST_SIZES:
            found.folders[folder] += 1

    def _masks(self, split: str, facts: ExampleView, place: RecordLocation, drawn: float) -> None:
        found = self.found
        height, width = facts.size
        if not height * width:
            return
        for label, pixels in enumerate(facts.areas or ()):
            if pixels:
                found.areas[label] += pixels
                part = pixels / (height * width)
                found.histograms[f"coverage/{label}"].add(split, part)
                found.smallest.offer(part, facts.key, place, label)
                found.largest.offer(-part, facts.key, place, label)
        if found.shapes is not None and drawn < self.shapes_share:
            masks = [facts.runs(label) for label in range(found.shapes.classes)]
            found.shapes.add(masks, height, width, facts.orientation)

    def _quality(self, split: str, facts: ExampleView, drawn: float) -> None:
        quality = facts.quality
        if self.found.measured is not None and drawn < self.measured_share:
            quality = measured(facts)
            self.found.measured += quality is not None
        if quality is not None:
            for name in _QUALITY:
                self.found.histograms[name].add(split, getattr(quality, name))


def measured(facts: ExampleView) -> Quality | None:
    """Measures the pixels of an image as the ingest does; `None` if it is not stored as an image file."""
    if facts.header is None:
        return None
    try:
        picture = thumbnail(facts.encoded, facts.header)
    except ImageError:
        return None
    return measure(picture, picture.convert("L"))


def as_hashes(values: array[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Returns a column as an array."""
    return np.frombuffer(values, np.uint64) if len(values) else np.empty(0, np.uint64)
