"""One shard in, one shard out: every record decoded, resized, re-encoded, its masks moved along.

A record that cannot be decoded becomes a row of the ledger, not an error. Beside each shard lie the figures of its
images (`Figures`), which the analyzers sum up; like the shard they are written once and reused by a resumed run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from shardwright import pixels, records, rle
from shardwright.boxes import PREFIX as BOXES
from shardwright.boxes import move_boxes
from shardwright.fingerprint import canonical_json
from shardwright.geometry import Geometry, plan_geometry
from shardwright.image_header import ImageError
from shardwright.images import read_header
from shardwright.manifest import IGNORED, REJECTED, shard_name
from shardwright.staging import Outcome, PlannedShard, Staging, write_text
from shardwright.storage import in_parallel
from shardwright_components.image_transform.recipe import Recipe


class Figures(NamedTuple):
    """What the analyzers need to know of one image: sums over its resized pixels, exact whole numbers.

    Attributes:
        channel_sum: three sums of the values, RGB.
        channel_square_sum: three sums of their squares.
        pixels: number of pixels.
        present: per class 1 where the image shows it, else 0.
        area: per class the pixels its mask covers; zeros in classification.
    """

    channel_sum: list[int]
    channel_square_sum: list[int]
    pixels: int
    present: list[int]
    area: list[int]


@dataclass(frozen=True)
class ShardJob:
    """All that a worker needs to write one shard; picklable.

    Attributes:
        staging: where the shard is written.
        planned: which shard.
        source: file of the shard it is made from.
        recipe: what to do.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.
    """

    staging: Staging
    planned: PlannedShard
    source: str
    recipe: Recipe
    task: str
    classes: tuple[str, ...]


def figures_file(staging: Staging, planned: PlannedShard) -> Path:
    """Where the figures of a shard lie: one line of JSON per written record, in its order."""
    return staging.path(f"figures/Split-{planned.split}/{shard_name(planned.number, planned.total)}.jsonl")


def write_shard(job: ShardJob) -> int:
    """Writes a shard and its figures, unless an earlier attempt has; returns the number of records."""
    return job.staging.write_shard(job.planned, _outcomes(job)).info.records


def _outcomes(job: ShardJob) -> Iterator[Outcome]:
    lines = []
    # Traced here, once, and not by the first threads all at the same time.
    _pixel_ops(job.recipe)
    payloads = (payload for _, payload in records.read_records(job.source))
    for outcome, figures in in_parallel(partial(rewrite, job=job), payloads, threads=os.cpu_count() or 1):
        if figures is not None:
            lines.append(canonical_json(figures._asdict()) + "\n")
        yield outcome
    # Runs when the last outcome is taken, before the shard counts as finished.
    write_text(figures_file(job.staging, job.planned), "".join(lines))


def rewrite(payload: bytes, job: ShardJob) -> tuple[Outcome, Figures | None]:
    """Transforms one record.

    Args:
        payload: serialized example as ingested.
        job: recipe, task and classes.

    Returns:
        The new record with the figures of its image, or a reject and `None`.
    """
    example = records.decode_example(payload)
    key = example["image/key"][0].decode("utf-8")
    encoded = example["image/encoded"][0]
    source_height, source_width = int(example["image/height"][0]), int(example["image/width"][0])
    try:
        header = read_header(encoded, max_pixels=source_height * source_width)
    except ImageError as error:
        return Outcome(key, None, REJECTED, error.code, error.reason), None
    if (header.height, header.width) != (source_height, source_width):
        reason = f"the image is {header.height} x {header.width}, its record says {source_height} x {source_width}"
        return Outcome(key, None, REJECTED, "size_mismatch", reason), None
    try:
        image, new_bytes = _pixel_ops(job.recipe)(tf.constant(encoded))
    except tf.errors.InvalidArgumentError:
        # TensorFlow's own words hold numbers that change from run to run; the ledger must not.
        reason = f"the header is sound, but these {len(encoded)} bytes of {header.format} cannot be decoded"
        return Outcome(key, None, REJECTED, "undecodable", reason), None

    height, width = job.recipe.size
    features: dict[str, records.FeatureValue] = {name: _typed(values) for name, values in example.items()}
    features |= {
        "image/encoded": new_bytes.numpy(),
        "image/format": job.recipe.encoding.encode(),
        "image/height": height,
        "image/width": width,
        "image/channels": 3,
        "image/original/height": source_height,
        "image/original/width": source_width,
    }
    plan = plan_geometry(job.recipe.resize, source_height, source_width, height, width)
    boxes = {name: values for name, values in example.items() if name.startswith(BOXES)}
    if boxes:
        features |= {name: _typed(values) for name, values in move_boxes(boxes, plan).items()}
    if job.task == "segmentation":
        areas = _move_masks(example, features, job.classes, plan)
        present = [int(area > 0) for area in areas]
    else:
        areas = [0] * len(job.classes)
        present = np.bincount(example.get("image/class/label", np.empty(0, np.int64)), minlength=len(areas)).tolist()
    return Outcome(key, records.encode_example(features)), _figures(image.numpy(), present, areas)


def _move_masks(
    example: dict[str, Any], features: dict[str, records.FeatureValue], classes: tuple[str, ...], plan: Geometry
) -> list[int]:
    """Puts the masks into the new frame, and the list of classes right: a crop may cut a class off. Returns areas."""
    areas = []
    ignored = [IGNORED] if IGNORED not in classes and f"image/segmentation/{IGNORED}/rle" in example else []
    for name in (*classes, *ignored):
        feature = f"image/segmentation/{name}"
        runs = rle.resample(rle.from_flat(example[f"{feature}/rle"]), plan)
        areas.append(rle.area(runs))
        features[f"{feature}/rle"] = records.ints(runs.reshape(-1))
        features[f"{feature}/area"] = areas[-1]
    areas = areas[: len(classes)]
    present = [index for index, area in enumerate(areas) if area]
    features["image/class/label"] = records.ints(present)
    features["image/class/text"] = records.byte_strings([classes[index].encode() for index in present])
    return areas


def _typed(values: records.DecodedFeature) -> records.TypedList:
    """A decoded feature, ready to be written again: an empty one keeps its kind."""
    if isinstance(values, list):
        return records.byte_strings(values)
    return records.ints(values) if values.dtype == np.int64 else records.floats(values)


def _figures(image: npt.NDArray[np.uint8], present: list[int], areas: list[int]) -> Figures:
    rows = image.reshape(len(image), -1)
    # 255 squared is the largest value of 16 bits that occurs, so nothing is lost before the sums in 64 bits.
    squares = np.square(rows, dtype=np.uint16)
    sums, square_sums = (part.sum(axis=0, dtype=np.int64).reshape(-1, 3).sum(axis=0) for part in (rows, squares))
    return Figures(sums.tolist(), square_sums.tolist(), image.shape[0] * image.shape[1], present, areas)


@lru_cache(maxsize=4)
def _pixel_ops(recipe: Recipe) -> Any:
    """Bytes of an image -> (resized uint8 [H, W, 3], its new bytes), traced once a process and recipe."""

    def work(encoded: Any) -> tuple[Any, Any]:
        image = pixels.decode_resized(encoded, *recipe.size, recipe.resize)
        return image, pixels.encode(image, recipe.encoding, 0 if recipe.quality is None else recipe.quality)

    return tf.function(work).get_concrete_function(tf.TensorSpec([], tf.string))
