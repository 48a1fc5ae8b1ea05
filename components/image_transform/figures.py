"""What is kept beside a shard for the analyzers: of every image the sums of its pixels, and its features but pixels.

One file a shard, of Examples: numbers and words only, so that whatever goes through Beam is small and no pixel is read
again. Like the shard, it is written once and reused by a resumed run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from shardwright import records
from shardwright.manifest import shard_name
from shardwright.staging import PlannedShard, Staging

# No feature of an image is called so: sums, and what the TransformGraph takes by our own names.
_PREFIX, _INPUTS = "shardwright/figures/", "shardwright/inputs/"
_VALUES = np.arange(256, dtype=np.int64)


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


def figures_of(picture: Image.Image, present: list[int], area: list[int]) -> Figures:
    """Sums up a picture of mode RGB: counting its values is quicker than adding them up."""
    counts = np.array(picture.histogram(), np.int64).reshape(3, len(_VALUES))
    total, squares = (counts @ np.stack([_VALUES, _VALUES**2], axis=1)).T.tolist()
    return Figures(total, squares, (picture.height, picture.width), present, area)


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


def encode_row(
    figures: Figures, told: Mapping[str, records.FeatureValue], inputs: Mapping[str, records.FeatureValue]
) -> bytes:
    """Serializes a `Row`."""
    sums = {f"{_PREFIX}{name}": records.ints(value) for name, value in figures._asdict().items()}
    return records.encode_example({**told, **sums, **{f"{_INPUTS}{name}": value for name, value in inputs.items()}})


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
