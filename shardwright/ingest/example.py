"""One image with its annotations as a serialized `tf.train.Example`; masks and boxes are in the stored frame."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shardwright.config.shards import RLE_TEXT
from shardwright.dataset.feature_presets import StoredFeatures
from shardwright.dataset.manifest import AREA, IGNORED, RLE, mask_feature
from shardwright.formats.base import BACKGROUND, IGNORE, NO_LABEL, NO_ROW, ImageSample, MaskCode, Values
from shardwright.images.boxes import PREFIX, AnnotationError
from shardwright.images.header import ImageHeader
from shardwright.images.orientation import UPRIGHT, transposes
from shardwright.masks.coco_segmentation import CocoMasks, check_size
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.masks.dialects import Dialect
from shardwright.masks.rle import Runs, area, subtract, union
from shardwright.storage.checksum import BLAKE3, image_feature
from shardwright.tfrecords.encode import FeatureValue, byte_strings, encode_pieces, floats, ints, pack_arrays

# Limit for one image: far more than any data set has, few enough to be drawn.
_MOST_MASKS = 100_000
# Of all masks of an image: forty bytes of a polygon are a run in each column. A line of a table has no more.
_MOST_RUNS = 1 << 24
# Runs of an image, 16 bytes each, that are kept before they are joined.
_JOINED_AT = 1 << 22


class BadMask(ValueError):
    """A row's annotation is broken or does not fit the image: `code` and `reason` are for the ledger."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class ExampleSpec:
    """How an image and its annotations become an example. Small and picklable.

    Attributes:
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.
        table: file name of the table of annotations, or empty.
        mask_column: header of its column of masks, or empty.
        dialect: how masks are written there.
        stored: names and forms of the features.
        preset: `features.preset`.
        ignore: whether examples have a mask of the pixels that are not to be counted.
        extra: kinds of the further features that the annotations give.
        frame: which frame annotations are in, `auto`, `stored` or `displayed`.
        ordered: whether order and repeats of an image's classes count.
        checksum: `images.checksum`.
    """

    task: str
    classes: tuple[str, ...]
    table: str
    mask_column: str
    dialect: MaskCode
    stored: StoredFeatures
    preset: str
    ignore: bool
    extra: Mapping[str, str]
    frame: str
    ordered: bool
    checksum: str = BLAKE3

    def name_of(self, label: int) -> str:
        """Returns the name of a class, or that of the ignored pixels."""
        return IGNORED if label == IGNORE else "background" if label == BACKGROUND else self.classes[label]

    def mask_feature(self, label: int, what: str = RLE) -> str:
        """Returns the name of a feature of a class's mask."""
        return mask_feature(self.name_of(label), what)

    def origin(self, label: int, row: int) -> str:
        """Returns where a mask was read, for messages."""
        parts = [self.table] if self.table else []
        if row != NO_ROW:
            # Only tables have columns.
            parts.append(f"row {row}, column {self.mask_column}" if self.mask_column else f"annotations[{row}]")
        if label != NO_LABEL:
            parts.append(f"class {self.name_of(label)}")
        return ", ".join(parts)


def read_masks(spec: ExampleSpec, sample: ImageSample, frame: CoordinateFrame) -> dict[int, Runs]:
    """Reads the masks of an image; several rows of a class are joined.

    Args:
        spec: classes, how masks are written, which frame they are in.
        sample: the image's annotations.
        frame: how they get to the stored pixels.

    Returns:
        Index of every class, and `IGNORE` where the spec has it -> runs, int64 (n, 2), of the stored pixels.

    Raises:
        BadMask: a mask is broken or does not fit the image.
    """
    # By class, and then by the frame that its rows turn out to be in.
    parts: dict[int, tuple[list[Runs], list[Runs]]] = {label: ([], []) for label in range(len(spec.classes))}
    if spec.ignore:
        parts[IGNORE] = ([], [])
    if len(sample.masks) > _MOST_MASKS:
        raise BadMask(
            "too_many_masks", f"the image has {len(sample.masks):,} masks; at most {_MOST_MASKS:,} are joined"
        )
    count, most, total = 0, _JOINED_AT, 0
    dialect = spec.dialect
    if spec.frame != "auto" and transposes(frame.orientation) and isinstance(dialect, CocoMasks):
        # The configuration says which frame coordinates are in, so the size that a tool states may be that of either.
        dialect = replace(dialect, either_frame=True)
    for label, text, row in sample.masks:
        try:
            displayed = is_displayed(spec, text, frame, sample.stated_size)
            height, width = frame.size(displayed)
            for drawn, runs in dialect.masks(label, text, height=height, width=width):
                if drawn == BACKGROUND:
                    _erase(parts, displayed, runs)
                    continue
                parts[drawn][displayed].append(runs)
                count += len(runs)
                total += len(runs)
                if total > _MOST_RUNS:
                    raise BadMask("too_many_masks", f"its masks have more than {_MOST_RUNS:,} runs in all")
                if count > most:
                    count = _join(parts)
                    most = max(_JOINED_AT, 2 * count)
        except AnnotationError as error:
            raise BadMask(error.code, f"{spec.origin(label, row)}: {error}") from None
    plain = isinstance(spec.dialect, Dialect)
    return {label: _joined(stored, displayed, frame, plain=plain) for label, (stored, displayed) in parts.items()}


def _erase(parts: dict[int, tuple[list[Runs], list[Runs]]], displayed: bool, background: Runs) -> None:
    """Takes a region out of everything that was drawn before it in the same frame."""
    for by_frame in parts.values():
        if by_frame[displayed]:
            by_frame[displayed][:] = [subtract(union(by_frame[displayed]), background)]


def _join(parts: dict[int, tuple[list[Runs], list[Runs]]]) -> int:
    """Joins the runs of each class, so many large masks need no more memory than one; returns how many are left."""
    count = 0
    for by_frame in parts.values():
        for runs in by_frame:
            runs[:] = [union(runs)] if runs else []
            count += len(runs[0]) if runs else 0
    return count


def is_displayed(
    spec: ExampleSpec, text: str, frame: CoordinateFrame, stated_size: tuple[int, int] | None = None
) -> bool:
    """Returns whether a mask is in the displayed frame, see `CoordinateFrame`.

    Args:
        spec: how masks are written, which frame they are in.
        text: the mask.
        frame: of its image.
        stated_size: height and width of the image that the annotations state, for masks that state none themselves.
    """
    size = None
    if frame.orientation != UPRIGHT:  # Most images are upright: no need to look for the mask's size.
        with suppress(AnnotationError):  # Reading the mask gives the better message.
            size = spec.dialect.size(text)
    return frame.is_displayed(spec.frame, size or stated_size)


def _joined(stored: list[Runs], displayed: list[Runs], frame: CoordinateFrame, *, plain: bool) -> Runs:
    """Joins the runs of a class; `plain` is whether those of each code are sorted and merged already."""
    both = ((False, stored), (True, displayed))
    moved = [
        frame.move_runs(runs[0] if plain and len(runs) == 1 else union(runs), drawn) for drawn, runs in both if runs
    ]
    return moved[0] if len(moved) == 1 else union(moved)


class EncodedSample(NamedTuple):
    """An example.

    Attributes:
        pieces: serialized, in pieces.
        values: its features.
    """

    pieces: list[bytes]
    values: Mapping[str, FeatureValue]


def sample_features(
    spec: ExampleSpec, sample: ImageSample, data: bytes, digest: str, header: ImageHeader, frame: CoordinateFrame
) -> dict[str, FeatureValue]:
    """Returns the features of one image with its annotations, under our names; the arguments are `encode_sample`'s.

    Raises:
        BadMask: a mask is broken or does not fit the image, or boxes are of an image of another size.
    """
    if sample.stated_size is not None:
        _check_stated_size(spec, sample, sample.stated_size, frame)
    features: dict[str, FeatureValue] = {
        "image/encoded": data,
        "image/format": header.format.encode(),
        "image/height": header.height,
        "image/width": header.width,
        "image/channels": header.channels,
        "image/orientation": header.orientation,
        "image/filename": sample.key.rpartition("/")[2].encode("utf-8"),
        "image/key": sample.key.encode("utf-8"),
        image_feature(spec.checksum): digest.encode(),
        **_extra(spec, sample, frame),
    }
    if spec.task == "segmentation":
        masks = read_masks(spec, sample, frame)
        labels = [label for label in range(len(spec.classes)) if len(masks[label])]
        for label, runs in masks.items():
            features[spec.mask_feature(label)] = ints(runs.reshape(-1))
            features[spec.mask_feature(label, AREA)] = area(runs)
    else:
        assert sample.labels is not None
        labels = list(sample.labels)
    features["image/class/label"] = ints(labels)
    features["image/class/text"] = byte_strings([spec.classes[label].encode("utf-8") for label in labels])
    return features


def encode_sample(
    spec: ExampleSpec, sample: ImageSample, data: bytes, digest: str, header: ImageHeader, frame: CoordinateFrame
) -> EncodedSample:
    """Serializes one image with its annotations.

    Args:
        spec: task, classes, stored features and the name of the table in errors.
        sample: the image's annotations.
        data: the bytes to store.
        digest: checksum of the file as it was delivered, hex.
        header: of the bytes to store.
        frame: how annotations get to the stored pixels.

    Raises:
        BadMask: a mask is broken or does not fit the image, or boxes are of an image of another size.
    """
    features = sample_features(spec, sample, data, digest, header, frame)
    texts = _run_texts(spec, sample) if spec.preset == RLE_TEXT else None
    values = pack_arrays(spec.stored.apply(features, texts))
    return EncodedSample(encode_pieces(values), values)


def _run_texts(spec: ExampleSpec, sample: ImageSample) -> dict[str, list[str]]:
    """Returns the source's own run lengths of each mask, by feature name, where its masks are run lengths."""
    texts: dict[str, list[str]] = {}
    if isinstance(spec.dialect, Dialect):
        for label, text, _ in sample.masks:
            texts.setdefault(spec.mask_feature(label), []).append(text)
    return texts


def _extra(spec: ExampleSpec, sample: ImageSample, frame: CoordinateFrame) -> dict[str, FeatureValue]:
    """Returns the further features of an image, without those that have no values."""
    given = _moved_boxes(spec, sample, frame) if frame.moves_boxes else sample.values
    features: dict[str, FeatureValue] = {}
    for name, kind in spec.extra.items():
        values = given.get(name)
        if not values:
            continue
        if kind == "bytes":
            features[name] = byte_strings([str(value).encode("utf-8") for value in values])
        elif kind == "int64":
            features[name] = ints([int(value) for value in values])
        else:
            features[name] = floats([float(value) for value in values])
    return features


def is_on_displayed(spec: ExampleSpec, sample: ImageSample, frame: CoordinateFrame) -> bool:
    """Returns whether the image is turned by Exif and annotated as it is displayed.

    The size of its first mask decides; that of the image where the annotations state it for boxes without masks.
    """
    if sample.masks:
        return is_displayed(spec, sample.masks[0].text, frame, sample.stated_size)
    return any(name.startswith(PREFIX) for name in sample.values) and frame.is_displayed(spec.frame, sample.stated_size)


def _check_stated_size(spec: ExampleSpec, sample: ImageSample, stated: tuple[int, int], frame: CoordinateFrame) -> None:
    """Compares sizes: neither boxes, which are fractions of the image, nor run lengths show a wrong size."""
    height, width = frame.size(is_on_displayed(spec, sample, frame))
    if spec.frame != "auto" and transposes(frame.orientation) and stated == (width, height):
        return
    try:
        check_size("the image", stated, height, width)
    except AnnotationError as error:
        raise BadMask(error.code, f"{spec.origin(NO_LABEL, NO_ROW)}: {error}") from None


def _moved_boxes(spec: ExampleSpec, sample: ImageSample, frame: CoordinateFrame) -> Values:
    """Returns the further features with the boxes in the frame of the stored pixels."""
    boxes = {name: values for name, values in sample.values.items() if name.startswith(PREFIX)}
    displayed = is_on_displayed(spec, sample, frame)
    moved = {name: np.asarray(values).tolist() for name, values in frame.move_boxes(boxes, displayed).items()}
    return {**sample.values, **moved}
