"""One image with all that is said about it, as a serialized `tf.train.Example`.

The masks of one image, in the frame of the stored pixels.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from shardwright.config.dataset import RLE_TEXT
from shardwright.dataset.manifest import IGNORED
from shardwright.formats.base import IGNORE, NO_LABEL, NO_ROW, ImageSample, Values
from shardwright.images.boxes import PREFIX, AnnotationError
from shardwright.images.header import ImageHeader
from shardwright.images.orientation import UPRIGHT
from shardwright.ingest.features import mask_feature
from shardwright.ingest.plan import IngestPlan
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.masks.dialects import Dialect
from shardwright.masks.rle import Runs, area, union
from shardwright.tfrecords.encode import FeatureValue, byte_strings, encode_pieces, floats, ints

# Of one image: far more than any data set has, few enough to be drawn.
_MOST_MASKS = 100_000
# Runs of an image, 16 bytes each, that are held before they are joined.
_JOINED_AT = 1 << 22


class BadMask(ValueError):
    """A row's mask is broken or does not fit the image: `code` and `reason` are for the ledger."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def read_masks(plan: IngestPlan, sample: ImageSample, frames: CoordinateFrame) -> dict[int, Runs]:
    """Reads the masks of an image; several rows of a class are joined.

    Args:
        plan: classes, how masks are written, which frame they are in.
        sample: the image's annotations.
        frames: how they get to the stored pixels.

    Returns:
        Index of every class, and `IGNORE` where the plan has it -> runs, int64 (n, 2), of the stored pixels.

    Raises:
        BadMask: a mask is broken or does not fit the image.
    """
    classes = plan.dataset.classes
    # By class, and then by the frame that its rows turn out to be in.
    parts: dict[int, tuple[list[Runs], list[Runs]]] = {label: ([], []) for label in range(len(classes))}
    if plan.ignore:
        parts[IGNORE] = ([], [])
    if len(sample.masks) > _MOST_MASKS:
        raise BadMask(
            "too_many_masks", f"the image has {len(sample.masks):,} masks; at most {_MOST_MASKS:,} are joined"
        )
    held, most = 0, _JOINED_AT
    for label, text, row in sample.masks:
        try:
            displayed = is_displayed(plan, text, frames)
            height, width = frames.size(displayed)
            for drawn, runs in plan.dialect.masks(label, text, height=height, width=width):
                parts[drawn][displayed].append(runs)
                held += len(runs)
                if held > most:
                    held = _join(parts)
                    most = max(_JOINED_AT, 2 * held)
        except AnnotationError as error:
            raise BadMask(error.code, f"{_place(plan, label, row)}: {error}") from None
    return {label: _joined(stored, displayed, frames) for label, (stored, displayed) in parts.items()}


def _join(parts: dict[int, tuple[list[Runs], list[Runs]]]) -> int:
    """Joins what is held of each class, so many large masks need no more memory than one; returns the runs left."""
    held = 0
    for frames in parts.values():
        for runs in frames:
            runs[:] = [union(runs)] if runs else []
            held += len(runs[0]) if runs else 0
    return held


def is_displayed(plan: IngestPlan, text: str, frames: CoordinateFrame) -> bool:
    """Tells whether a mask is in the displayed frame; see `Frames.is_displayed`."""
    size = None
    if frames.orientation != UPRIGHT:  # Most images are upright: no need to look for the mask's size.
        with suppress(AnnotationError):  # What is wrong with it, reading it says better.
            size = plan.dialect.size(text)
    return frames.is_displayed(plan.frame, size)


def _joined(stored: list[Runs], displayed: list[Runs], frames: CoordinateFrame) -> Runs:
    moved = [frames.move_runs(union(runs), drawn) for drawn, runs in ((False, stored), (True, displayed)) if runs]
    return moved[0] if len(moved) == 1 else union(moved)


def _place(plan: IngestPlan, label: int, row: int) -> str:
    """Where a mask stands, for messages."""
    place = [plan.table] if plan.table else []
    if row != NO_ROW:
        # Only tables have columns.
        place.append(f"row {row}, column {plan.mask_column}" if plan.mask_column else f"annotations[{row}]")
    if label != NO_LABEL:
        place.append(f"class {IGNORED if label == IGNORE else plan.dataset.classes[label]}")
    return ", ".join(place)


def encode_sample(
    plan: IngestPlan, sample: ImageSample, data: bytes, digest: str, header: ImageHeader, frames: CoordinateFrame
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


def _run_texts(plan: IngestPlan, sample: ImageSample) -> dict[str, list[str]]:
    """The source's own run lengths of each mask, by the name of its feature, where its masks are written so."""
    texts: dict[str, list[str]] = {}
    if isinstance(plan.dialect, Dialect):
        for label, text, _ in sample.masks:
            texts.setdefault(_mask_feature(plan, label) + "/rle", []).append(text)
    return texts


def _mask_feature(plan: IngestPlan, label: int) -> str:
    return mask_feature(IGNORED if label == IGNORE else plan.dataset.classes[label])


def _extra(plan: IngestPlan, sample: ImageSample, frames: CoordinateFrame) -> dict[str, FeatureValue]:
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


def is_on_displayed(plan: IngestPlan, sample: ImageSample, frames: CoordinateFrame) -> bool:
    """Tells whether the image is turned by Exif and annotated as it is displayed: what its first mask says of itself.

    Of boxes, which say nothing, it is what holds for annotations without a size.
    """
    if sample.masks:
        return is_displayed(plan, sample.masks[0].text, frames)
    return any(name.startswith(PREFIX) for name in sample.values) and frames.is_displayed(plan.frame, None)


def _moved_boxes(plan: IngestPlan, sample: ImageSample, frames: CoordinateFrame) -> Values:
    """The further features with the boxes where the stored pixels have what they surround.

    Boxes tell no size of their own.
    """
    boxes = {name: values for name, values in sample.values.items() if name.startswith(PREFIX)}
    displayed = is_on_displayed(plan, sample, frames)
    moved = {name: np.asarray(values).tolist() for name, values in frames.move_boxes(boxes, displayed).items()}
    return {**sample.values, **moved}
