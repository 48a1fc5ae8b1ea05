"""Which feature of a tf.train.Example is what: image, class, key, masks, captions.

The names are those that TF Model Garden, the Object Detection API, TFDS, Kaggle and Shardwright write;
`input.labels.columns` names others. A feature is never chosen by its values: where no usual name is there, the error
has the lines to paste.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import shorten
from shardwright.tfrecords.records import DecodedFeature
from shardwright.tfrecords.scan import is_image

IMAGE, LABEL, KEY, MASK, CAPTION = "image", "label", "key", "mask", "caption"
ROLES = (IMAGE, LABEL, KEY, MASK, CAPTION)

# How masks are written, and where their class is stated.
RUNS, TEXTS, IMAGES = "runs", "texts", "images"
BY_NAME, BY_LABEL, BY_VALUE = "name", "label", "value"

OBJECTS = "image/object/"
# The usual names of each role, the first that is there counts.
_IMAGES = ("image/encoded", "image", "image_raw", "img", "jpeg", "jpg", "png", "image/image_data", "image_bytes")
_KEYS = (
    *("image/key", "key", "__key__", "id", "image/filename", "filename", "file_name", "image_name", "image/source_id"),
    *("image/id", "image_id", "path", "image/path", "name"),
)
_CAPTIONS = ("image/caption/text", "image/caption", "image/captions", "caption", "captions")
_MASKS = ("image/segmentation/class/encoded", "segmentation_mask", "image/mask", "mask", "label_mask")
_OBJECT_MASKS = f"{OBJECTS}mask"
# A mask of every class in a separate feature, and how it is written.
_MASKS_BY_NAME = (
    (re.compile(r"image/segmentation/(?P<name>[^/]+)/rle"), RUNS),
    (re.compile(r"image/segmentation/(?P<name>[^/]+)/rle_text"), TEXTS),
    (re.compile(r"segmentation_mask/(?P<name>[^/]+)"), IMAGES),
)
# The number and the name of a class may both be there; two numbers, or two names, in a group are an error.
_LABELS = (
    ("image/class/label", "image/class/text"),
    (
        *("class", "label", "labels", "classes", "target", "category", "image/label", "image/class", "image/labels"),
        *("class_id", "label_id", "category_id", "class_name", "label_name", "category_name", "class_text"),
        *("label_text", "class/label", "class/text"),
    ),
    (f"{OBJECTS}class/label", f"{OBJECTS}class/text"),
)
# Numbers of every image, which are never its class.
_SIZES = frozenset(("height", "width", "depth", "channels"))
_LONGEST_NAME = 200
_SHOWN = 12


class Sampled(NamedTuple):
    """A record that was looked into.

    Attributes:
        where: file, number and offset, for messages.
        features: its features.
    """

    where: str
    features: Mapping[str, DecodedFeature]


@dataclass(frozen=True)
class Roles:
    """Which feature is what; an empty name where none is.

    Attributes:
        image: the encoded image.
        key: what names it.
        label: its class or classes: numbers or names.
        number: numbers of the classes that `label` names, one by one.
        mask: masks; where every class has a separate feature, a pattern with a group `name`.
        form: how they are written: `RUNS`, `TEXTS` or `IMAGES`.
        classed: where the class of a mask is stated: `BY_NAME`, `BY_LABEL` (none: there is one class) or `BY_VALUE`.
        caption: texts about the image.
    """

    image: str
    key: str = ""
    label: str = ""
    number: str = ""
    mask: str = ""
    form: str = ""
    classed: str = ""
    caption: str = ""

    def note(self) -> str:
        """Returns what was detected, for the user."""
        features = {IMAGE: self.image, "class": self.label, "class number": self.number, KEY: self.key}
        features[CAPTION] = self.caption
        shown = [f"{role} from feature {name!r}" for role, name in features.items() if name]
        if self.mask:
            name = self.mask.replace("(?P<name>[^/]+)", "<class>")
            shown.append(f"masks ({self.form}) from feature {name!r}")
        return "tfrecord: " + ", ".join(shown)


def detect_roles(samples: Sequence[Sampled], task: str, columns: Mapping[str, str]) -> Roles:
    """Returns the roles of features.

    Args:
        samples: a few records, at least one.
        task: `segmentation` or `classification`.
        columns: `input.labels.columns`: role -> feature.

    Raises:
        ConfigError: `columns` names a feature that no record has.
        UsageError: no feature has a usual name of an image, or of what the task needs, or two may be it.
    """
    found = _Found(samples)
    for role, name in columns.items():
        if name not in found.names:
            problem = f"{samples[0].where} has no feature {name!r}"
            raise ConfigError(f"input.labels.columns.{role}", problem, f"There are: {found.shown()}.")
    image = columns.get(IMAGE) or found.first(_IMAGES, found.is_image)
    if not image:
        raise found.unnamed("the image, as a file (JPEG, PNG, …; decoded pixels are not read)", IMAGE, found.is_image)
    caption = columns.get(CAPTION) or found.first(_CAPTIONS, found.is_text)
    # A text comes before a number.
    named = found.first(_KEYS, lambda name: found.kind(name) == "bytes" and found.is_key(name))
    key = columns.get(KEY) or named or found.first(_KEYS, found.is_key)
    label, number = (columns[LABEL], "") if LABEL in columns else _label(found, {image, caption})
    if task == "segmentation":
        mask, form, classed = _mask(found, columns)
        if classed == BY_LABEL and mask == _OBJECT_MASKS and LABEL not in columns:
            label, number = _label(found, {image}, _LABELS[-1:])
        return Roles(image, key, label, number, mask, form, classed, caption)
    # If the usual names are there and empty, no record has a class.
    silent = bool(set(_LABELS[0]) & set(found.names))
    if not (label or caption or silent) and found.candidates(found.is_label, {image, key}):
        raise found.unnamed("a class", LABEL, found.is_label, {image, key})
    return Roles(image, key, label, number, caption=caption)


def kind_of(values: DecodedFeature) -> str:
    """Returns `bytes`, `int64` or `float32`; empty for a list without values and kind."""
    if isinstance(values, np.ndarray):
        return values.dtype.name
    return "bytes" if values else ""


class _Found:
    """Features of the samples by name, those that have a value."""

    def __init__(self, samples: Sequence[Sampled]) -> None:
        self.where = samples[0].where
        self.names: dict[str, list[DecodedFeature]] = {}
        for sample in samples:
            for name, values in sample.features.items():
                self.names.setdefault(name, [])
                if len(values):
                    self.names[name].append(values)

    def kind(self, name: str) -> str:
        """Returns the most frequent kind, so that a single bad record decides nothing."""
        kinds = Counter(kind_of(values) for values in self.names.get(name, []))
        return max(kinds, key=lambda kind: (kinds[kind], kind), default="")

    def is_image(self, name: str) -> bool:
        """Returns whether most values are images."""
        lists = self.names.get(name, [])
        return 2 * sum(bool(_bytes(values)) and all(map(is_image, _bytes(values))) for values in lists) > len(lists)

    def is_text(self, name: str) -> bool:
        """Returns whether the values are UTF-8 text."""
        if self.kind(name) != "bytes" or self.is_image(name):
            return False
        return all(is_text(value) for values in self.names[name] for value in _bytes(values))

    def is_class(self, name: str) -> bool:
        """Returns whether values can be classes: whole numbers or short texts."""
        short = (len(value) <= _LONGEST_NAME for values in self.names.get(name, []) for value in _bytes(values))
        return self.kind(name) == "int64" or (self.is_text(name) and all(short))

    def is_label(self, name: str) -> bool:
        """Returns whether a record has one class in it, and the name is not one that means something else."""
        if name.startswith("image/") or name in _SIZES:
            return False
        return self.is_class(name) and all(len(values) == 1 for values in self.names[name])

    def is_key(self, name: str) -> bool:
        """Returns whether values can be keys: one each, all different."""
        lists = self.names.get(name, [])
        if not lists or not self.is_class(name) or any(len(values) != 1 for values in lists):
            return False
        return len({values[0] if isinstance(values, list) else int(values[0]) for values in lists}) == len(lists)

    def first(self, names: Sequence[str], fits: Callable[[str], bool]) -> str:
        """Returns the first of some names that is a feature of a kind, or an empty text."""
        return next((name for name in names if name in self.names and fits(name)), "")

    def candidates(self, fits: Callable[[str], bool], taken: Collection[str] = ()) -> list[str]:
        """Features that may have a role by their values; for messages only."""
        return [name for name in self.names if name not in taken and fits(name)]

    def unnamed(self, what: str, role: str, fits: Callable[[str], bool], taken: Collection[str] = ()) -> UsageError:
        """Returns the error where no feature has a usual name of a role, with the lines to paste."""
        name = next(iter(self.candidates(fits, taken)), "NAME")
        return UsageError(
            f"{self.where}: no feature has a usual name of {what}. There are: {self.shown()}. Name it:\n\n"
            f"  input: {{labels: {{format: tfrecord, columns: {{{role}: {name}}}}}}}\n\n"
            f"In Python: labels=TfRecords({{{role!r}: {name!r}}})."
        )

    def shown(self) -> str:
        """Names with kinds, for messages."""
        if not self.names:
            return "none, since the records are empty"
        kinds = {name: "image" if self.is_image(name) else self.kind(name) or "empty" for name in self.names}
        return shorten([f"{name} ({kind})" for name, kind in kinds.items()], _SHOWN)


def is_text(value: bytes) -> bool:
    """Returns whether bytes are UTF-8 text."""
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _bytes(values: DecodedFeature) -> list[bytes]:
    return values if isinstance(values, list) else []


def _label(found: _Found, taken: Collection[str], groups: Sequence[Sequence[str]] = _LABELS) -> tuple[str, str]:
    """Returns the feature of classes, by name where there is one, and that of their numbers."""
    for group in groups:
        present = [name for name in group if name not in taken and found.is_class(name)]
        numbers = [name for name in present if found.kind(name) == "int64"]
        texts = [name for name in present if found.kind(name) == "bytes"]
        for several in (numbers, texts):
            if len(several) > 1:
                raise UsageError(
                    f"{found.where}: {' and '.join(several)} may be the class. Choose one by input.labels.columns: "
                    f"{{label: {several[0]}}}."
                )
        if present:
            return (*texts, *numbers, "")[0], numbers[0] if texts and numbers else ""
    return "", ""


def _mask(found: _Found, columns: Mapping[str, str]) -> tuple[str, str, str]:
    """Returns the name or pattern of the masks, how they are written, and where their class is stated."""
    if MASK in columns:
        name = columns[MASK]
        if found.kind(name) == "int64":
            return name, RUNS, BY_LABEL
        if found.is_image(name):
            return name, IMAGES, BY_LABEL if LABEL in columns else BY_VALUE
        if found.is_text(name) or not found.names[name]:
            return name, TEXTS, BY_LABEL
        raise ConfigError(
            "input.labels.columns.mask",
            f"{name!r} ({found.kind(name)}) holds neither run lengths nor images",
            f"There are: {found.shown()}.",
        )
    for pattern, form in _MASKS_BY_NAME:
        if any(pattern.fullmatch(name) for name in found.names):
            return pattern.pattern, form, BY_NAME
    if found.is_image(_OBJECT_MASKS) and any(map(found.is_class, _LABELS[-1])):
        return _OBJECT_MASKS, IMAGES, BY_LABEL
    if name := found.first(_MASKS, found.is_image):
        return name, IMAGES, BY_VALUE
    others = {name for name in _IMAGES if name in found.names}
    raise found.unnamed("masks, and the task is segmentation", MASK, found.is_image, others)
