"""What is kept beside a shard for the analyzers: of every image the sums of its pixels, and its features but pixels.

One file a shard, of Examples: numbers and words only, so that whatever goes through Beam is small and no pixel is read
again. Like the shard, it is written once and reused by a resumed run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright import records
from shardwright.manifest import shard_name
from shardwright.staging import PlannedShard, Staging

# No feature of an image is called so: sums, and what the TransformGraph takes by our own names.
_PREFIX, _INPUTS = "shardwright/figures/", "shardwright/inputs/"
# So many squares of bytes add up below 2**24, where float32 is exact.
_ROWS = 256


class Figures(NamedTuple):
    """Sums over the pixels of one image as it is stored, exact whole numbers.

    Attributes:
        channel_sum: three sums of the values, RGB.
        channel_square_sum: three sums of their squares.
        size: height and width.
        present: per class 1 where the image shows it, else 0.
        area: per class the pixels its mask covers; zeros in classification.
    """

    channel_sum: list[int]
    channel_square_sum: list[int]
    size: tuple[int, int]
    present: list[int]
    area: list[int]


def figures_of(values: npt.NDArray[np.uint8], present: list[int], area: list[int]) -> Figures:
    """Sums up a picture.

    Args:
        values: uint8 [height, width, 3].
        present: per class 1 where the image shows it.
        area: per class the pixels its mask covers.
    """
    height, width, _ = values.shape
    rows = values.reshape(height, width * 3)
    sums, squares = np.zeros(width * 3, np.int64), np.zeros(width * 3, np.int64)
    for begin in range(0, height, _ROWS):
        # In float32, a few rows at a time: exact, four times as fast as in whole numbers, and other threads go on.
        part = rows[begin : begin + _ROWS].astype(np.float32)
        sums += np.einsum("ij->j", part).astype(np.int64)
        squares += np.einsum("ij,ij->j", part, part).astype(np.int64)
    return Figures(
        sums.reshape(width, 3).sum(axis=0).tolist(),
        squares.reshape(width, 3).sum(axis=0).tolist(),
        (height, width),
        present,
        area,
    )


def figures_file(staging: Staging, planned: PlannedShard) -> Path:
    """Where the figures of a shard lie: one Example per written record, in its order."""
    return staging.path(f"figures/Split-{planned.split}/{shard_name(planned.number, planned.total)}.tfrecord")


class Row(NamedTuple):
    """What is kept of one image.

    Attributes:
        told: stored features that statistics are made of, by their stored names.
        inputs: what the TransformGraph takes, by our own names.
        figures: of its pixels.
    """

    told: dict[str, records.DecodedFeature]
    inputs: dict[str, records.DecodedFeature]
    figures: Figures


def encode_row(figures: Figures, told: Mapping[str, bytes], inputs: Mapping[str, records.FeatureValue]) -> bytes:
    """Serializes a `Row`; what is told is given as `records.encode_entry` serializes it."""
    others: dict[str, records.FeatureValue] = {
        f"{_PREFIX}{name}": records.ints(value) for name, value in figures._asdict().items()
    }
    others |= {f"{_INPUTS}{name}": value for name, value in inputs.items()}
    return records.join_entries({**told, **{name: records.encode_entry(name, others[name]) for name in others}})


def read_rows(file: str) -> Iterator[Row]:
    """Reads such a file."""
    for _, payload in records.read_records(file):
        row = Row({}, {}, Figures([], [], (0, 0), [], []))
        sums = {}
        for name, values in records.decode_example(payload).items():
            if name.startswith(_PREFIX):
                sums[name[len(_PREFIX) :]] = np.asarray(values).tolist()
            elif name.startswith(_INPUTS):
                row.inputs[name[len(_INPUTS) :]] = values
            else:
                row.told[name] = values
        yield row._replace(figures=Figures(**{**sums, "size": tuple(sums["size"])}))


def one_size(files: Sequence[Path]) -> tuple[int, int] | None:
    """Height and width of all images that such files tell of; `None` where they differ, or there is none."""
    found: set[tuple[int, ...]] = set()
    for file in files:
        for _, payload in records.read_records(str(file)):
            found.add(tuple(np.asarray(records.find_feature(payload, f"{_PREFIX}size")).tolist()))
            if len(found) > 1:
                return None
    for height, width in found:
        return height, width
    return None
