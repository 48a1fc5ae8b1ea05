"""One image with its annotations as a serialized `tf.train.Example`; masks and boxes are in the stored frame.

The names and kinds of its features are those of TF Model Garden and TFDS.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from shardwright.config import ImagesConfig
from shardwright.config.images import FULL
from shardwright.config.shards import RLE_TEXT
from shardwright.dataset.feature_presets import StoredFeatures, common_features
from shardwright.dataset.manifest import AREA, IGNORED, MASKS, RLE, mask_feature
from shardwright.errors import AnnotationError
from shardwright.formats.base import BACKGROUND, IGNORE, NO_LABEL, NO_ROW, MaskCode, Survey
from shardwright.images.boxes import PREFIX
from shardwright.images.orientation import UPRIGHT, transposes
from shardwright.ingest.known_files import PROBE_FEATURES
from shardwright.ingest.recipe import IngestRecipe
from shardwright.ingest.tasks import Job
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.masks.dialects import Dialect
from shardwright.masks.rle import Runs, area, check_stated_size, subtract, union
from shardwright.storage.checksum import BLAKE3, image_feature
from shardwright.tfrecords.encode import FeatureValue, byte_strings, floats, ints, pack_arrays

# Limit for one image: far more than any data set has, few enough to be drawn.
_MOST_MASKS = 100_000
# Of all masks of an image: forty bytes of a polygon are a run in each column. A line of a table has no more.
_MOST_RUNS = 1 << 24
# Runs of an image, 16 bytes each, that are kept before they are joined.
_JOINED_AT = 1 << 22
# The code of an image with more of either.
_TOO_MANY = "too_many_masks"
_DEFAULT = ImagesConfig()


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


def example_values(spec: ExampleSpec, job: Job) -> dict[str, FeatureValue]:
    """Returns the stored features of an image with its annotations, arrays packed.

    Args:
        spec: task, classes, stored features and the name of the table in errors.
        job: the image, its annotations, what is stored of it, and the checksum of its file.

    Raises:
        AnnotationError: a mask is broken or does not fit the image, or boxes are of an image of another size.
    """
    texts: dict[str, list[str]] = {}
    if spec.preset == RLE_TEXT and isinstance(spec.dialect, Dialect):
        # The source's own run lengths.
        for mask in job.annotations:
            texts.setdefault(spec.mask_feature(mask.label), []).append(mask.text or "")
    return pack_arrays(spec.stored.apply(image_features(spec, job), texts))


def image_features(spec: ExampleSpec, job: Job) -> dict[str, FeatureValue]:
    """Returns the features of an image with its annotations, under our names; see `example_values`."""
    assert job.stored is not None
    data, header, frame = job.stored
    if job.stated_size is not None:
        _check_stated_size(spec, job, job.stated_size, frame)
    features: dict[str, FeatureValue] = {
        "image/encoded": data,
        "image/format": header.format.encode(),
        "image/height": header.height,
        "image/width": header.width,
        "image/channels": header.channels,
        "image/orientation": header.orientation,
        "image/filename": job.file.key.rpartition("/")[2].encode("utf-8"),
        "image/key": job.file.key.encode("utf-8"),
        image_feature(spec.checksum): job.file.content_id.encode(),
        **_further_features(spec, job, frame),
    }
    if spec.task == "segmentation":
        masks = read_masks(spec, job, frame)
        labels = [label for label in range(len(spec.classes)) if len(masks[label])]
        for label, runs in masks.items():
            features[spec.mask_feature(label)] = ints(runs.reshape(-1))
            features[spec.mask_feature(label, AREA)] = area(runs)
    else:
        labels = [annotation.label for annotation in job.annotations]
        labels = labels if spec.ordered else sorted(set(labels))
    features["image/class/label"] = ints(labels)
    features["image/class/text"] = byte_strings([spec.classes[label].encode("utf-8") for label in labels])
    return features


def _check_stated_size(spec: ExampleSpec, job: Job, stated: tuple[int, int], frame: CoordinateFrame) -> None:
    """Compares sizes: neither boxes, which are fractions of the image, nor run lengths show a wrong size."""
    height, width = frame.size(is_on_displayed(spec, job, frame))
    if spec.frame != "auto" and transposes(frame.orientation) and stated == (width, height):
        return
    try:
        check_stated_size("the image", stated, height, width)
    except AnnotationError as error:
        raise error.at(spec.origin(NO_LABEL, NO_ROW)) from None


def _further_features(spec: ExampleSpec, job: Job, frame: CoordinateFrame) -> dict[str, FeatureValue]:
    """Returns the further features of an image, without those that have no values, boxes in the stored frame."""
    given = job.values
    if frame.moves_boxes:
        boxes = {name: values for name, values in given.items() if name.startswith(PREFIX)}
        moved = frame.move_boxes(boxes, is_on_displayed(spec, job, frame))
        given = {**given, **{name: np.asarray(values).tolist() for name, values in moved.items()}}
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


def is_on_displayed(spec: ExampleSpec, job: Job, frame: CoordinateFrame) -> bool:
    """Returns whether the image is turned by Exif and annotated as it is displayed.

    The size of its first mask decides; that of the image where the annotations state it for boxes without masks.
    """
    if spec.task == "segmentation" and job.annotations:
        return _is_displayed(spec, job.annotations[0].text or "", frame, job.stated_size)
    return any(name.startswith(PREFIX) for name in job.values) and frame.is_displayed(spec.frame, job.stated_size)


def _is_displayed(spec: ExampleSpec, text: str, frame: CoordinateFrame, stated_size: tuple[int, int] | None) -> bool:
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


def read_masks(spec: ExampleSpec, job: Job, frame: CoordinateFrame) -> dict[int, Runs]:
    """Reads the masks of an image; several rows of a class are joined.

    Args:
        spec: classes, how masks are written, which frame they are in.
        job: the image's annotations.
        frame: how they get to the stored pixels.

    Returns:
        Index of every class, and `IGNORE` where the spec has it -> runs, int64 (n, 2), of the stored pixels.

    Raises:
        AnnotationError: a mask is broken or does not fit the image.
    """
    if len(job.annotations) > _MOST_MASKS:
        many = f"the image has {len(job.annotations):,} masks; at most {_MOST_MASKS:,} are joined"
        raise AnnotationError(many, _TOO_MANY)
    # By class, and then by the frame that its rows turn out to be in.
    labels = (*range(len(spec.classes)), *([IGNORE] if spec.ignore else []))
    parts: dict[int, tuple[list[Runs], list[Runs]]] = {label: ([], []) for label in labels}
    count, most, total = 0, _JOINED_AT, 0
    dialect = spec.dialect
    if spec.frame != "auto" and transposes(frame.orientation):
        from shardwright.masks.coco_segmentation import CocoMasks

        # The configuration says which frame coordinates are in, so the size that a tool states may be that of either.
        dialect = replace(dialect, either_frame=True) if isinstance(dialect, CocoMasks) else dialect
    for _, label, text, row, *_ in job.annotations:
        try:
            displayed = _is_displayed(spec, text or "", frame, job.stated_size)
            height, width = frame.size(displayed)
            for drawn, runs in dialect.masks(label, text or "", height=height, width=width):
                if drawn == BACKGROUND:
                    # It is taken out of everything that was drawn before it in the same frame.
                    for by_frame in parts.values():
                        if by_frame[displayed]:
                            by_frame[displayed][:] = [subtract(union(by_frame[displayed]), runs)]
                    continue
                parts[drawn][displayed].append(runs)
                count += len(runs)
                total += len(runs)
                if total > _MOST_RUNS:
                    raise AnnotationError(f"its masks have more than {_MOST_RUNS:,} runs in all", _TOO_MANY)
                if count > most:
                    count = _join(parts)
                    most = max(_JOINED_AT, 2 * count)
        except AnnotationError as error:
            if error.code == _TOO_MANY:
                raise
            raise error.at(spec.origin(label, row)) from None
    plain = isinstance(dialect, Dialect)  # Then the runs of a row are sorted and merged already.
    masks = {}
    for label, by_frame in parts.items():
        moved = [
            frame.move_runs(runs[0] if plain and len(runs) == 1 else union(runs), bool(drawn))
            for drawn, runs in enumerate(by_frame)
            if runs
        ]
        masks[label] = moved[0] if len(moved) == 1 else union(moved)
    return masks


def _join(parts: dict[int, tuple[list[Runs], list[Runs]]]) -> int:
    """Joins the runs of each class, so many large masks need no more memory than one; returns how many are left."""
    count = 0
    for by_frame in parts.values():
        for runs in by_frame:
            runs[:] = [union(runs)] if runs else []
            count += len(runs[0]) if runs else 0
    return count


def example_features(task: str, survey: Survey, images: ImagesConfig = _DEFAULT) -> dict[str, str]:
    """Returns name and kind (`bytes`, `int64`, `float32`) of every feature that an example may have.

    Args:
        task: `segmentation` or `classification`.
        survey: of the input.
        images: `images`.
    """
    features = common_features(images.checksum)
    if task == "segmentation":
        for name in (*survey.classes, *([IGNORED] if survey.ignore else [])):
            features[mask_feature(name)] = "int64"
            features[mask_feature(name, AREA)] = "int64"
    return {**features, **further_features(survey, images.verify)}


def further_features(survey: Survey, verify: str) -> dict[str, str]:
    """Returns the features that are neither image nor labels: further annotations and probe results."""
    return {**survey.features, **(PROBE_FEATURES if verify == FULL else {})}


def stored_features(recipe: IngestRecipe, survey: Survey) -> StoredFeatures:
    """Returns how these features are stored, by the option `features`.

    Raises:
        ConfigError: see `StoredFeatures.of`.
    """
    return StoredFeatures.of(
        recipe.features.preset,
        recipe.features.map,
        example_features(recipe.task, survey, recipe.images),
        labels=labels_kind(recipe.task, survey),
        classes=len(survey.classes),
    )


def labels_kind(task: str, survey: Survey) -> str:
    """Returns the kind of an image's labels; see `Manifest.labels`."""
    return MASKS if task == "segmentation" else survey.labels
