"""Feature presets: which features of an ingested example are stored, under which names and in which form.

`tf_vision`       our own names, those of TF Model Garden: `image/encoded`, `image/class/label`; run lengths as int64
`tfds`            `image`, `label` (`labels` where there may be several), `image/filename`, `id`; the mask of every
                  class as PNG of 0 and 1 in `segmentation_mask/<class>`
`kaggle_flowers`  `image`, `class`, `label` (the name of the class), `size` (height, width), `one_hot_class`, `id`
`rle_text`        our own names, but run lengths as text in `image/segmentation/<class>/rle_text`, one per row of the
                  source

The transform may also store masks as PNG under our own names, in `image/segmentation/<class>/png`.

Further features of the input (columns, captions, boxes) keep their names under each. `features.map` renames any.

Sources: tensorflow_datasets (`ImageFolder`, `voc`; a nested FeaturesDict is stored under names joined by a slash);
Martin Görner's notebooks on flower TFRecords for TPUs (feature names, order of `size`).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from shardwright.config.shards import KAGGLE_FLOWERS, RLE_TEXT, TF_VISION, TFDS
from shardwright.dataset.manifest import MASKS, NONE, SINGLE
from shardwright.errors import ConfigError
from shardwright.masks.dialects import COLUMN_PAIRS
from shardwright.masks.rle import draw
from shardwright.storage.checksum import ALGORITHMS, image_feature
from shardwright.tfrecords.encode import FeatureValue, TypedList, byte_strings, floats, ints

SIZE, ONE_HOT = "size", "one_hot_class"
_LABEL, _TEXT = "image/class/label", "image/class/text"
_HEIGHT, _WIDTH = "image/height", "image/width"
_MASK = re.compile(r"image/segmentation/(?P<name>[^/]+)/(?P<what>rle|area)")
# Every image has these, and the checksum of one algorithm (`common_features`).
COMMON_FEATURES = {
    "image/encoded": "bytes",
    "image/format": "bytes",
    "image/height": "int64",
    "image/width": "int64",
    "image/channels": "int64",
    "image/orientation": "int64",
    "image/filename": "bytes",
    "image/key": "bytes",
    **{image_feature(algorithm): "bytes" for algorithm in ALGORITHMS},
    "image/class/label": "int64",
    "image/class/text": "bytes",
}
_SAME, _PNG, _RUN_TEXT = "same", "png", "run_text"
PREFIX = "image/meta/"
_NOT_IN_FEATURE_NAMES = re.compile(r"[^\w.-]+")


def common_features(algorithm: str) -> dict[str, str]:
    """Returns name and kind of the features that every image has with that `images.checksum`."""
    others = {image_feature(other) for other in ALGORITHMS if other != algorithm}
    return {name: kind for name, kind in COMMON_FEATURES.items() if name not in others}


class _Stored(NamedTuple):
    """One stored feature: name, kind, and how it is made of ours."""

    name: str
    kind: str
    form: str


@dataclass(frozen=True)
class StoredFeatures:
    """How our features are stored. Small and picklable.

    Attributes:
        stored: our name, or `size` and `one_hot_class` -> stored feature.
        classes: number of classes.
    """

    stored: Mapping[str, _Stored]
    classes: int

    @staticmethod
    def of(
        preset: str,
        renamed: Mapping[str, str],
        features: Mapping[str, str],
        *,
        labels: str,
        classes: int,
        drawn: bool = False,
        section: str = "features",
    ) -> StoredFeatures:
        """Applies a preset and `features.map`.

        Args:
            preset: `features.preset`.
            renamed: our name -> stored name. One that the preset leaves out is then stored.
            features: name -> kind (`bytes`, `int64`, `float32`) of our features.
            labels: the kind of annotations; see `Manifest.labels`.
            classes: number of classes.
            drawn: store masks as PNG under our own names.
            section: part of the configuration, for messages.

        Raises:
            ConfigError: the preset cannot hold such labels, `renamed` has a name that is not a feature of ours, or two
                features would get one name.
        """
        if preset == RLE_TEXT and labels != MASKS:
            raise ConfigError(f"{section}.preset", "rle_text stores masks, and the input has none", "Use tf_vision.")
        if preset == KAGGLE_FLOWERS and labels != SINGLE:
            raise ConfigError(
                f"{section}.preset",
                f"kaggle_flowers stores one class an image, and the input's labels are of the kind {labels!r}",
                "Use tf_vision or tfds.",
            )
        stored = _PRESETS[preset](features, labels)
        if drawn:
            stored |= {name: _Stored(f"{name.removesuffix('/rle')}/png", "bytes", _PNG) for name, _ in _masks(features)}
        for ours, theirs in renamed.items():
            if ours not in stored and ours not in features:
                known = ", ".join(sorted({*features, *stored}))
                raise ConfigError(f"{section}.map.{ours}", f"{ours!r} is not a feature", f"Use one of: {known}.")
            kept = stored.get(ours) or _Stored(ours, features[ours], _SAME)
            stored[ours] = kept._replace(name=theirs)
        taken: dict[str, str] = {}
        for ours, feature in stored.items():
            if feature.name in taken:
                raise ConfigError(
                    f"{section}.map",
                    f"{ours} and {taken[feature.name]} would both be stored as {feature.name!r}",
                    "Give one of them another name.",
                )
            taken[feature.name] = ours
        return StoredFeatures(stored, classes)

    @property
    def kinds(self) -> dict[str, str]:
        """Stored name -> kind."""
        return {feature.name: feature.kind for feature in self.stored.values()}

    @property
    def names(self) -> dict[str, str]:
        """Our name -> stored name, of those that differ."""
        return {ours: feature.name for ours, feature in self.stored.items() if feature.name != ours}

    @cached_property
    def scalars(self) -> frozenset[str]:
        """Stored names of all features but images and masks of any form."""
        return frozenset(
            feature.name
            for ours, feature in self.stored.items()
            if ours != "image/encoded" and not (feature.form != _SAME or ours.endswith("/rle"))
        )

    def apply(
        self, features: Mapping[str, FeatureValue], texts: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, FeatureValue]:
        """Turns the features of one example into the stored ones.

        Args:
            features: by our names; one that is missing stays missing.
            texts: our name of a mask -> the source's own run lengths for it, where they fit the stored frame.

        Returns:
            By stored names.
        """
        found: dict[str, FeatureValue] = {}
        for ours, (name, _, form) in self.stored.items():
            if ours == SIZE and ours not in features:
                found[name] = ints([_number(features[_HEIGHT]), _number(features[_WIDTH])])
            elif ours == ONE_HOT and ours not in features:
                found[name] = floats([float(i in _numbers(features[_LABEL])) for i in range(self.classes)])
            elif ours not in features:
                continue
            elif form == _SAME:
                found[name] = features[ours]
            elif form == _PNG:
                # Eight bits, since decoders spread the 1 of a single bit to 255.
                file = io.BytesIO()
                Image.fromarray(draw(*_frame(features, ours))).save(file, "png")
                found[name] = file.getvalue()
            else:
                # The source's, or ours in the usual dialect; an empty one for an empty mask, as tables have it.
                rows = (texts or {}).get(ours)
                if not rows:
                    runs, height, width = _frame(features, ours)
                    rows = [COLUMN_PAIRS.format(runs, height=height, width=width)]
                found[name] = byte_strings([text.encode() for text in rows])
        return found


def _tf_vision(features: Mapping[str, str], labels: str) -> dict[str, _Stored]:
    del labels
    return {name: _Stored(name, kind, _SAME) for name, kind in features.items()}


def _rle_text(features: Mapping[str, str], labels: str) -> dict[str, _Stored]:
    stored = _tf_vision(features, labels)
    return stored | {name: _Stored(f"{name}_text", "bytes", _RUN_TEXT) for name, _ in _masks(features)}


def _tfds(features: Mapping[str, str], labels: str) -> dict[str, _Stored]:
    stored = {"image/encoded": "image", "image/filename": "image/filename", "image/key": "id"}
    if labels != NONE:
        stored[_LABEL] = "label" if labels == SINGLE else "labels"
    masks = {name: _Stored(f"segmentation_mask/{mask}", "bytes", _PNG) for name, mask in _masks(features)}
    return _only(features, stored) | masks


def _kaggle_flowers(features: Mapping[str, str], labels: str) -> dict[str, _Stored]:
    del labels
    stored = {"image/encoded": "image", "image/key": "id", _LABEL: "class", _TEXT: "label"}
    made = {SIZE: _Stored(SIZE, "int64", _SAME), ONE_HOT: _Stored(ONE_HOT, "float32", _SAME)}
    return _only(features, stored) | made


_PRESETS: dict[str, Callable[[Mapping[str, str], str], dict[str, _Stored]]] = {
    TF_VISION: _tf_vision,
    TFDS: _tfds,
    KAGGLE_FLOWERS: _kaggle_flowers,
    RLE_TEXT: _rle_text,
}


def _only(features: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, _Stored]:
    """Returns those of our features that are in `stored`, and all further ones."""
    further = [name for name in features if name not in COMMON_FEATURES and not _MASK.fullmatch(name)]
    names = {**stored, **dict(zip(further, further, strict=True))}
    return {name: _Stored(theirs, features[name], _SAME) for name, theirs in names.items()}


def _masks(features: Iterable[str]) -> list[tuple[str, str]]:
    """Returns our name of every mask, and its class."""
    found = [(name, _MASK.fullmatch(name)) for name in features]
    return [(name, match["name"]) for name, match in found if match and match["what"] == "rle"]


def _frame(features: Mapping[str, FeatureValue], name: str) -> tuple[Any, int, int]:
    runs = np.asarray(_numbers(features[name]), np.int64).reshape(-1, 2)
    return runs, _number(features[_HEIGHT]), _number(features[_WIDTH])


def _numbers(value: FeatureValue) -> Any:
    values = value.values if isinstance(value, TypedList) else value
    return [values] if isinstance(values, int) else values


def _number(value: FeatureValue) -> int:
    return int(_numbers(value)[0])


def feature_name(header: str) -> str:
    """Returns the name of a column's feature; all but letters, digits, `_`, `.` and `-` becomes `_`."""
    return PREFIX + _NOT_IN_FEATURE_NAMES.sub("_", header).strip("_")
