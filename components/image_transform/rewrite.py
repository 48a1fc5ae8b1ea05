"""One shard in, one shard out: every record decoded, resized, re-encoded, what is said about it moved along.

A record that cannot be decoded becomes a row of the ledger, not an error. Beside each shard lie the figures of its
images, which the analyzers read.

The picture of one record: decoded, brought to its size, summed up, encoded again.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np
import tensorflow as tf
from PIL import Image

from shardwright.components.image_transform.figures import (
    Figures,
    Sums,
    channel_sums,
    encode_figures,
    encode_sums,
    figures_file,
    sums_file,
)
from shardwright.components.image_transform.recipe import Recipe
from shardwright.components.image_transform.text import Text, text_values
from shardwright.config.transform import KEEP
from shardwright.dataset.features import StoredFeatures
from shardwright.dataset.image_encoding import encode_image
from shardwright.dataset.ledger import REJECTED
from shardwright.dataset.reader import iter_records
from shardwright.dataset.resampled_annotations import CLASSES, moves_pixels, parsed, resample_annotations
from shardwright.images import tf_ops
from shardwright.images.geometry import Geometry, plan_geometry
from shardwright.images.header import ImageError, ImageHeader
from shardwright.images.read_header import read_header
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.storage import map_threads
from shardwright.tfrecords import encode, records
from shardwright.tfrecords.lazy_example import LazyExample


class Picture(NamedTuple):
    """A transformed picture.

    Attributes:
        plan: what has happened to its pixels.
        data: the bytes that are stored.
        header: of these bytes.
        sums: see `figures.channel_sums`.
    """

    plan: Geometry
    data: bytes
    header: ImageHeader
    sums: tuple[list[int], list[int]]


def make_picture(encoded: bytes, header: ImageHeader, plan: Geometry, recipe: Recipe) -> Picture:
    """Transforms a picture.

    Args:
        encoded: as ingested.
        header: of these bytes.
        plan: what is to happen to its pixels.
        recipe: how it is stored.

    Raises:
        ImageError: it cannot be decoded, or what comes out cannot be encoded.
    """
    try:
        decoded = tf_ops.decode_planned(tf.constant(encoded), plan, jpeg=header.format == "jpeg")
    except tf.errors.InvalidArgumentError:
        # TensorFlow's own words hold numbers that change from run to run; the ledger must not.
        reason = f"the header is sound, but these {len(encoded)} bytes of {header.format} cannot be decoded"
        raise ImageError("undecodable", reason) from None
    # The tensor's own memory: `numpy()` would copy it.
    values = np.frombuffer(memoryview(decoded), np.uint8).reshape(plan.height, plan.width, 3)
    quality = recipe.quality or 0
    if recipe.encoding == "jpeg" and header.orientation == 1 and recipe.chroma in tf_ops.JPEG_CHROMA:
        # The same bytes, and other threads go on meanwhile.
        data = tf_ops.encode_jpeg(decoded, quality, optimize=recipe.optimize, chroma=recipe.chroma)
        return Picture(plan, data, ImageHeader("jpeg", plan.height, plan.width, 3, 1), channel_sums(values))
    data, written = encode_image(
        Image.fromarray(values),
        recipe.encoding,
        orientation=header.orientation,
        quality=quality,
        optimize=recipe.optimize,
        chroma=recipe.chroma,
    )
    return Picture(plan, data, written, channel_sums(values))


# So many records, or records of so many bytes, are taken apart or written in a row.
_AT_ONCE = 8
_MOST_BYTES = 8 << 20
_READ = frozenset(("image/key", "image/encoded", "image/height", "image/width", CLASSES))

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class ShardTransform:
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


def transform_shard(staging: Staging, planned: PlannedShard, source: str, sha256: str, how: ShardTransform) -> int:
    """Writes a shard and its figures, unless an earlier attempt has; returns the number of records.

    Args:
        staging: where the shard is written.
        planned: which shard.
        source: file of the shard it is made from, or its URL.
        sha256: that file's, as its manifest says.
        how: what becomes of its records.

    Raises:
        DatasetError: the file is damaged, or another one.
    """
    beside = (figures_file(planned), sums_file(planned))
    return staging.write_shard(planned, _outcomes(staging, planned, source, sha256, how), further=beside).info.records


class TransformedRecord(NamedTuple):
    """What is kept of one image beside its record.

    Attributes:
        told: an Example of the stored features that statistics are made of.
        figures: of its pixels.
        inputs: the texts that the TransformGraph takes, by our own names.
    """

    told: bytes
    figures: Figures
    inputs: dict[str, list[bytes]]


def _outcomes(
    staging: Staging, planned: PlannedShard, source: str, sha256: str, how: ShardTransform
) -> Iterator[RecordResult]:
    told: list[bytes] = []
    sums = Sums({}, [], {})
    for outcome, made in rewritten((payload for _, payload in iter_records(source, sha256)), how):
        if made is not None:
            told.append(made.told)
            sums.add(made.figures, made.inputs)
        yield outcome
    # Runs when the last outcome is taken, before the shard counts as finished.
    staging.write_file(figures_file(planned), encode_figures(told))
    staging.write_file(sums_file(planned), encode_sums(sums))


def rewritten(
    payloads: Iterable[bytes], how: ShardTransform
) -> Iterator[tuple[RecordResult, TransformedRecord | None]]:
    """Transforms records.

    As many threads as there are cores do what is done to pixels, and nothing else; the calling one does all else, for a
    few records in a row. So Python's lock changes hands a third as often as if each record went through one thread, and
    what works on masks is in the processor's caches for all but the first of them.

    Args:
        payloads: serialized examples as ingested.
        how: what becomes of them.

    Yields:
        In their order the new record with what is kept beside it, or a reject and `None`.
    """
    opened = _in_groups((_opened(payload, how) for payload in payloads), lambda one: len(one.encoded) + one.beside)
    pictured = map_threads(
        partial(_pictured, recipe=how.recipe), chain.from_iterable(opened), threads=os.cpu_count() or 1
    )
    for group in _in_groups(pictured, lambda pair: pair[0].beside + _size(pair[1])):
        for one, picture in group:
            yield _finished(one, picture, how)


def _size(picture: Picture | ImageError) -> int:
    return len(picture.data) if isinstance(picture, Picture) else 0


def _in_groups(items: Iterable[_Item], size: Callable[[_Item], int]) -> Iterator[Iterator[_Item]]:
    """Takes a few items before it hands them on one by one, fewer where they are large."""
    group: deque[_Item] = deque()
    held = 0
    for item in items:
        group.append(item)
        held += size(item)
        if len(group) == _AT_ONCE or held >= _MOST_BYTES:
            yield _emptied(group)
            held = 0
    yield _emptied(group)


def _emptied(group: deque[_Item]) -> Iterator[_Item]:
    while group:
        yield group.popleft()


class _Opened(NamedTuple):
    """A record taken apart.

    Attributes:
        key: its key.
        example: its features but the picture.
        encoded: the picture, until it has been decoded.
        beside: bytes of the record beside the picture: many, where masks are of many runs.
        known: the picture's header and what is to happen to it, or why it is refused.
    """

    key: str
    example: dict[str, records.DecodedFeature | encode.EncodedFeature]
    encoded: bytes
    beside: int
    known: tuple[ImageHeader, Geometry] | ImageError


def _opened(payload: bytes, how: ShardTransform) -> _Opened:
    recipe = how.recipe
    example = LazyExample(payload).carry(lambda name: name in _READ or name in how.texts or moves_pixels(name))
    key = bytes(parsed(example, "image/key")[0]).decode("utf-8")
    encoded = bytes(parsed(example, "image/encoded")[0])
    del example["image/encoded"]
    beside = len(payload) - len(encoded)
    height, width = (int(parsed(example, f"image/{side}")[0]) for side in ("height", "width"))
    try:
        # The ingest has looked at the whole file, and the record's checksum tells that it is the same.
        header = read_header(encoded, max_pixels=height * width, known=True)
        if (header.height, header.width) != (height, width):
            said = f"the image is {header.height} x {header.width}, its record says {height} x {width}"
            raise ImageError("size_mismatch", said)
    except ImageError as error:
        return _Opened(key, example, b"", beside, error)
    policy = "stretch" if recipe.resize == KEEP else recipe.resize
    plan = plan_geometry(policy, height, width, *(recipe.size or (height, width)))
    return _Opened(key, example, encoded, beside, (header, plan))


def _pictured(opened: _Opened, recipe: Recipe) -> tuple[_Opened, Picture | ImageError]:
    """Makes the picture; the record is handed on without the one it had."""
    rest = opened._replace(encoded=b"")
    if isinstance(opened.known, ImageError):
        return rest, opened.known
    try:
        return rest, make_picture(opened.encoded, *opened.known, recipe)
    except ImageError as error:
        return rest, error


def _finished(
    opened: _Opened, picture: Picture | ImageError, how: ShardTransform
) -> tuple[RecordResult, TransformedRecord | None]:
    """The new record of a picture."""
    if isinstance(picture, ImageError):
        return RecordResult(opened.key, None, REJECTED, picture.code, picture.reason), None
    features, present, area = resample_annotations(
        opened.example, picture.plan, picture.header, task=how.task, classes=how.classes, labels=how.recipe.labels
    )
    for name, text in how.texts.items():
        features |= text_values(name, text, opened.example.get(name, []))
    stored = how.stored.apply({**features, "image/encoded": picture.data})
    entries = encode.encode_entries(stored)
    told = {name: entry for name, entry in entries.items() if name in how.stored.scalars}
    inputs = {name: _texts(features[name]) for name in (CLASSES, *how.texts) if name in features}
    figures = Figures(*picture.sums, (picture.plan.height, picture.plan.width), present, area)
    return RecordResult(opened.key, encode.join_entries(entries)), TransformedRecord(
        encode.join_entries(told), figures, inputs
    )


def _texts(value: encode.FeatureValue) -> list[bytes]:
    values = value.values if isinstance(value, encode.TypedList) else (value,)
    return [text for text in values if isinstance(text, bytes)]
