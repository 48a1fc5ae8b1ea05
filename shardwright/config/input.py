"""`input`: the images, and with `input.labels` their annotations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.parsing import may_be_named, one_of
from shardwright.errors import ConfigError
from shardwright.storage.spans import NEWEST, Choice

INT, FLOAT, TEXT, INTS, FLOATS, TEXTS = "int", "float", "text", "ints", "floats", "texts"
VALUE_TYPES = (INT, FLOAT, TEXT, INTS, FLOATS, TEXTS)
KINDS = {INT: "int64", INTS: "int64", FLOAT: "float32", FLOATS: "float32", TEXT: "bytes", TEXTS: "bytes"}
TFRECORD = "tfrecord"
LABEL_FORMATS = (
    *("auto", "class_folders", "file_name", "label_csv", "rle_csv", "coco_json"),
    *("mask_images", "pascal_voc", "captions", "none", TFRECORD),
)
# The annotations are a folder of files.
IN_FOLDERS = ("mask_images", "pascal_voc")
WITHOUT_MASKS = ("class_folders", "file_name", "label_csv", "captions", "none")
# Meaning of a mask's value that belongs to no class.
REFUSE = "refuse"
OTHERS = (REFUSE, "background", "ignore")
# No image has a class.
WITHOUT_CLASSES = ("captions", "none")
_IN_FILES = {
    **dict.fromkeys(("label_csv", "rle_csv"), "CSV"),
    "coco_json": "COCO JSON file",
    "captions": "CSV or JSONL",
}
_WITHOUT_PATH = ("class_folders", "file_name", "none", TFRECORD)


@dataclass(frozen=True)
class LabelsConfig:
    """The location and the format of the annotations.

    The form of run lengths is detected from the table's header and values unless it is given here: `runs` are
    `absolute` starts (and lengths), `relative` ones (each from the end of the run before, as in SIIM-ACR) or COCO's
    `counts` (list or compressed); in `order`, positions go down the `column` or along the `row`; `base` is the first
    absolute start, 0 or 1.

    `pattern` is a regular expression with a group `label` for the format `file_name`: searched in the path below the
    image folder. Without it the label is the part of the file's name before the last `_<number>`. For `mask_images` it
    has a group `image` and, where a file has the mask of one class, a group `label`: searched in the mask's path below
    its folder, without extension.

    `others` is the meaning of pixels of mask images whose value is in no class of `input.classes`: an error (`refuse`),
    `background`, or left out of loss and metrics (`ignore`).

    `frame` is the frame of masks and boxes: the `stored` pixels or the `displayed` picture, turned by its Exif
    orientation; `auto`: the one of the mask's own size, if only one of them has it, else `displayed`.

    Tables of classes: `multi` allows several classes an image, which `separator` divides in one field (empty: a field
    is one class); both are detected by default. `features` are further columns that become `image/meta/<column>`:
    header -> type (`auto`, `int`, `float`, `text`, and lists of them), `*` for all of them.

    For `tfrecord` the columns are features of the records: `{image: image/encoded, label: image/class/label, key: id}`.

    `key_pattern` is a regular expression for sets whose rows name images by parts of their paths: searched in the path
    below the image folder; the matches of its groups, joined by `_`, are the image's name. `boxes` keeps the boxes of
    COCO files as features.
    """

    PATH: ClassVar[str] = "input.labels"

    format: str = "auto"
    path: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    runs: str = "auto"
    order: str = "auto"
    base: int | None = None
    pattern: str | None = None
    frame: str = "auto"
    multi: bool | None = None
    separator: str | None = None
    features: Mapping[str, str] = field(default_factory=dict)
    key_pattern: str | None = None
    boxes: bool = False
    others: str = REFUSE

    def __post_init__(self) -> None:
        one_of("input.labels.format", self.format, LABEL_FORMATS)
        if self.format in _IN_FILES and self.path is None:
            kind = _IN_FILES[self.format]
            raise ConfigError("input.labels.path", "missing", f"The format {self.format} needs the path of a {kind}.")
        if self.format in IN_FOLDERS and self.path is None:
            raise ConfigError("input.labels.path", "missing", f"The format {self.format} needs the path of a folder.")
        if self.format in _WITHOUT_PATH and self.path is not None:
            raise ConfigError(
                "input.labels.path", f"{self.path!r} is not used by {self.format}", "Remove input.labels.path."
            )
        if self.pattern is not None:
            self._check_pattern(self.pattern)
        for role in self.columns:
            one_of(f"input.labels.columns.{role}", role, ("image", "label", "mask", "image_label", "caption", "key"))
            if role == "key" and (self.path is not None or self.format not in ("auto", TFRECORD)):
                raise ConfigError("input.labels.columns.key", "is for TFRecords", "Remove input.labels.columns.key.")
            if self.format in ("coco_json", *IN_FOLDERS):
                kind = "a COCO file" if self.format == "coco_json" else self.format
                raise ConfigError(
                    f"input.labels.columns.{role}", f"{kind} has no columns", f"Remove input.labels.columns.{role}."
                )
        one_of("input.labels.runs", self.runs, ("auto", "absolute", "relative", "counts"))
        one_of("input.labels.order", self.order, ("auto", "column", "row"))
        one_of("input.labels.others", self.others, OTHERS)
        in_folders = self.path is not None and self.format in ("auto", *IN_FOLDERS)
        if self.others != REFUSE and not in_folders and self.format != TFRECORD:
            raise ConfigError("input.labels.others", "there are no mask images", "Remove input.labels.others.")
        one_of("input.labels.frame", self.frame, ("auto", "stored", "displayed"))
        if self.base not in (None, 0, 1):
            raise ConfigError("input.labels.base", f"{self.base!r} is not a first position", "Use 0 or 1.")
        if self.base is not None and self.runs in ("relative", "counts"):
            raise ConfigError("input.labels.base", f"{self.runs} runs have no base", "Remove input.labels.base.")
        if self.order == "row" and self.runs == "counts":
            raise ConfigError("input.labels.order", "COCO counts go column by column", "Remove input.labels.order.")
        for name in self.code if self.format != TFRECORD else ():
            if self.path is None or self.format in (*WITHOUT_MASKS, *IN_FOLDERS, "coco_json"):
                raise ConfigError(
                    f"input.labels.{name}",
                    "there are no run lengths",
                    f"Remove input.labels.{name}, or give their CSV.",
                )

        self._check_tables()

    @property
    def of_classes(self) -> list[str]:
        """Names of the given options that only a table of classes has."""
        return [name for name in ("multi", "separator") if getattr(self, name) is not None]

    @property
    def of_tables(self) -> list[str]:
        """Names of the given options that only tables have."""
        columns = [f"columns.{role}" for role in self.columns]
        return [*columns, *self.code, *self.of_classes, *(["features"] if self.features else [])]

    def _check_tables(self) -> None:
        for name in self.of_classes:
            if self.path is None or self.format not in ("auto", "label_csv"):
                raise ConfigError(f"input.labels.{name}", "is for a CSV of classes", f"Remove input.labels.{name}.")
        if self.separator and self.multi is False:
            problem = f"{self.separator!r}, but an image has one class (input.labels.multi: false)"
            raise ConfigError("input.labels.separator", problem, "Remove separator or multi.")
        if self.separator is not None and any(c.isalnum() or c in "._-" for c in self.separator):
            raise ConfigError("input.labels.separator", f"{self.separator!r} may be in a class's name", "Use e.g. '|'.")
        for header, kind in self.features.items():
            one_of(f"input.labels.features.{header}", kind, ("auto", *VALUE_TYPES))
            if self.path is None or self.format in ("coco_json", *IN_FOLDERS):
                raise ConfigError(
                    "input.labels.features", "there is no table with columns", "Remove input.labels.features."
                )
        if self.features.get("*", "auto") != "auto":
            raise ConfigError("input.labels.features.*", "columns have different types", "Name the columns.")
        if self.key_pattern is not None:
            if self.path is None or self.format in IN_FOLDERS:
                raise ConfigError(
                    "input.labels.key_pattern", "no file names the images", "Remove input.labels.key_pattern."
                )
            if not _groups("input.labels.key_pattern", self.key_pattern):
                raise ConfigError(
                    "input.labels.key_pattern",
                    f"{self.key_pattern!r} has no group",
                    r"Write e.g. '(case\d+_day\d+)/scans/(slice_\d+)'.",
                )
        if self.boxes and (self.path is None or self.format not in ("auto", "coco_json")):
            raise ConfigError(
                "input.labels.boxes", "only COCO JSON has boxes that can be asked for", "Remove input.labels.boxes."
            )

    def _check_pattern(self, pattern: str) -> None:
        of_masks = self.path is not None
        if self.format not in ("auto", "mask_images" if of_masks else "file_name"):
            raise ConfigError(
                "input.labels.pattern",
                f"{pattern!r} is for file_name, without a path, and mask_images only",
                "Remove input.labels.pattern.",
            )
        _groups("input.labels.pattern", pattern)
        groups = re.compile(pattern).groupindex
        if of_masks and "image" not in groups:
            raise ConfigError(
                "input.labels.pattern", f"{pattern!r} has no group `image`", "Write '(?P<image>.+)_mask'."
            )
        if not of_masks and "label" not in groups:
            raise ConfigError(
                "input.labels.pattern", f"{pattern!r} has no group `label`", "Write e.g. '(?P<label>[a-z]+)-[0-9]+'."
            )

    @property
    def code(self) -> dict[str, str | int]:
        """The given ones of `runs`, `order` and `base`."""
        given: dict[str, str | int | None] = {"runs": self.runs, "order": self.order, "base": self.base}
        return {name: value for name, value in given.items() if value is not None and value != "auto"}


def _groups(path: str, pattern: str) -> int:
    """Returns the number of groups of a regular expression."""
    try:
        return re.compile(pattern).groups
    except re.error as error:
        raise ConfigError(path, f"{pattern!r} is not a regular expression ({error})", "Fix it.") from None


NEWEST_WINS, CONFLICT_FAILS, WITH_SPAN = NEWEST, "fail", "with_span"
ON_CONFLICT = (NEWEST_WINS, CONFLICT_FAILS, WITH_SPAN)
UNLISTED = ("auto", "empty", "unlabelled", "reject", "fail")


@dataclass(frozen=True)
class InputConfig:
    """The images and their annotations.

    `classes` is `None` (detected) or an ordered mapping from name to the id the annotations use; a YAML list of names
    stands for ids in the order of the list, with `None` for "the annotations use the names".

    Where `images` or `labels.path` name spans (`{SPAN}`, `{YYYY}-{MM}-{DD}`, `{VERSION}`), `span` selects the spans to
    read: the `newest`, `all`, a number (or date), or [first, last]; `version` the version of each. `on_conflict`
    decides about images that several spans contain with different bytes: the `newest` counts, or `fail`, or `with_span`
    puts the span into the key of every image.
    """

    PATH: ClassVar[str] = "input"

    images: str
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    classes: Mapping[str, int | None] | None = None
    unlisted: str = "auto"
    span: str = NEWEST
    version: str = NEWEST
    on_conflict: str = NEWEST

    def __post_init__(self) -> None:
        Choice.parse("input.span", self.span)
        if not Choice.parse("input.version", self.version).single:
            problem = f"{self.version!r}: one version of a span is read"
            raise ConfigError("input.version", problem, "Use newest or a number.")
        one_of("input.on_conflict", self.on_conflict, ON_CONFLICT)
        if not self.images:
            raise ConfigError("input.images", "empty", "Give a folder or a glob of images.")
        one_of("input.unlisted", self.unlisted, UNLISTED)
        if self.classes is not None and not self.classes:
            raise ConfigError("input.classes", "empty", "Name at least one class, or leave the key out.")
        if self.classes is not None and self.labels.format in WITHOUT_CLASSES:
            raise ConfigError("input.classes", f"{self.labels.format} contains no classes", "Remove input.classes.")
        if self.classes is None and self.labels.others != REFUSE:
            problem = f"{self.labels.others!r}, but without input.classes every value of a mask is a class"
            raise ConfigError("input.labels.others", problem, "Give input.classes.")
        for name in self.classes or ():
            if not name.strip() or not may_be_named(name):
                raise ConfigError("input.classes", f"{name!r} cannot be part of a feature's name", "Rename the class.")
