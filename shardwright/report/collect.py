"""Collects the counts of the report, and the locations of the images that it shows, from the facts of the shards.

No shard is read (`dataset.record_facts`), only its index and its facts. Measures of pixels are those that the
ingest wrote; of a dataset without them all images are measured if that takes seconds, else as many as do, chosen by a
hash. Shapes of masks come from a sample. Memory use is constant, except for about 60 bytes for each image, from which
duplicates are found.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from shardwright.dataset.example_view import ExampleReader, ExampleView, sampling_hash
from shardwright.dataset.random_access import RecordLocation, read_record
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.dataset.record_facts import MASKS_OF, MILLIONTHS, ShardFacts
from shardwright.display.histograms import Histogram, Scale
from shardwright.errors import DatasetError
from shardwright.images.header import ImageError
from shardwright.images.quality import Quality, measure, thumbnail
from shardwright.report.mask_shapes import MaskShapes
from shardwright.report.samples import Candidate, LowestK, key_folder
from shardwright.running.progress import SILENT, Progress
from shardwright.storage import map_threads
from shardwright.storage.fingerprint import text_number

MOST_CLASSES = 24
_RANDOM, _PER_CLASS, _EXTREME = 24, 6, 12
_MOST_SIZES = 4096
# How many images are measured at most, and how many pixels and bytes they have together: seconds on two cores.
_MOST_MEASURED, _MOST_PIXELS, _MOST_BYTES = 5_000, 10**9, 4 * 10**8

_QUALITY = ("brightness", "contrast", "sharpness", "colorfulness")
_FRAME = ("height", "width", "orientation")
_SCALES = {
    "pixels": Scale(1, 2**30, log=True),
    "aspect": Scale(1 / 32, 32, log=True),
    "bytes": Scale(16, 2**30, log=True),
    "brightness": Scale(0, 1),
    "contrast": Scale(0, 0.5),
    "sharpness": Scale(0, 1),
    "colorfulness": Scale(0, 1),
}


@dataclass(frozen=True)
class Options:
    """Sizes of the samples.

    Attributes:
        seed: seed of the random samples.
        shapes: about how many images have the shapes of their masks measured.
    """

    seed: int = 0
    shapes: int = MASKS_OF


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
        unlabeled: split -> images of no class.
        histograms: by name; `pixels`, `aspect`, `bytes`, the measures of quality, and `coverage/<number of class>`.
        sizes: (height, width) -> images; `None` stands for those beyond the first few thousand sizes.
        formats: format -> images.
        channels: channels -> images.
        orientations: Exif orientation -> images.
        folders: first folder of the key -> images, of the first few hundred.
        areas: class -> pixels of its masks.
        pixels: pixels of all images.
        shapes: shapes of the masks; `None` if none are stored as runs.
        measured: of how many images the measures of pixels are.
        sample: the images to measure, if the records do not contain the measures.
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
    unlabeled: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    sizes: Counter[tuple[int, int] | None] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    channels: Counter[int] = field(default_factory=Counter)
    orientations: Counter[int] = field(default_factory=Counter)
    folders: Counter[str] = field(default_factory=Counter)
    areas: Counter[int] = field(default_factory=Counter)
    pixels: int = 0
    shapes: MaskShapes | None = None
    measured: int = 0
    columns: Columns = field(default_factory=Columns)
    random: LowestK = field(default_factory=lambda: LowestK(_RANDOM))
    sample: LowestK = field(default_factory=lambda: LowestK(_MOST_MEASURED))
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
    """Reads the facts of a dataset, and the records of the few images that are measured.

    Args:
        dataset: the dataset.
        options: sizes of the samples.
        shown: advances with every image.

    Raises:
        DatasetError: the dataset is damaged.
    """
    reader = ExampleReader(dataset.manifest)
    shards = dataset.all_shards()
    collected = Collected(dataset, shards)
    labels = range(len(dataset.manifest.classes) if reader.areas else 0)
    scales = {**_SCALES, **{f"coverage/{label}": Scale(1e-6, 1, log=True) for label in labels}}
    collected.histograms = {name: Histogram(name, scale) for name, scale in scales.items()}
    if reader.runs:
        collected.shapes = MaskShapes(len(dataset.manifest.classes))
    total = max(1, sum(shard.records for shard in shards))
    collector = _Collector(collected, options, options.shapes / total)
    for number, shard in enumerate(shards):
        # The index and the facts are small; keys are in the index alone.
        entries = list(dataset.entries(shard))
        if len(entries) != shard.records:
            problem = f"{len(entries)} records instead of the manifest's {shard.records}"
            raise DatasetError(f"{shard.index}: {problem}. Re-create the dataset.")
        collector.add(number, shard.split, entries, dataset.facts(shard))
        shown.advance(shard.records)
    if reader.quality is None:
        _measure_sample(collected, reader)
    collected.measured = collected.histograms[_QUALITY[0]].total
    return collected


@dataclass
class _Collector:
    """Adds the images of a shard to a `Collected`."""

    collected: Collected
    options: Options
    shapes_share: float

    def add(self, number: int, split: str, entries: list[tuple[str, int]], facts: ShardFacts) -> None:
        """Adds the images of a shard.

        Args:
            number: of the shard, as `RecordLocation.shard`.
            split: its split.
            entries: key and offset of every record.
            facts: its facts.
        """
        collected = self.collected
        collected.images[split] += facts.records
        places = [RecordLocation(number, offset) for _, offset in entries]
        keys = [key for key, _ in entries]
        self._count(split, keys, facts)
        drawn = [sampling_hash(key, self.options.seed) for key in keys]
        for key, place, score in zip(keys, places, drawn, strict=True):
            collected.random.offer(score, key, place)
            if facts.quality is None:
                collected.sample.offer(score, key, place)
        self._classes(split, keys, places, facts)
        self._masks(split, keys, places, facts)
        for name, values in zip(Quality._fields, facts.quality or (), strict=False):
            if name in _QUALITY:
                collected.histograms[name].add(split, values / MILLIONTHS)
        self._columns(places, facts)
        for record in facts.masks or ():
            height, width, orientation = (int(facts.numbers[name][record]) for name in _FRAME)
            # The facts of a small shard have more than its part of the sample.
            if collected.shapes and height * width and sampling_hash(keys[record]) < self.shapes_share:
                runs = [facts.runs(record, label) for label in range(collected.shapes.classes)]
                collected.shapes.add(runs, height, width, orientation)

    def _classes(self, split: str, keys: list[str], places: list[RecordLocation], facts: ShardFacts) -> None:
        collected = self.collected
        counts = collected.classes.setdefault(split, Counter())
        for key, place, numbers in zip(keys, places, facts.labels, strict=True):
            labels = set(numbers)
            counts.update(labels)
            if not labels:
                collected.unlabeled[split] += 1
                continue
            score = sampling_hash(key, self.options.seed + 1)
            for label in labels:
                if label not in collected.by_class:
                    collected.by_class[label] = LowestK(_PER_CLASS)
                collected.by_class[label].offer(score, key, place)

    def _count(self, split: str, keys: list[str], facts: ShardFacts) -> None:
        collected = self.collected
        height, width = facts.numbers["height"], facts.numbers["width"]
        known = (height > 0) & (width > 0)
        pixels = (height * width)[known]
        collected.pixels += sum(pixels.tolist())
        collected.histograms["pixels"].add(split, pixels)
        collected.histograms["aspect"].add(split, width[known] / height[known])
        collected.histograms["bytes"].add(split, facts.numbers["bytes"])
        for size, count in Counter(zip(height.tolist(), width.tolist(), strict=True)).items():
            collected.sizes[size if size in collected.sizes or len(collected.sizes) < _MOST_SIZES else None] += count
        for position, count in Counter(facts.format.tolist()).items():
            collected.formats[facts.formats[position]] += count
        collected.channels.update(facts.numbers["channels"].tolist())
        collected.orientations.update(facts.numbers["orientation"].tolist())
        for folder, count in Counter(map(key_folder, keys)).items():
            if folder in collected.folders or len(collected.folders) < _MOST_SIZES:
                collected.folders[folder] += count

    def _masks(self, split: str, keys: list[str], places: list[RecordLocation], facts: ShardFacts) -> None:
        collected = self.collected
        size = facts.numbers["height"] * facts.numbers["width"]
        for label, (records, pixels) in enumerate(facts.areas or ()):
            known = size[records] > 0
            rows, parts = records[known], pixels[known] / size[records[known]]
            collected.areas[label] += sum(pixels[known].tolist())
            collected.histograms[f"coverage/{label}"].add(split, parts)
            for row, part in zip(rows.tolist(), parts.tolist(), strict=True):
                collected.smallest.offer(part, keys[row], places[row], label)
                collected.largest.offer(-part, keys[row], places[row], label)

    def _columns(self, places: list[RecordLocation], facts: ShardFacts) -> None:
        columns = self.collected.columns
        areas: list[list[tuple[int, int]]] = [[] for _ in places]
        for label, (records, pixels) in enumerate(facts.areas or ()):
            for row, area in zip(records.tolist(), pixels.tolist(), strict=True):
                areas[row].append((label, area))
        columns.shard.extend(place.shard for place in places)
        columns.offset.extend(place.offset for place in places)
        columns.content.extend(facts.content.tolist())
        columns.labels.extend(text_number(",".join(map(str, sorted(set(row))))) for row in facts.labels)
        columns.masks.extend(text_number(f"{row}") if row else 0 for row in areas)
        if facts.hashes is not None:
            columns.perceptual.extend(facts.hashes[0].tolist())
            columns.average.extend(facts.hashes[1].tolist())


def _measure_sample(collected: Collected, reader: ExampleReader) -> None:
    """Measures all images, or those of the lowest hashes that are measured in seconds; never fewer than are shown."""
    images = max(1, collected.total)
    heaviest = max(collected.pixels / _MOST_PIXELS, sum(shard.bytes for shard in collected.shards) / _MOST_BYTES)
    most = max(_RANDOM, int(images / heaviest)) if heaviest > 1 else images

    def measure_one(shown: Candidate) -> tuple[Candidate, Quality | None]:
        return shown, measured(reader.read(shown.key, read_record(collected.shards, shown.place)))

    for shown, quality in map_threads(measure_one, collected.sample.candidates()[:most]):
        if quality is not None:
            split = collected.shards[shown.place.shard].split
            for name in _QUALITY:
                collected.histograms[name].add(split, [getattr(quality, name)])


def measured(view: ExampleView) -> Quality | None:
    """Measures the pixels of an image as the ingest does; `None` if it is not stored as an image file."""
    if view.header is None:
        return None
    try:
        picture = thumbnail(view.encoded, view.header)
    except ImageError:
        return None
    return measure(picture, picture.convert("L"))


def as_hashes(values: array[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Returns a column as an array."""
    return np.frombuffer(values, np.uint64) if len(values) else np.empty(0, np.uint64)
