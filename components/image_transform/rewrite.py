"""The transformation of one shard: every image is decoded, resized and re-encoded, its annotations are resampled.

A record that cannot be decoded becomes a row of the ledger, not an error. The figures of the images are written with
the shard, for the analyzers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import tensorflow as tf
from PIL import Image

from shardwright.components.image_transform.shard_figures import (
    Figures,
    Sums,
    channel_sums,
    encode_figures,
    encode_sums,
    figures_file,
    sums_file,
)
from shardwright.components.image_transform.text import Text, text_values
from shardwright.config import TransformConfig
from shardwright.config.transform import KEEP
from shardwright.dataset.feature_presets import StoredFeatures
from shardwright.dataset.ledger import REJECTED
from shardwright.dataset.reader import iter_records
from shardwright.dataset.record_facts import FactsCollector
from shardwright.dataset.resampled_annotations import CLASSES, moves_pixels, parsed, resample_annotations
from shardwright.dataset.stored_image import encode_image
from shardwright.images import tf_ops
from shardwright.images.geometry import Geometry, plan_geometry
from shardwright.images.header import ImageError, ImageHeader
from shardwright.images.read_header import read_header
from shardwright.running.processes import usable_cores
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.storage import in_groups, map_threads
from shardwright.tfrecords import encode, records
from shardwright.tfrecords.lazy_example import LazyExample

_READ = frozenset(("image/key", "image/encoded", "image/height", "image/width", CLASSES))


class Picture(NamedTuple):
    """A transformed picture.

    Attributes:
        plan: the geometry applied to its pixels.
        data: the bytes to store.
        header: header of these bytes.
        sums: see `shard_figures.channel_sums`.
    """

    plan: Geometry
    data: bytes
    header: ImageHeader
    sums: tuple[list[int], list[int]]


def make_picture(encoded: bytes, header: ImageHeader, plan: Geometry, recipe: TransformConfig) -> Picture:
    """Transforms a picture.

    Args:
        encoded: the ingested bytes.
        header: header of these bytes.
        plan: the geometry to apply to its pixels.
        recipe: options of the encoding.

    Raises:
        ImageError: it cannot be decoded, or the result cannot be encoded.
    """
    try:
        values = tf_ops.decode_planned(encoded, plan, jpeg=header.format == "jpeg")
    except tf.errors.InvalidArgumentError:
        # TensorFlow's message has numbers that change from run to run; the ledger must not change.
        reason = f"the header is sound, but these {len(encoded)} bytes of {header.format} cannot be decoded"
        raise ImageError("undecodable", reason) from None
    if recipe.encoding == "jpeg" and header.orientation == 1 and recipe.chroma in tf_ops.JPEG_CHROMA:
        # The same bytes as below, but without Python's lock.
        data = tf_ops.encode_jpeg(values, recipe.quality, optimize=recipe.optimize, chroma=recipe.chroma)
        return Picture(plan, data, ImageHeader("jpeg", plan.height, plan.width, 3, 1), channel_sums(values))
    data, written = encode_image(
        Image.fromarray(values),
        recipe.encoding,
        orientation=header.orientation,
        quality=recipe.quality,
        optimize=recipe.optimize,
        chroma=recipe.chroma,
    )
    return Picture(plan, data, written, channel_sums(values))


@dataclass(frozen=True)
class ShardTransform:
    """The transformation of every record; picklable.

    Attributes:
        recipe: the options.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.
        stored: forms of the stored features.
        texts: feature -> its text options and vocabulary.
    """

    recipe: TransformConfig
    task: str
    classes: tuple[str, ...]
    stored: StoredFeatures
    texts: Mapping[str, Text] = field(default_factory=dict)


def transform_shard(
    staging: Staging,
    planned: PlannedShard,
    source: str,
    checksum: str,
    how: ShardTransform,
    facts: FactsCollector | None,
    threads: int | None = None,
) -> int:
    """Writes a shard and its figures, unless an earlier attempt did; returns the number of records.

    Args:
        staging: destination of the shard.
        planned: the shard.
        source: file or URL of the source shard.
        checksum: the BLAKE3 of that file in its manifest.
        how: the transformation of its records.
        facts: collects the facts of the transformed records.
        threads: see `rewritten`.

    Raises:
        DatasetError: the file is damaged, or has been replaced.
    """
    extra = (figures_file(planned), sums_file(planned))

    def outcomes() -> Iterator[RecordResult]:
        scalars: list[bytes] = []
        sums = Sums({}, [], {})
        payloads = (payload for _, payload in iter_records(source, checksum))
        for outcome, made in rewritten(payloads, how, threads):
            if made is not None:
                scalars.append(made.scalars)
                sums.add(made.figures, made.inputs)
            yield outcome
        # Runs after the last outcome, before the shard counts as finished.
        for name, data in zip(extra, (encode_figures(scalars), encode_sums(sums)), strict=True):
            staging.write_file(name, data)

    return staging.write_shard(planned, outcomes(), further=extra, facts=facts).info.records


class TransformedRecord(NamedTuple):
    """The figures of one image.

    Attributes:
        scalars: an Example of the stored features that have statistics.
        figures: sums over its pixels.
        inputs: the names of its classes, as `image/class/text`.
    """

    scalars: bytes
    figures: Figures
    inputs: dict[str, list[bytes]]


def rewritten(
    payloads: Iterable[bytes], how: ShardTransform, threads: int | None = None
) -> Iterator[tuple[RecordResult, TransformedRecord | None]]:
    """Transforms records.

    One thread per core works on pixels only. The calling thread does everything else, for groups of a few records. So
    Python's lock changes hands a third as often as with one thread per record, and the code that works on masks stays
    in the processor's caches within a group.

    Args:
        payloads: serialized ingested examples.
        how: the transformation.
        threads: those that work on pixels; by default one for each core.

    Yields:
        In their order the new record with its figures, or a reject and `None`.
    """
    opened = in_groups((_opened(payload, how) for payload in payloads), lambda one: len(one.encoded) + one.rest)
    pictured = map_threads(partial(_pictured, recipe=how.recipe), opened, threads or usable_cores())
    for one, picture in in_groups(pictured, lambda pair: pair[0].rest + len(getattr(pair[1], "data", b""))):
        yield _finished(one, picture, how)


class _Opened(NamedTuple):
    """A parsed record.

    Attributes:
        key: its key.
        example: its features without the picture.
        encoded: the picture, until it has been decoded.
        rest: bytes of the record without the picture: many for masks of many runs.
        known: the picture's header and geometry, or the reason of its reject.
    """

    key: str
    example: dict[str, records.DecodedFeature | encode.EncodedFeature]
    encoded: bytes
    rest: int
    known: tuple[ImageHeader, Geometry] | ImageError


def _opened(payload: bytes, how: ShardTransform) -> _Opened:
    recipe = how.recipe
    example = LazyExample(payload).carry(lambda name: name in _READ or name in how.texts or moves_pixels(name))
    key = bytes(parsed(example, "image/key")[0]).decode("utf-8")
    encoded = bytes(parsed(example, "image/encoded")[0])
    del example["image/encoded"]
    rest = len(payload) - len(encoded)
    height, width = (int(parsed(example, f"image/{side}")[0]) for side in ("height", "width"))
    try:
        # The ingest has checked the whole file, and the record's checksum shows that it is unchanged.
        header = read_header(encoded, max_pixels=height * width, known=True)
        if (header.height, header.width) != (height, width):
            reason = f"the image is {header.height} x {header.width}, but its record has {height} x {width}"
            raise ImageError("size_mismatch", reason)
    except ImageError as error:
        return _Opened(key, example, b"", rest, error)
    policy = "stretch" if recipe.resize == KEEP else recipe.resize
    plan = plan_geometry(policy, height, width, *(recipe.size or (height, width)))
    return _Opened(key, example, encoded, rest, (header, plan))


def _pictured(opened: _Opened, recipe: TransformConfig) -> tuple[_Opened, Picture | ImageError]:
    """Transforms the picture; returns the record without its old one."""
    record = opened._replace(encoded=b"")
    if isinstance(opened.known, ImageError):
        return record, opened.known
    try:
        return record, make_picture(opened.encoded, *opened.known, recipe)
    except ImageError as error:
        return record, error


def _finished(
    opened: _Opened, picture: Picture | ImageError, how: ShardTransform
) -> tuple[RecordResult, TransformedRecord | None]:
    """Returns the new record of a picture."""
    if isinstance(picture, ImageError):
        return RecordResult(opened.key, None, REJECTED, picture.code, picture.reason), None
    features, present, area = resample_annotations(
        opened.example, picture.plan, picture.header, task=how.task, classes=how.classes, labels=how.recipe.labels
    )
    for name, text in how.texts.items():
        features |= text_values(name, text, opened.example.get(name, []))
    stored = how.stored.apply({**features, "image/encoded": picture.data})
    entries = encode.encode_entries(stored)
    scalars = {name: entry for name, entry in entries.items() if name in how.stored.scalars}
    shown = features.get(CLASSES, ())
    names = [
        text for text in (shown.values if isinstance(shown, encode.TypedList) else (shown,)) if isinstance(text, bytes)
    ]
    inputs = {CLASSES: names} if CLASSES in features else {}
    figures = Figures(*picture.sums, (picture.plan.height, picture.plan.width), present, area)
    made = TransformedRecord(encode.join_entries(scalars), figures, inputs)
    return RecordResult(opened.key, encode.join_entries(entries)), made
