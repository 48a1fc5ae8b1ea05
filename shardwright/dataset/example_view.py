"""A view of a record that does not decode its image: size, classes, areas of masks, measured quality.

Features are found under the names of the dataset (`Manifest.names`). Features that a preset leaves out are missing here
too. Only the size is then read from the header of the image.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardwright.dataset.manifest import AREA, IGNORED, Manifest, mask_feature
from shardwright.errors import DatasetError
from shardwright.images.header import ImageError, ImageHeader
from shardwright.images.quality import Quality
from shardwright.images.read_header import read_header
from shardwright.masks.rle import Runs, from_flat
from shardwright.storage.checksum import image_feature
from shardwright.storage.fingerprint import text_number
from shardwright.tfrecords.encode import RecordError
from shardwright.tfrecords.lazy_example import ExampleFeatures, LazyExample

# The images of a dataset were checked when it was written.
_ANY_SIZE = 2**31
_MOST_HASH = 1 << 63
_HEX = re.compile("[0-9a-f]{16}")
_SCALARS = (
    "image/encoded",
    "image/format",
    "image/height",
    "image/width",
    "image/channels",
    "image/orientation",
    "image/class/label",
)
_ALL_BITS = (1 << 64) - 1


class ExampleReader:
    """Reads records of one dataset.

    Args:
        manifest: the manifest of the dataset.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        stored, features = manifest.stored, manifest.features
        self.classes = manifest.classes
        self.names = {name: stored(name) for name in _SCALARS}
        self.checksum = stored(image_feature(manifest.image_checksum))
        quality = [stored(f"image/quality/{name}") for name in Quality._fields]
        self.quality = quality if all(name in features for name in quality) else None
        hashes = stored("image/hash/perceptual"), stored("image/hash/average")
        self.hashes = hashes if all(name in features for name in hashes) else None
        runs = [stored(mask_feature(name)) for name in manifest.classes]
        self.runs = runs if runs and all(features.get(name) == "int64" for name in runs) else None
        ignored = stored(mask_feature(IGNORED))
        self.ignored = ignored if manifest.ignores and features.get(ignored) == "int64" else None
        areas = [stored(mask_feature(name, AREA)) for name in manifest.classes]
        self.areas = areas if areas and all(features.get(name) == "int64" for name in areas) else None
        self.encoding = manifest.encoding

    def read(self, key: str, payload: bytes) -> ExampleView:
        """Returns a view of a record.

        Raises:
            DatasetError: the payload is not a `tf.train.Example`.
        """
        try:
            return ExampleView(self, key, LazyExample(payload))
        except RecordError as error:
            raise DatasetError(f"record {key!a}: {error}. Re-create the dataset.") from None


@dataclass(frozen=True)
class ExampleView:
    """One image; parses only the features that are asked for.

    Attributes:
        reader: the reader of its dataset.
        key: its key.
        example: the record.
    """

    reader: ExampleReader
    key: str
    example: ExampleFeatures

    @property
    def encoded(self) -> bytes:
        """The stored bytes of the image."""
        value = self.example.first(self.reader.names["image/encoded"])
        return value if isinstance(value, bytes) else b""

    @property
    def bytes(self) -> int:
        """Number of stored bytes of the image."""
        return self.example.length(self.reader.names["image/encoded"])

    @cached_property
    def size(self) -> tuple[int, int]:
        """Height and width of the stored pixels; 0, 0 if unknown."""
        height = self.example.number(self.reader.names["image/height"])
        width = self.example.number(self.reader.names["image/width"])
        if height and width:
            return int(height), int(width)
        header = self.header
        return (header.height, header.width) if header else (0, 0)

    @cached_property
    def header(self) -> ImageHeader | None:
        """The header of the stored bytes; `None` unless they are a JPEG or PNG."""
        try:
            return read_header(self.encoded, max_pixels=_ANY_SIZE)
        except ImageError:
            return None

    @property
    def format(self) -> str:
        """`jpeg`, `png`, `raw`, `tensor`; empty if unknown."""
        stored = self.example.texts(self.reader.names["image/format"])
        if stored:
            return stored[0]
        return self.header.format if self.header else ""

    @property
    def channels(self) -> int:
        """Channels of the file; 0 if unknown."""
        return int(self.example.number(self.reader.names["image/channels"]) or 0)

    @property
    def orientation(self) -> int:
        """1 to 8, as Exif numbers them."""
        stored = int(self.example.number(self.reader.names["image/orientation"]) or 1)
        return stored if 1 <= stored <= 8 else 1

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """Numbers of its classes, those that the dataset knows."""
        labels = self.example.integers(self.reader.names["image/class/label"])
        return tuple(label for label in labels if 0 <= label < len(self.reader.classes))

    @cached_property
    def areas(self) -> list[int] | None:
        """Pixels of the mask of every class; `None` where they are not stored."""
        if self.reader.areas is None:
            return None
        return [int(self.example.number(name) or 0) for name in self.reader.areas]

    def runs(self, label: int) -> Runs:
        """Returns the mask of a class as runs in the stored frame; no runs where there is no mask, or not as runs.

        Raises:
            RleError: the stored values are not runs.
        """
        return self._runs(None if self.reader.runs is None else self.reader.runs[label])

    @property
    def ignored(self) -> Runs:
        """The pixels that neither loss nor metric counts, like `runs`."""
        return self._runs(self.reader.ignored)

    def _runs(self, name: str | None) -> Runs:
        stored = None if name is None else self.example.get(name)
        return np.empty((0, 2), np.int64) if stored is None or isinstance(stored, list) else from_flat(stored)

    @property
    def quality(self) -> Quality | None:
        """Its quality as measured when it was written; `None` where it was not."""
        if self.reader.quality is None:
            return None
        values = [self.example.number(name) for name in self.reader.quality]
        return None if None in values else Quality(*(float(value or 0) for value in values))

    @property
    def hashes(self) -> tuple[int, int] | None:
        """Perceptual and average hash as unsigned numbers; `None` where they are not stored."""
        if self.reader.hashes is None:
            return None
        perceptual, average = (self.example.first(name) for name in self.reader.hashes)
        if not isinstance(perceptual, int) or not isinstance(average, int):
            return None
        return perceptual & _ALL_BITS, average & _ALL_BITS

    @property
    def content(self) -> int:
        """64 bits of the hash of the original file; 0 where it is not stored."""
        stored = self.example.texts(self.reader.checksum)
        return int(stored[0][:16], 16) if stored and _HEX.match(stored[0]) else 0

    def drawn(self, share: float, seed: int = 0) -> bool:
        """Returns whether the image is in a sample of that share of all images, chosen by a hash of its key."""
        return sampling_hash(self.key, seed) < share


def sampling_hash(key: str, seed: int = 0) -> float:
    """Returns a number from 0 to 1 that follows from a key: a sample has the same images everywhere, in any order."""
    return text_number(f"{seed}:{key}") / _MOST_HASH
