"""Samples images of a dataset, of some of its splits, or of a folder, and measures them.

The sample depends on the keys only, not on their order, so it is the same each time. Only the index and the sampled
records of a dataset are read.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from shardwright.config.images import ImagesConfig
from shardwright.dataset.example_view import ExampleReader, sampling_hash
from shardwright.dataset.outputs import without_outputs
from shardwright.dataset.random_access import RecordLocation, read_record
from shardwright.dataset.reader import ImageDataset, LocatedShard, contents_of
from shardwright.dataset.shard_names import facts_path
from shardwright.dataset.source import stored_file
from shardwright.dataset.stored_image import prepare
from shardwright.drift.measures import EMBEDDING, NUMBERS, ImageMeasures, measure_image
from shardwright.errors import DatasetError, UsageError
from shardwright.images.header import MOST_PIXELS, ImageError, has_image_ending, is_sidecar
from shardwright.images.read_header import read_header
from shardwright.running.progress import SILENT, Progress
from shardwright.storage import Listing, list_inputs, map_threads, read_bytes, readers
from shardwright.storage.checksum import checksum_of

SIZE = 2000
# Only the most frequent classes are compared.
_MOST_CLASSES = 40
_NONE = np.empty(0, np.uint64)
_AS_THEY_ARE = ImagesConfig()


@dataclass
class Sample:
    """Measured images.

    Attributes:
        name: name of the dataset, split or folder, for people.
        total: number of images that it was drawn from.
        keys: keys of its images.
        numbers: float64 (n, measures), in the order of `measures.NUMBERS`.
        embeddings: float64 (n, `measures.EMBEDDING`).
        kinds: `format`, `size`, `channels` -> a value for each image.
        classes: names of its classes; empty for a folder, which has no labels.
        labels: for each image, the names of its classes.
        areas: for each image, name of a class -> part of the image that its mask covers.
        places: locations of the records; empty for a folder.
        files: paths of the files; empty for a dataset.
        unreadable: keys of images that were drawn and are left out, as they cannot be read or decoded.
        known: number of images that are left out because the reference has them, too.
    """

    name: str
    total: int
    keys: list[str] = field(default_factory=list)
    numbers: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, len(NUMBERS))))
    embeddings: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, EMBEDDING)))
    kinds: dict[str, list[Hashable]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    labels: list[tuple[str, ...]] = field(default_factory=list)
    areas: list[dict[str, float]] = field(default_factory=list)
    places: list[RecordLocation] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    known: int = 0

    def __len__(self) -> int:
        return len(self.keys)

    def areas_of(self, name: str) -> npt.NDArray[np.float64]:
        """Returns the parts of the image that masks of a class cover, for images that have one."""
        return np.array([areas[name] for areas in self.areas if name in areas])

    def select(self, rows: npt.NDArray[np.int64]) -> Sample:
        """Returns a sample of some of these images; rows may repeat."""
        chosen = rows.tolist()
        return replace(
            self,
            keys=[self.keys[i] for i in chosen],
            numbers=self.numbers[rows],
            embeddings=self.embeddings[rows],
            kinds={name: [values[i] for i in chosen] for name, values in self.kinds.items()},
            labels=[self.labels[i] for i in chosen] if self.labels else [],
            areas=[self.areas[i] for i in chosen] if self.areas else [],
            places=[self.places[i] for i in chosen] if self.places else [],
            files=[self.files[i] for i in chosen] if self.files else [],
        )


def sample_dataset(
    dataset: ImageDataset,
    splits: Collection[str] | None = None,
    *,
    size: int = SIZE,
    seed: int = 0,
    name: str = "",
    known: npt.NDArray[np.uint64] = _NONE,
    shown: Progress = SILENT,
) -> Sample:
    """Samples and measures images of a dataset.

    Args:
        dataset: the dataset.
        splits: splits to sample; all by default.
        size: most images of the sample.
        seed: seed of the sample.
        name: name of the sample.
        known: 64 bits of the content IDs of images to leave out, uint64 (n,).
        shown: advances with every image.

    Raises:
        DatasetError: there is no such split, or the dataset is damaged.
    """
    shards = dataset.all_shards()
    wanted = set(dataset.splits if splits is None else splits)
    for split in wanted - set(dataset.splits):
        raise DatasetError(f"{dataset.root}: no split {split!r}. It has: {', '.join(dataset.splits)}.")
    left_out = {number: _known(dataset, shard, known) for number, shard in enumerate(shards) if shard.split in wanted}
    entries = (
        (sampling_hash(key, seed), key, RecordLocation(number, offset))
        for number, left in left_out.items()
        for (key, offset), leave in zip(dataset.entries(shards[number]), left.tolist(), strict=True)
        if not leave
    )
    drawn = heapq.nsmallest(size, entries)
    reader = ExampleReader(dataset.manifest)
    shared = sum(int(left.sum()) for left in left_out.values())
    total = sum(map(len, left_out.values())) - shared
    sample = Sample(name or ", ".join(sorted(wanted)), total, classes=dataset.manifest.classes, known=shared)
    builder = _Builder(sample)
    payloads = map_threads(lambda entry: read_record(shards, entry[2]), drawn, readers(dataset.root))
    for (_, key, place), payload in zip(drawn, payloads, strict=True):
        view = reader.read(key, payload)
        shown.advance()
        try:
            data = stored_file(view, key)
            row = measure_image(data, read_header(data, max_pixels=MOST_PIXELS))
        except (ImageError, ValueError):
            sample.unreadable.append(key)
            continue
        sample.places.append(place)
        sample.labels.append(tuple(sorted({dataset.manifest.classes[label] for label in view.labels})))
        height, width = view.size
        areas = zip(dataset.manifest.classes, view.areas or (), strict=False)
        sample.areas.append({name: pixels / max(1, height * width) for name, pixels in areas if pixels})
        builder.add(key, row, view.format, (height, width), view.channels)
    return builder.done()


def _known(dataset: ImageDataset, shard: LocatedShard, known: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    return np.isin(dataset.facts(shard).content, known) if len(known) else np.zeros(shard.records, bool)


def shared_contents(one: ImageDataset, other: ImageDataset) -> npt.NDArray[np.uint64]:
    """Returns 64 bits of the content ID of each image that two datasets have, uint64 (n,), sorted.

    Raises:
        DatasetError: the facts are damaged.
    """
    return np.intersect1d(_contents(one), _contents(other))


def _contents(dataset: ImageDataset) -> npt.NDArray[np.uint64]:
    shards = dataset.all_shards()
    if any(facts_path(shard.path) not in dataset.manifest.parts for shard in shards):
        return _NONE  # To read all records would take too long.
    found = contents_of(dataset)
    return found[found > 0]


def sample_folder(
    folder: str,
    *,
    size: int = SIZE,
    seed: int = 0,
    known_to: ImageDataset | None = None,
    options: ImagesConfig = _AS_THEY_ARE,
    shown: Progress = SILENT,
) -> Sample:
    """Samples and measures images of a folder or a glob, such as the inputs of a served model.

    Images are measured as an ingest would store them: converted, turned and resized.

    Args:
        folder: absolute folder, glob or URL.
        size: most images of the sample.
        seed: seed of the sample.
        known_to: a dataset whose images are left out. A file of the same key and size counts as the same image; of
            other files, those that are read are compared by their bytes.
        options: `images` of that ingest. A file that it would reject counts as unreadable.
        shown: advances with every image.

    Raises:
        UsageError: no file is found.
        DatasetError: the facts of the dataset are damaged.
    """
    listing, files = _images_of(folder)
    known = _KnownFiles(known_to)
    new = [i for i in files if not known.has(listing.keys[i], listing.sizes[i])]
    # Pixel values are measured as a PNG, as those of a dataset are.
    as_file = replace(options, encoding="png") if options.encoding in ("raw", "tensor") else options
    sample = Sample(os.path.basename(os.path.normpath(folder)), len(new), known=len(files) - len(new))
    builder = _Builder(sample)
    for _, number in sorted((sampling_hash(listing.keys[i], seed), i) for i in new):
        if len(sample.keys) + len(sample.unreadable) == size:
            break
        try:
            data = read_bytes(listing.path(number))
            if known.has_content(data):
                sample.known += 1
                sample.total -= 1
                continue
            data, header, _ = prepare(data, as_file)
            row = measure_image(data, header)
        except (ImageError, OSError):
            if is_sidecar(listing.keys[number]):
                sample.total -= 1
                continue
            sample.unreadable.append(listing.keys[number])
            continue
        finally:
            shown.advance()
        sample.files.append(listing.path(number))
        form = header.format if as_file is options else options.encoding
        builder.add(listing.keys[number], row, form, (header.height, header.width), header.channels)
    return builder.done()


def _images_of(folder: str) -> tuple[Listing, list[int]]:
    """Returns the files of a folder, and the positions of those that are images by their names; all if none is."""
    try:
        listing, _ = without_outputs(list_inputs(folder))
    except UsageError as error:
        # The path is an argument here, and no key of a configuration.
        raise UsageError(str(error).removeprefix("input.images: ")) from None
    files = [i for i, key in enumerate(listing.keys) if has_image_ending(key) or not os.path.splitext(key)[1]]
    return listing, files or list(range(len(listing.keys)))


class _KnownFiles:
    """The files that a dataset was made of, as far as its facts name them.

    Args:
        dataset: the dataset; without one, nothing is known.
    """

    def __init__(self, dataset: ImageDataset | None) -> None:
        self._sizes: dict[str, int] = {}
        self._contents: set[int] = set()
        self._algorithm = ""
        if dataset is None or not len(contents := _contents(dataset)):
            return
        self._contents = set(contents.tolist())
        self._algorithm = dataset.manifest.image_checksum
        for shard in dataset.all_shards():
            sizes = dataset.facts(shard).numbers["bytes"].tolist()
            self._sizes.update(zip((key for key, _ in dataset.entries(shard)), sizes, strict=True))

    def has(self, key: str, size: int) -> bool:
        return self._sizes.get(key) == size

    def has_content(self, data: bytes) -> bool:
        return bool(self._contents) and int(checksum_of(data, self._algorithm)[:16], 16) in self._contents


class _Builder:
    """Collects measures, and joins them to arrays at the end."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._rows: list[ImageMeasures] = []
        sample.kinds = {"format": [], "size": [], "channels": []}

    def add(self, key: str, row: ImageMeasures, form: str, size: tuple[int, int], channels: int) -> None:
        sample = self._sample
        sample.keys.append(key)
        self._rows.append(row)
        sample.kinds["format"].append(form)
        sample.kinds["size"].append(size)
        sample.kinds["channels"].append(channels)

    def done(self) -> Sample:
        if self._rows:
            self._sample.numbers = np.stack([row.numbers for row in self._rows])
            self._sample.embeddings = np.stack([row.embedding for row in self._rows])
        return self._sample


def frequent(samples: Iterable[Sample]) -> list[str]:
    """Returns the most frequent classes of several samples together, the most frequent first."""
    counts = Counter(name for sample in samples for names in sample.labels for name in names)
    return sorted(counts, key=lambda name: (-counts[name], name))[:_MOST_CLASSES]
