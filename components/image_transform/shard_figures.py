"""The figures of a shard, for the analyzers: sums over the pixels of its images, and their other features.

There are two files per shard. One has an Example of each image without pixels and masks, for statistics; the other has
a single Example of the added sums. They contain only numbers and words, so little data passes through Beam and
no pixel is read again. Like the shard, they are written to staging once, and a resumed run reuses them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.dataset.shard_names import shard_name
from shardwright.staging.staging import PlannedShard
from shardwright.storage import map_threads, read_bytes, readers
from shardwright.tfrecords import encode, records

# Prefixes of the sums, and of texts by internal names; no feature of an image has them.
_PREFIX, _INPUTS = "shardwright/figures/", "shardwright/inputs/"
_SIZES = "shardwright/sizes"
_MOST_SIZES = 2
PIXELS, RECORDS = "pixels", "records"
# The sum of so many squares of bytes is below 2**24, where float32 is exact.
_ROWS = 256


class Figures(NamedTuple):
    """Sums over the pixels of one stored image, exact whole numbers.

    Attributes:
        channel_sum: three sums of the values, RGB.
        channel_square_sum: three sums of their squares.
        size: height and width.
        present: per class 1 if the image shows it, else 0.
        area: per class the pixels its mask covers; zeros in classification.
    """

    channel_sum: list[int]
    channel_square_sum: list[int]
    size: tuple[int, int]
    present: list[int]
    area: list[int]


def channel_sums(values: npt.NDArray[np.uint8]) -> tuple[list[int], list[int]]:
    """Returns the sums of the values and of their squares, per channel of uint8 [height, width, 3]."""
    height, width, _ = values.shape
    rows = values.reshape(height, width * 3)
    sums, squares = np.zeros(width * 3, np.int64), np.zeros(width * 3, np.int64)
    for begin in range(0, height, _ROWS):
        # In float32, a few rows per sum: exact, four times as fast as in whole numbers, and other threads continue.
        part = rows[begin : begin + _ROWS].astype(np.float32)
        sums += np.einsum("ij->j", part).astype(np.int64)
        squares += np.einsum("ij,ij->j", part, part).astype(np.int64)
    return sums.reshape(width, 3).sum(axis=0).tolist(), squares.reshape(width, 3).sum(axis=0).tolist()


def figures_file(planned: PlannedShard) -> str:
    """Returns the path in staging of a shard's features for statistics: an Example per record, in its order."""
    return f"figures/Split-{planned.split}/{shard_name(planned.number, planned.total)}.tfrecord"


def sums_file(planned: PlannedShard) -> str:
    """Returns the path in staging of the `Sums` of a shard."""
    return f"sums/Split-{planned.split}/{shard_name(planned.number, planned.total)}.tfrecord"


class Sums(NamedTuple):
    """The figures of all images of a shard, added up.

    Attributes:
        sums: by name, those of `Figures`, `pixels` and `records`; empty for a shard without images.
        sizes: heights and widths of the images, the first two different ones.
        inputs: the names of the classes of all images, as `image/class/text`.
    """

    sums: dict[str, list[int]]
    sizes: list[tuple[int, int]]
    inputs: dict[str, list[bytes]]

    def add(self, figures: Figures, inputs: Mapping[str, Sequence[bytes]]) -> None:
        """Adds an image and its texts."""
        height, width = figures.size
        parts = {**figures._asdict(), PIXELS: [height * width], RECORDS: [1]}
        del parts["size"]
        for name, values in parts.items():
            before = self.sums.get(name, [0] * len(values))
            self.sums[name] = [total + value for total, value in zip(before, values, strict=True)]
        if len(self.sizes) < _MOST_SIZES and figures.size not in self.sizes:
            self.sizes.append(figures.size)
        for name, texts in inputs.items():
            self.inputs.setdefault(name, []).extend(texts)


def encode_sums(sums: Sums) -> bytes:
    """Serializes sums as a TFRecord of one Example."""
    features: dict[str, encode.FeatureValue] = {
        f"{_PREFIX}{name}": encode.ints(values) for name, values in sums.sums.items()
    }
    features[_SIZES] = encode.ints([side for size in sums.sizes for side in size])
    features |= {f"{_INPUTS}{name}": encode.byte_strings(texts) for name, texts in sums.inputs.items()}
    return records.frame(encode.encode_example(features))


def read_sums(files: Sequence[str]) -> Iterator[Sums]:
    """Reads files of sums, many concurrently if they are on a bucket."""
    for example in read_examples(files):
        sides = np.asarray(example.pop(_SIZES)).tolist()
        sums, inputs = {}, {}
        for name, values in example.items():
            if name.startswith(_PREFIX):
                sums[name[len(_PREFIX) :]] = np.asarray(values).tolist()
            else:
                inputs[name[len(_INPUTS) :]] = [bytes(text) for text in values]
        yield Sums(sums, list(zip(sides[::2], sides[1::2], strict=True)), inputs)


def read_examples(files: Sequence[str]) -> Iterator[dict[str, records.DecodedFeature]]:
    """Yields the one Example of each TFRecord."""

    def read(file: str) -> bytes:
        return records.unframe(read_bytes(file), file)

    for payload in map_threads(read, files, readers(files[0]) if files else 1):
        yield records.decode_example(payload)


def encode_figures(rows: Iterable[bytes]) -> bytes:
    """Serializes figures as a TFRecord."""
    file = io.BytesIO()
    writer = records.RecordWriter(file)
    for row in rows:
        writer.write(row)
    return file.getvalue()


def one_size(files: Sequence[str]) -> tuple[int, int] | None:
    """Returns height and width of all images in files of sums; `None` if they differ or there are no images."""
    found = {size for sums in read_sums(files) for size in sums.sizes}
    return found.pop() if len(found) == 1 else None
