"""Random access to the examples of a split without TensorFlow, for grain, PyTorch and plain loops.

`source(DATASET, "train")` has a length and items, which is all that grain's `RandomAccessDataSource` and a map-style
dataset of PyTorch need. An item is a dictionary of NumPy arrays, with the same keys for every image of a dataset.
Pixels, masks and boxes are in the frame of the stored image, as the loader and TFDS read them.

A source holds 16 bytes a record and no open file: shards are opened for each read. So it can be pickled, and used by
forked and spawned worker processes and by threads.
"""

from __future__ import annotations

import io
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
from PIL import Image

from shardwright.dataset.example_view import ExampleReader, ExampleView
from shardwright.dataset.manifest import MASKS, MULTI, SINGLE
from shardwright.dataset.random_access import RandomAccess, RecordIndices
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.stored_image import encode_image, tensor_proto
from shardwright.errors import DatasetError, UsageError
from shardwright.images.boxes import LABEL, XMAX, XMIN, YMAX, YMIN
from shardwright.images.decode import decode
from shardwright.images.header import ImageError
from shardwright.masks.regions import IGNORE_VALUE
from shardwright.masks.rle import RleError, draw, from_flat

Pixels = npt.NDArray[np.uint8]
Decode = Callable[[bytes], Pixels]
_KEY = "image/key"
_BOX = (XMIN, YMIN, XMAX, YMAX)
_NO_LABEL = -1


class DatasetSource(Sequence[dict[str, Any]]):
    """The examples of one split by number, in the order of `ImageDataset.keys`; see `source`.

    Args:
        dataset: the dataset.
        split: the split.
        decode: see `source`.

    Attributes:
        split: the split.

    Raises:
        DatasetError: there is no such split, an index is damaged, or the masks are stored in a form that only the
            source's program can read.
    """

    def __init__(self, dataset: ImageDataset, split: str, decode: Decode | None = None) -> None:
        shards = dataset.shards(split)
        self.split = split
        self._decode = decode
        self._root, self._manifest = dataset.root, dataset.manifest
        self._reader = ExampleReader(dataset.manifest)
        self._access = RandomAccess(shards)
        # The number of the first record of each shard, and the number of all.
        self._begins = np.cumsum([0, *(shard.records for shard in shards)])
        masks = dataset.manifest.mask_features if dataset.manifest.labels == MASKS else []
        self._masks = [dataset.manifest.stored(name) for name in masks]
        for name in self._masks:
            if name not in dataset.manifest.features or name.endswith("_text"):
                raise UsageError(
                    f"{dataset.root}: its masks are stored as texts ({name}). Write the dataset with features: "
                    "{preset: tf_vision}."
                )
        stored = [dataset.manifest.stored(name) for name in (*_BOX, LABEL)]
        self._boxes = stored if all(name in dataset.manifest.features for name in stored) else []

    def __len__(self) -> int:
        return int(self._begins[-1])

    def __getitem__(self, index: SupportsIndex) -> dict[str, Any]:  # type: ignore[override]
        return self.__getitems__([operator.index(index)])[0]

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[dict[str, Any]]:
        """Returns several items; from a bucket they are read concurrently. PyTorch calls it for each batch."""
        count = len(self)
        for index in indices:
            if not -count <= operator.index(index) < count:
                raise IndexError(f"{self!r}: no item {operator.index(index)}, there are {count}")
        numbers = np.array([operator.index(index) % count for index in indices], np.int64)
        shards = np.searchsorted(self._begins, numbers, side="right") - 1
        payloads = self._access.read(RecordIndices(shards, numbers - self._begins[shards]))
        return [self._item(int(number), payload) for number, payload in zip(numbers, payloads, strict=True)]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        # grain compares it when it resumes from a checkpoint.
        return f"source({self._root!r}, {self.split!r}, fingerprint={self._manifest.fingerprint[:12]!r})"

    def _item(self, number: int, payload: bytes) -> dict[str, Any]:
        view = self._reader.read(f"record {number}", payload)
        keys = view.example.texts(self._manifest.stored(_KEY))
        where = f"{self._root}, split {self.split}, record {number} (key {keys[0] if keys else ''!a})"
        try:
            image = stored_pixels(view, where, self._decode)
            item: dict[str, Any] = {"image": image, "key": keys[0] if keys else ""}
            if self._masks:
                drawn = [_mask(view.example.get(name), *image.shape[:2]) for name in self._masks]
                item["masks"] = np.stack(drawn[: len(self._manifest.classes)], axis=-1)
                for ignored in drawn[len(self._manifest.classes) :]:
                    item["masks"][ignored > 0] = IGNORE_VALUE
                item["labels"] = (item["masks"] == 1).any(axis=(0, 1)).astype(np.float32)
        except (ImageError, RleError, OSError, ValueError) as error:
            raise DatasetError(f"{where}: {error}. Run `shardwright verify` for a list of all damage.") from None
        if self._manifest.labels == SINGLE:
            item["label"] = np.int64(view.labels[0] if view.labels else _NO_LABEL)
        elif self._manifest.labels == MULTI:
            item["labels"] = np.isin(np.arange(len(self._manifest.classes)), view.labels).astype(np.float32)
        if self._boxes:
            *sides, labels = (view.example.get(name) for name in self._boxes)
            edges = [np.asarray([] if side is None else side, np.float32) for side in sides]
            item["boxes"] = np.stack(edges, axis=-1)
            item["box_labels"] = np.asarray([] if labels is None else labels, np.int64) - 1
        return item


def source(directory: str | os.PathLike[str], split: str, *, decode: Decode | None = None) -> DatasetSource:
    """Opens a split for random access, without TensorFlow.

    An item has `image` (uint8 [H, W, 3]) and `key`; then, as the dataset has them,

    - `label`: int64, the class; -1 for an image without one,
    - `labels`: float32 [C], 1 for each class of the image,
    - `masks`: uint8 [H, W, C] of 0 and 1, 255 where pixels are ignored; and `labels`,
    - `boxes`: float32 [N, 4] of xmin, ymin, xmax, ymax as parts of the width and the height; `box_labels`, int64 [N].

    Args:
        directory: folder or URL of a dataset.
        split: the split.
        decode: a function from the bytes of a JPEG or PNG to its pixels, uint8 [H, W, 3], in place of Pillow. It must
            not turn them by Exif. For processes that are not forked, it must be a function of a module.

    Raises:
        DatasetError: there is no whole dataset, or no such split; or, when an item is read, its record is damaged.
        NotFound: there is no such folder.
        UsageError: when an item is read: `decode` returns something else.
    """
    return DatasetSource(ImageDataset.open(directory), split, decode)


def _mask(stored: Any, height: int, width: int) -> Pixels:
    if isinstance(stored, list) and stored:
        with Image.open(io.BytesIO(stored[0]), formats=("PNG",)) as image:
            mask = np.asarray(image, np.uint8)
        if mask.shape != (height, width):
            raise RleError(f"a mask is {mask.shape}, its image {height}x{width} (height x width)")
        return mask
    runs = from_flat([] if stored is None else stored)
    if len(runs) and runs[-1].sum() > height * width:
        raise RleError(f"a mask exceeds its image, {height}x{width} (height x width)")
    return np.ascontiguousarray(draw(runs, height, width))


def stored_file(view: ExampleView, where: str) -> bytes:
    """Returns the stored image as a JPEG or PNG: as it is, or pixel values as a PNG.

    Args:
        view: the image.
        where: its place, for messages.

    Raises:
        ValueError: the stored values are not what the recipe states.
    """
    if view.reader.encoding not in ("raw", "tensor"):
        return view.encoded
    picture = Image.fromarray(stored_pixels(view, where))
    return encode_image(picture, "png", orientation=view.orientation)[0]


def stored_pixels(view: ExampleView, where: str, decode_by: Decode | None = None) -> Pixels:
    """Returns the stored pixels of an image.

    Args:
        view: the image.
        where: its place, for messages.
        decode_by: see `source`.

    Returns:
        uint8 [H, W, 3].

    Raises:
        ValueError: the stored bytes are not what the recipe states.
        ImageError: they cannot be decoded.
        UsageError: `decode_by` returns something else.
    """
    encoded = view.encoded
    if view.reader.encoding in ("raw", "tensor"):
        shape = (*view.size, 3)
        values = encoded[-(shape[0] * shape[1] * 3) :]
        if encoded != (values if view.reader.encoding == "raw" else tensor_proto(values, shape)):
            raise ValueError(f"the {view.reader.encoding} values are not {shape[0]}x{shape[1]} pixels")
        return np.frombuffer(values, np.uint8).reshape(shape).copy()
    if decode_by is not None:
        pixels: Any = decode_by(encoded)
        found = (getattr(pixels, "dtype", None), getattr(pixels, "shape", None))
        if found != (np.uint8, (*view.size, 3)):
            problem = f"`decode` returned {found[0]} {found[1]}, not uint8 {(*view.size, 3)}"
            raise UsageError(f"{where}: {problem}. Return the stored pixels.")
        return np.asarray(pixels)
    if view.header is None:
        raise ValueError("the stored bytes are not a JPEG or PNG")
    picture = decode(encoded, view.header)
    # Converting to the same mode copies all pixels.
    return np.array(picture if picture.mode == "RGB" else picture.convert("RGB"))
