"""`input`: the images, and with `input.labels` their annotations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from shardwright import label_formats
from shardwright.config.limited_pattern import groups_of
from shardwright.config.options import Section, one_of, option
from shardwright.config.parse_values import may_be_named
from shardwright.errors import ConfigError, Reading
from shardwright.label_formats import LabelFormat
from shardwright.storage.spans import ALL as ALL_SPANS
from shardwright.storage.spans import NEWEST, Choice

INT, FLOAT, TEXT, INTS, FLOATS, TEXTS = "int", "float", "text", "ints", "floats", "texts"
# The type of a column is detected.
AUTO = "auto"
VALUE_TYPES = (INT, FLOAT, TEXT, INTS, FLOATS, TEXTS)
KINDS = {INT: "int64", INTS: "int64", FLOAT: "float32", FLOATS: "float32", TEXT: "bytes", TEXTS: "bytes"}
TFRECORD = "tfrecord"
# Meaning of a mask's value that belongs to no class.
REFUSE = "refuse"
OTHERS = (REFUSE, "background", "ignore")
# What a pixel of a mask is: the number in the file, or what a viewer shows.
STORED, DISPLAYED = "stored", "displayed"
MASK_VALUES = (AUTO, STORED, DISPLAYED)
# The threshold of all classes.
ALL = "*"
# The rules by which polygons become masks.
COCO_RULE, CENTER_RULE = "coco", "center"
POLYGONS = (COCO_RULE, CENTER_RULE)
# What happens to an image with objects that reach beyond it.
REJECT, CLIP = "reject", "clip"
BEYOND_IMAGE = (REJECT, CLIP)
# Roles of columns.
ROLES = ("image", "label", "mask", "image_label", "caption", "key")
NEWEST_WINS, CONFLICT_FAILS, WITH_SPAN = NEWEST, "fail", "with_span"
ON_CONFLICT = (NEWEST_WINS, CONFLICT_FAILS, WITH_SPAN)
UNLISTED = ("auto", "empty", "unlabeled", "reject", "fail")
# Facts about the data that would otherwise be a question, or an error.
NO_OBJECTS, THIS_FRAME, OWN_BOXES = "no_objects", "this_frame", "own_boxes"
ABSENT_IMAGES, OTHER_CLASSES, PREDICTIONS = "absent_images", "other_classes", "predictions"
SAME_MASKS, OTHER_FOLDERS = "same_masks", "other_folders"
FACTS = (NO_OBJECTS, THIS_FRAME, OWN_BOXES, ABSENT_IMAGES, OTHER_CLASSES, PREDICTIONS, SAME_MASKS, OTHER_FOLDERS)
# The JSON Schema of options that the file may have in several forms, which `load` reads.
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
# A number or a color as a text.
_CLASS_ID: dict[str, Any] = {"type": ["integer", "string"], "pattern": "^([+-]?[0-9]{1,18}|#[0-9a-fA-F]{6})$"}
_CLASS = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": _CLASS_ID, "name": {"type": "string"}},
}
_CLASSES = [
    {"type": ["string", "null"]},
    {**_TEXTS, "minItems": 1, "uniqueItems": True},
    {"type": "array", "minItems": 1, "items": _CLASS},
    {"type": "object", "minProperties": 1, "additionalProperties": _CLASS_ID},
    {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": _CLASS_ID["pattern"]},
        "additionalProperties": {"type": "string"},
    },
]
_PATHS = [
    {"type": ["string", "null"]},
    {"const": False},
    {**_TEXTS, "minItems": 1},
    {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
]
_FEATURES = [
    {"enum": ["auto", "none"]},
    _TEXTS,
    {"type": "object", "additionalProperties": {"enum": ["auto", *VALUE_TYPES]}},
]
_COLUMNS = {"type": "object", "propertyNames": {"enum": list(ROLES)}, "additionalProperties": {"type": "string"}}
_MASK_VALUE = {"type": "integer", "minimum": 1, "maximum": 0xFFFF}
_THRESHOLDS = [_MASK_VALUE, {"type": "object", "additionalProperties": _MASK_VALUE}]
_SPAN = {"type": ["string", "integer"], "minimum": 0, "pattern": "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2})$"}
_SPANS = [
    {"enum": [NEWEST, ALL_SPANS]},
    _SPAN,
    {"type": "string", "pattern": "^[0-9]+-[0-9]+$"},
    {"type": "array", "items": _SPAN, "minItems": 2, "maxItems": 2},
]
# What an option is for, where none of the formats that may be meant uses it.
_MEANT_FOR = {
    "columns.key": "is for TFRecords",
    "columns": "{format} has no such column",
    "rle": "there are no run lengths",
    "multi_label": "is for a CSV of classes",
    "separator": "is for a CSV of classes",
    "features": "there is no table with columns",
    "key_regex": "no file names the images",
    "regex": "{value!r} is for file_name, without a path, and mask_images only",
    "unlisted_values": "there are no mask images",
    "values": "is for mask images",
    "threshold": "is for mask images",
    "polygons": "only COCO JSON and files of annotation tools have polygons",
    "beyond_image": "only COCO JSON, Pascal VOC and files of annotation tools have boxes or outlines",
    "boxes": "only COCO JSON and files of annotation tools have boxes that can be asked for",
}


@dataclass(frozen=True)
class RleConfig(Section):
    """The form of run lengths in a table; what is not given is detected from the table's header and values."""

    PATH: ClassVar[str] = "input.labels.rle"

    encoding: str = option(
        "auto",
        choices=("auto", "absolute", "relative", "counts"),
        help="`absolute` starts and lengths, `relative` starts (each from the end of the run before, as in SIIM-ACR), "
        "or COCO's `counts`, as a list or compressed.",
    )
    order: str = option(
        "auto",
        choices=("auto", "column", "row"),
        help="Whether positions count down the `column` or along the `row`.",
    )
    start: int | None = option(None, choices=(0, 1), help="First absolute position, 0 or 1.")

    def check(self, path: str) -> None:
        """Refuses what an encoding does not have."""
        super().check(path)
        if self.start is not None and self.encoding in ("relative", "counts"):
            raise self.error("start", f"{self.start}, but {self.encoding} runs have no first position")
        if self.order == "row" and self.encoding == "counts":
            raise self.error("order", "COCO counts go column by column")

    @property
    def given(self) -> dict[str, str | int]:
        """The options that are not detected."""
        options: dict[str, str | int | None] = {"encoding": self.encoding, "order": self.order, "start": self.start}
        return {name: value for name, value in options.items() if value is not None and value != "auto"}


@dataclass(frozen=True)
class LabelsConfig(Section):
    """The location and the format of the annotations."""

    PATH: ClassVar[str] = "input.labels"

    format: str = option("auto", choices=label_formats.NAMES, help="Format of the annotations; `auto` detects it.")
    path: str | None = option(
        None,
        schema={"anyOf": _PATHS},
        help="Table, JSON file or folder of the annotations, also `gs://` and `s3://`. Several files are a list, a "
        "glob, or a mapping of splits to files.",
    )
    files: Mapping[str, str] = option(
        factory=dict,
        help="Several files of annotations below `path`, with their splits: what a list, a glob or a mapping in `path` "
        "means.",
    )
    columns: Mapping[str, str] = option(
        factory=dict,
        schema=_COLUMNS,
        help="Roles of columns: `{image: photo, label: kind, mask: rle}`. For TFRecords the columns are features, and "
        "`key` names an image.",
    )
    rle: RleConfig = option(factory=RleConfig, help="Form of run lengths in a table.")
    regex: str | None = option(
        None,
        help="Regular expression. For `file_name` it is searched in the path below the image folder and has a group "
        "`label`; without it the label is the part of the file's name before the last `_<number>`. For "
        "`mask_images` it is searched in the mask's path without extension, and has a group `image` and, where a "
        "file has the mask of one class, a group `label`.",
    )
    orientation: str = option(
        "auto",
        choices=("auto", "stored", "displayed"),
        help="Whether masks and boxes belong to the `stored` pixels or to the picture as `displayed`, turned by "
        "Exif. `auto` goes by the stated size if only one fits, else `displayed`.",
    )
    multi_label: bool | None = option(None, help="An image may have several classes; detected by default.")
    separator: str | None = option(
        None, help="Separator of several classes in one field; empty: a field is one class. Detected by default."
    )
    features: Mapping[str, str] = option(
        factory=dict,
        choices=("auto", *VALUE_TYPES),
        schema={"anyOf": _FEATURES},
        help="Further columns that become features `image/meta/<column>`: `auto` (all), `none`, a list, or column -> "
        "type (`auto`, `int`, `float`, `text`, `ints`, `floats`, `texts`). For `numbers` these are the columns of "
        "numbers, all by default.",
    )
    key_regex: str | None = option(
        None,
        help="Regular expression for sets whose rows name images by parts of their paths: searched in the path below "
        "the image folder. The matches of its groups, joined by `_`, are the image's name. For `mask_images` this "
        "is what the group `image` of `regex` must find in the mask's path.",
    )
    boxes: bool = option(False, help="Whether boxes are stored, too.")
    unlisted_values: str = option(
        REFUSE,
        choices=OTHERS,
        help="Mask pixels whose value is not in `input.classes`: an error (`refuse`), `background`, or `ignore` "
        "(left out of loss and metrics).",
    )
    values: str = option(
        AUTO,
        choices=MASK_VALUES,
        help="What a pixel of a mask image is: the `stored` number, such as the index of a palette, or what a viewer "
        "shows (`displayed`): the color of the palette, or gray if its colors are gray. Detected by default.",
    )
    threshold: Mapping[str, int] = option(
        factory=dict,
        schema={"anyOf": _THRESHOLDS},
        help="For masks with soft edges or lossy compression: pixels from this value on are the class. A number "
        "such as 128, or with one class per file, class -> number.",
    )
    polygons: str = option(
        COCO_RULE,
        choices=POLYGONS,
        help="How polygons become masks: `coco`, as `pycocotools` draws them, or `center`, the pixels whose "
        "center is inside.",
    )
    beyond_image: str = option(
        REJECT,
        choices=BEYOND_IMAGE,
        help="Boxes and outlines that reach beyond the image by more than 1 pixel and 0.5 % of its side: `reject`"
        " the image, or `clip` them at the border.",
    )
    confirmed: tuple[str, ...] = option(
        (),
        choices=FACTS,
        help="Facts that you have checked, and that would otherwise stop the run: no image has an object "
        "(`no_objects`); coordinates are of the images that are there, in their frame (`this_frame`); boxes and areas "
        "differ from the outlines next to them (`own_boxes`); annotations or lists name images that are not there "
        "(`absent_images`); the annotations of a split or a relabel have other classes (`other_classes`); objects have "
        "scores, as a model writes them (`predictions`); all images have the same mask of a pixel or two "
        "(`same_masks`); a table has other classes than the folders of its images (`other_folders`).",
    )

    def check(self, path: str) -> None:
        """Refuses options that the formats which may be meant do not use."""
        super().check(path)
        row = label_formats.BY_NAME.get(self.format)
        if row is not None and row.path and self.path is None:
            raise self.error("path", "missing", f"The format {row.name} needs the path of a {row.path}.")
        if row is not None and not row.path and self.path is not None:
            raise self.error("path", f"{self.path!r} is not used by {row.name}")
        if self.files:
            self._check_files(row)
        for role in self.columns:
            one_of(f"{self.PATH}.columns.{role}", role, ROLES)
        meant = list(label_formats.possible(self.format, path=self.path is not None))
        for name in self.given:
            # Without a path and a format, images are more likely than records, but columns are those of records.
            unlikely = self.format == AUTO and not name.startswith("columns.")
            if not any(one.takes(name) and not (unlikely and one.name == TFRECORD) for one in meant):
                raise self._not_used(name, meant)
        self._check_values()

    def confirming(self, fact: str, meaning: str) -> Reading:
        """Returns the reading of an input by which a fact is right, for a question about it."""
        return Reading(meaning, {f"{self.PATH}.confirmed": [*self.confirmed, fact]}, asked=True)

    @property
    def given(self) -> list[str]:
        """Names of the options below `input.labels` that are not the defaults, and depend on the format."""
        names: list[str] = []
        for one in fields(self):
            value = self.rle.given if one.name == "rle" else getattr(self, one.name)
            if one.name in ("columns", "rle"):
                names += [f"{one.name}.{part}" for part in value]
            elif one.name not in ("format", "path", "files", "orientation", "confirmed"):
                names += [one.name] if (bool(value) if isinstance(value, Mapping) else value != one.default) else []
        return names

    def _not_used(self, name: str, meant: Sequence[LabelFormat]) -> ConfigError:
        """Returns the error for an option that none of the formats uses which may be meant."""
        section, path = name.partition(".")[0], f"{self.PATH}.{name}"
        problem = _MEANT_FOR.get(name) or _MEANT_FOR[section]
        if section == "columns" and not any(one.startswith(section) for row in meant for one in row.options):
            problem = "{format} has no columns"
        kind = "a COCO file" if self.format == "coco_json" else self.format
        fix = f"Remove {path}, or give their CSV." if section == "rle" else f"Remove {path}."
        return ConfigError(path, problem.format(format=kind, value=getattr(self, section)), fix)

    def _check_files(self, row: LabelFormat | None) -> None:
        if self.path is None or (row is not None and row.reads in (label_formats.MASKS, label_formats.FILES)):
            problem = f"{self.format} is not in several files" if self.path else "needs the folder of the files"
            raise self.error("files", problem, "Set input.labels.path to the folder alone.")
        for key, name in self.files.items():
            if not name or name.startswith("/") or "://" in name or ".." in name.split("/"):
                problem = f"{name!r} does not lead to a file below input.labels.path"
                raise self.error(f"files.{key}", problem, "Write a path relative to input.labels.path.")

    def _check_values(self) -> None:
        for name, least in self.threshold.items():
            if not 1 <= least <= 0xFFFF:
                path = "input.labels.threshold" + ("" if name == ALL else f".{name}")
                raise ConfigError(path, f"{least} is not a value of a mask", "Use 1 to 65535; 128 is half of 255.")
        if self.separator and self.multi_label is False:
            problem = f"{self.separator!r}, but an image has one class (input.labels.multi_label: false)"
            raise self.error("separator", problem, "Remove input.labels.separator or input.labels.multi_label.")
        if self.separator is not None and any(c.isalnum() or c in "._-" for c in self.separator):
            raise self.error("separator", f"{self.separator!r} may be in a class's name", "Use e.g. '|'.")
        if self.features.get("*", "auto") != "auto":
            raise self.error("features.*", "columns have different types", "Name the columns.")
        if self.key_regex is not None and not groups_of("input.labels.key_regex", self.key_regex):
            raise self.error(
                "key_regex", f"{self.key_regex!r} has no group", r"Write e.g. '(case\d+_day\d+)/scans/(slice_\d+)'."
            )
        if self.regex is not None:
            groups_of("input.labels.regex", self.regex)
            group, example = (
                ("image", "'(?P<image>.+)_mask'") if self.path else ("label", "e.g. '(?P<label>[a-z]+)-[0-9]+'")
            )
            if group not in re.compile(self.regex).groupindex:
                problem = f"{self.regex!r} has no group `{group}`"
                raise self.error("regex", problem, f"Write {example}.")


@dataclass(frozen=True)
class InputConfig(Section):
    """The images and their annotations."""

    PATH: ClassVar[str] = "input"

    images: str = option(
        place=True,
        help="Folder or glob of images, also `gs://` and `s3://`. It may name spans: `{SPAN}`, `{YYYY}-{MM}-{DD}`, "
        "`{VERSION}`.",
    )
    labels: LabelsConfig = option(factory=LabelsConfig)
    classes: Mapping[str, int | None] | None = option(
        None,
        ordered=True,
        schema={"anyOf": _CLASSES},
        help="Names in the order of their labels, names with the numbers that the annotations use, or a JSON or CSV "
        "file of them. Detected by default.",
    )
    exclude: tuple[str, ...] = option(
        (),
        help="Files below `images` to ignore: paths or globs. A folder means everything in it.",
    )
    unlisted_images: str = option(
        "auto",
        choices=UNLISTED,
        help="What becomes of images without annotations: `empty` (no masks), `unlabeled` (no class), `reject`, "
        "or `fail`.",
    )
    span: str = option(
        NEWEST,
        place=True,
        schema={"anyOf": _SPANS},
        help="Spans to read: `newest`, `all`, a number or date, or `[first, last]`.",
    )
    version: str = option(
        NEWEST,
        place=True,
        schema={"anyOf": [{"enum": [NEWEST]}, _SPAN]},
        help="Version of each span to read: `newest` or a number.",
    )
    on_conflict: str = option(
        NEWEST,
        choices=ON_CONFLICT,
        help="If spans have different bytes under one name: the `newest` counts, the run stops (`fail`), or "
        "`with_span` puts the span into every key.",
    )

    def check(self, path: str) -> None:
        """Refuses spans, patterns and classes that cannot be meant."""
        super().check(path)
        Choice.parse("input.span", self.span)
        if not Choice.parse("input.version", self.version).single:
            problem = f"{self.version!r}: one version of a span is read"
            raise self.error("version", problem, "Use newest or a number.")
        if not self.images:
            raise self.error("images", "empty", "Give a folder or a glob of images.")
        for pattern in self.exclude:
            if not pattern.strip("/") or pattern.startswith("/") or ".." in pattern.split("/"):
                problem = f"{pattern!r} does not lead to a file or folder below input.images"
                raise self.error("exclude", problem, "Write a path or a glob relative to that folder.")
        if self.classes is not None and not self.classes:
            raise self.error("classes", "empty", "Name at least one class, or leave the key out.")
        row = label_formats.BY_NAME.get(self.labels.format)
        if self.classes is not None and row is not None and not row.has_classes:
            raise self.error("classes", f"{self.labels.format} contains no classes")
        if self.classes is None and self.labels.unlisted_values != REFUSE:
            problem = f"{self.labels.unlisted_values!r}, but without input.classes every value of a mask is a class"
            raise self.error("labels.unlisted_values", problem, "Give input.classes.")
        for name in self.classes or ():
            if not name.strip() or not may_be_named(name):
                raise self.error("classes", f"{name!r} cannot be part of a feature's name", "Rename the class.")
