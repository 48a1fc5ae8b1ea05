"""One image with all that is said about it, as a serialized `tf.train.Example`."""

from __future__ import annotations

import numpy as np

from shardwright.boxes import PREFIX
from shardwright.config.layout import RLE_TEXT
from shardwright.frames import Frames
from shardwright.image_files.image_header import ImageHeader
from shardwright.ingest.features import mask_feature
from shardwright.ingest.masks import are_displayed, read_masks
from shardwright.ingest.plan import IngestPlan
from shardwright.manifest import IGNORED
from shardwright.masks.rle import area
from shardwright.masks.rle_dialects import Dialect
from shardwright.sources.base import IGNORE, Sample, Values
from shardwright.tfrecords.records import FeatureValue, byte_strings, encode_pieces, floats, ints


def encode_sample(
    plan: IngestPlan, sample: Sample, data: bytes, digest: str, header: ImageHeader, frames: Frames
) -> list[bytes]:
    """Serializes one image with its annotations, in pieces.

    Args:
        plan: task, classes, stored features and what errors call the table.
        sample: the image's annotations.
        data: the bytes to store.
        digest: SHA-256 of the file as it was delivered, hex.
        header: what the bytes to store say.
        frames: how annotations get to the stored pixels.

    Raises:
        BadMask: a mask is broken or does not fit the image.
    """
    features: dict[str, FeatureValue] = {
        "image/encoded": data,
        "image/format": header.format.encode(),
        "image/height": header.height,
        "image/width": header.width,
        "image/channels": header.channels,
        "image/orientation": header.orientation,
        "image/filename": sample.key.rpartition("/")[2].encode("utf-8"),
        "image/key": sample.key.encode("utf-8"),
        "image/sha256": digest.encode(),
        **_extra(plan, sample, frames),
    }
    classes = plan.dataset.classes
    if plan.dataset.task == "segmentation":
        masks = read_masks(plan, sample, frames)
        labels = [label for label in range(len(classes)) if len(masks[label])]
        for label, runs in masks.items():
            name = _mask_feature(plan, label)
            features[f"{name}/rle"] = ints(runs.reshape(-1))
            features[f"{name}/area"] = area(runs)
    else:
        assert sample.labels is not None
        labels = list(sample.labels)
    features["image/class/label"] = ints(labels)
    features["image/class/text"] = byte_strings([classes[label].encode("utf-8") for label in labels])
    texts = _run_texts(plan, sample) if plan.recipe.features.preset == RLE_TEXT else None
    return encode_pieces(plan.stored.apply(features, texts))


def _run_texts(plan: IngestPlan, sample: Sample) -> dict[str, list[str]]:
    """The source's own run lengths of each mask, by the name of its feature, where its masks are written so."""
    texts: dict[str, list[str]] = {}
    if isinstance(plan.dialect, Dialect):
        for label, text, _ in sample.masks:
            texts.setdefault(_mask_feature(plan, label) + "/rle", []).append(text)
    return texts


def _mask_feature(plan: IngestPlan, label: int) -> str:
    return mask_feature(IGNORED if label == IGNORE else plan.dataset.classes[label])


def _extra(plan: IngestPlan, sample: Sample, frames: Frames) -> dict[str, FeatureValue]:
    """The further features of an image; one of which nothing is said is left out."""
    said = _moved_boxes(plan, sample, frames) if frames.moves_boxes else sample.values
    features: dict[str, FeatureValue] = {}
    for name, kind in plan.extra.items():
        values = said.get(name)
        if not values:
            continue
        if kind == "bytes":
            features[name] = byte_strings([str(value).encode("utf-8") for value in values])
        elif kind == "int64":
            features[name] = ints([int(value) for value in values])
        else:
            features[name] = floats([float(value) for value in values])
    return features


def is_on_displayed(plan: IngestPlan, sample: Sample, frames: Frames) -> bool:
    """Tells whether the image is turned by Exif and annotated as it is displayed: what its first mask says of itself.

    Of boxes, which say nothing, it is what holds for annotations without a size.
    """
    if sample.masks:
        return are_displayed(plan, sample.masks[0].text, frames)
    return any(name.startswith(PREFIX) for name in sample.values) and frames.are_displayed(plan.frame, None)


def _moved_boxes(plan: IngestPlan, sample: Sample, frames: Frames) -> Values:
    """The further features with the boxes where the stored pixels have what they surround.

    Boxes tell no size of their own.
    """
    boxes = {name: values for name, values in sample.values.items() if name.startswith(PREFIX)}
    displayed = is_on_displayed(plan, sample, frames)
    moved = {name: np.asarray(values).tolist() for name, values in frames.move_boxes(boxes, displayed).items()}
    return {**sample.values, **moved}
