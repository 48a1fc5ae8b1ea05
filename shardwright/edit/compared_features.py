"""Compares the features of two records besides the image, its classes and its masks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shardwright.dataset.example_view import ExampleReader, ExampleView
from shardwright.dataset.feature_presets import ONE_HOT, SIZE
from shardwright.dataset.manifest import AREA, IGNORED, RLE, Manifest, mask_feature
from shardwright.images.boxes import LABEL, TEXT
from shardwright.storage.checksum import ALGORITHMS, image_feature
from shardwright.tfrecords.records import DecodedFeature

# Compared as the image and as its classes.
_COMPARED = frozenset(("image/encoded", "image/key", "image/class/label", "image/class/text"))
# Features that follow from the image differ if the image does.
_OF_IMAGE = (
    *("image/format", "image/height", "image/width", "image/channels", "image/orientation", SIZE),
    *map(image_feature, ALGORITHMS),
    *("image/quality/", "image/hash/"),
)
# Numbers of classes, which mean the same only where both datasets have the same classes.
_OF_CLASSES = frozenset((ONE_HOT, "image/class/one_hot", "image/class/multi_hot"))
_LONGEST = 80


class ComparedFeatures:
    """Compares the features of two datasets by our own names.

    Args:
        one: the earlier.
        other: the later.

    Attributes:
        only: names of those that the one stores and the other does not, or in another form, and the reverse.
    """

    def __init__(self, one: Manifest, other: Manifest) -> None:
        runs = all(ExampleReader(manifest).runs is not None for manifest in (one, other))
        names = []
        for manifest in (one, other):
            ours = {theirs: name for name, theirs in manifest.names.items()}
            kinds = {ours.get(name, name): kind for name, kind in manifest.features.items()}
            masks = {mask_feature(name, what) for name in (*manifest.classes, IGNORED) for what in (RLE, AREA)}
            names.append({name: kind for name, kind in kinds.items() if not (runs and name in masks)})
        both = names[0].items() & names[1].items()
        self.only = _missing(names[0], names[1]), _missing(names[1], names[0])
        skipped = set(_COMPARED)
        if one.classes != other.classes:
            skipped |= _OF_CLASSES | ({LABEL} if (TEXT, "bytes") in both else set())
        self._names = sorted(name for name, _ in both if name not in skipped)
        self._stored = [(name, one.stored(name), other.stored(name)) for name in self._names]

    def differing(self, one: ExampleView, other: ExampleView, *, same_image: bool) -> Iterator[tuple[str, str, str]]:
        """Yields name and both values, for messages, of each feature that differs."""
        for name, first, second in self._stored:
            if not same_image and name.startswith(_OF_IMAGE):
                continue
            values = one.example.get(first), other.example.get(second)
            if not _equal(*values):
                yield name, _shown(values[0]), _shown(values[1])


def _missing(own: dict[str, str], other: dict[str, str]) -> list[str]:
    """Returns the features that the other dataset lacks, with their kind where the other has them in another form."""
    lacked = sorted(own.items() - other.items())
    return [f"{name} ({kind})" if name in other else name for name, kind in lacked]


def _equal(one: DecodedFeature | None, other: DecodedFeature | None) -> bool:
    if one is None or other is None or not len(one) or not len(other):
        return not _length(one) and not _length(other)
    if isinstance(one, list) or isinstance(other, list):
        return isinstance(one, list) and isinstance(other, list) and one == other
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _length(values: DecodedFeature | None) -> int:
    return 0 if values is None else len(values)


def _shown(values: DecodedFeature | None) -> str:
    if values is None or not len(values):
        return "none"
    if isinstance(values, list):
        text = ", ".join(value[:_LONGEST].decode("utf-8", "replace") for value in values[:_LONGEST])
    else:
        listed = values[:_LONGEST].tolist()
        text = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in listed)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
