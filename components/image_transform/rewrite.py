"""One shard in, one shard out: every record decoded, resized, re-encoded, what is said about it moved along.

A record that cannot be decoded becomes a row of the ledger, not an error. Beside each shard lie the figures of its
images, which the analyzers read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image

from shardwright import pixels, records
from shardwright.config.transform import KEEP
from shardwright.encoding import encode
from shardwright.geometry import Geometry, plan_geometry
from shardwright.image_header import ImageError, ImageHeader
from shardwright.images import read_header
from shardwright.lazy_example import LazyExample
from shardwright.manifest import REJECTED
from shardwright.presets import StoredFeatures
from shardwright.staging import Outcome, PlannedShard, Staging
from shardwright.storage import in_parallel
from shardwright.transformed import CLASSES, annotated, is_moved, parsed
from shardwright_components.image_transform.figures import (
    Figures,
    Sums,
    encode_figures,
    encode_sums,
    figures_file,
    figures_of,
    sums_file,
)
from shardwright_components.image_transform.recipe import Recipe
from shardwright_components.image_transform.text import Text, text_values

_READ = frozenset(("image/key", "image/encoded", "image/height", "image/width", CLASSES))


@dataclass(frozen=True)
class Rewriting:
    """What becomes of every record; picklable.

    Attributes:
        recipe: what to do.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.
        stored: how features are stored.
        texts: feature -> what becomes of its texts.
    """

    recipe: Recipe
    task: str
    classes: tuple[str, ...]
    stored: StoredFeatures
    texts: Mapping[str, Text] = field(default_factory=dict)


def write_shard(staging: Staging, planned: PlannedShard, source: str, how: Rewriting) -> int:
    """Writes a shard and its figures, unless an earlier attempt has; returns the number of records.

    Args:
        staging: where the shard is written.
        planned: which shard.
        source: file of the shard it is made from, or its URL.
        how: what becomes of its records.
    """
    beside = (figures_file(planned), sums_file(planned))
    return staging.write_shard(planned, _outcomes(staging, planned, source, how), beside=beside).info.records


class Made(NamedTuple):
    """What is kept of one image beside its record.

    Attributes:
        told: an Example of the stored features that statistics are made of.
        figures: of its pixels.
        inputs: the texts that the TransformGraph takes, by our own names.
    """

    told: bytes
    figures: Figures
    inputs: dict[str, list[bytes]]


def _outcomes(staging: Staging, planned: PlannedShard, source: str, how: Rewriting) -> Iterator[Outcome]:
    told: list[bytes] = []
    sums = Sums({}, [], {})
    payloads = (payload for _, payload in records.read_records(source))
    # One more than there are cores: while one waits for Python's lock, all cores have pixels to decode.
    for outcome, made in in_parallel(partial(rewrite, how=how), payloads, threads=(os.cpu_count() or 1) + 1):
        if made is not None:
            told.append(made.told)
            sums.add(made.figures, made.inputs)
        yield outcome
    # Runs when the last outcome is taken, before the shard counts as finished.
    staging.write_file(figures_file(planned), encode_figures(told))
    staging.write_file(sums_file(planned), encode_sums(sums))


def rewrite(payload: bytes, how: Rewriting) -> tuple[Outcome, Made | None]:
    """Transforms one record.

    Args:
        payload: serialized example as ingested.
        how: what becomes of it.

    Returns:
        The new record with what is kept beside it, or a reject and `None`.
    """
    recipe = how.recipe
    example = LazyExample(payload).carry(lambda name: name in _READ or name in how.texts or is_moved(name))
    key = bytes(parsed(example, "image/key")[0]).decode("utf-8")
    encoded = bytes(parsed(example, "image/encoded")[0])
    height, width = (int(parsed(example, f"image/{side}")[0]) for side in ("height", "width"))
    try:
        # The ingest has looked at the whole file, and the record's checksum tells that it is the same.
        header = read_header(encoded, max_pixels=height * width, known=True)
        if (header.height, header.width) != (height, width):
            said = f"the image is {header.height} x {header.width}, its record says {height} x {width}"
            raise ImageError("size_mismatch", said)
        policy = "stretch" if recipe.resize == KEEP else recipe.resize
        plan = plan_geometry(policy, height, width, *(recipe.size or (height, width)))
        values, data, written = _made(encoded, header, plan, recipe)
    except ImageError as error:
        return Outcome(key, None, REJECTED, error.code, error.reason), None
    features, present, area = annotated(
        example, plan, written, task=how.task, classes=how.classes, labels=recipe.labels
    )
    for name, text in how.texts.items():
        features |= text_values(name, text, example.get(name, []))
    stored = how.stored.apply({**features, "image/encoded": data})
    entries = records.encode_entries(stored)
    told = {name: entry for name, entry in entries.items() if name in how.stored.scalars}
    inputs = {name: _texts(features[name]) for name in (CLASSES, *how.texts) if name in features}
    made = Made(records.join_entries(told), figures_of(values, present, area), inputs)
    return Outcome(key, records.join_entries(entries)), made


def _texts(value: records.FeatureValue) -> list[bytes]:
    values = value.values if isinstance(value, records.TypedList) else (value,)
    return [text for text in values if isinstance(text, bytes)]


def _made(
    encoded: bytes, header: ImageHeader, plan: Geometry, recipe: Recipe
) -> tuple[npt.NDArray[np.uint8], bytes, ImageHeader]:
    """The pixels of a transformed image, uint8 [height, width, 3], how they are stored, and the header of that."""
    try:
        decoded = pixels.decode_planned(tf.constant(encoded), plan, jpeg=header.format == "jpeg")
    except tf.errors.InvalidArgumentError:
        # TensorFlow's own words hold numbers that change from run to run; the ledger must not.
        reason = f"the header is sound, but these {len(encoded)} bytes of {header.format} cannot be decoded"
        raise ImageError("undecodable", reason) from None
    # The tensor's own memory: `numpy()` would copy it.
    values = np.frombuffer(memoryview(decoded), np.uint8).reshape(plan.height, plan.width, 3)
    quality = recipe.quality or 0
    if recipe.encoding == "jpeg" and header.orientation == 1 and recipe.chroma in pixels.JPEG_CHROMA:
        # The same bytes, and other threads go on meanwhile.
        data = pixels.encode_jpeg(decoded, quality, optimize=recipe.optimize, chroma=recipe.chroma)
        return values, data, ImageHeader("jpeg", plan.height, plan.width, 3, 1)
    data, written = encode(
        Image.fromarray(values),
        recipe.encoding,
        orientation=header.orientation,
        quality=quality,
        optimize=recipe.optimize,
        chroma=recipe.chroma,
    )
    return values, data, written
