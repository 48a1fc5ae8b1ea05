"""`input.labels`: where the annotations are and how they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.checks import one_of
from shardwright.errors import ConfigError

LABEL_FORMATS = (
    *("auto", "class_folders", "file_name", "label_csv", "rle_csv", "coco_json"),
    *("mask_images", "pascal_voc"),
)
# The annotations are a folder of files.
IN_FOLDERS = ("mask_images", "pascal_voc")
WITHOUT_MASKS = ("class_folders", "file_name", "label_csv")


@dataclass(frozen=True)
class LabelsConfig:
    """Where the annotations are and how they are written.

    Run lengths are told from the table's header and values unless these say otherwise: `runs` whether the numbers are
    `absolute` starts (and lengths), `relative` ones (each from the end of the run before, as in SIIM-ACR) or COCO's
    `counts` (list or compressed); `order` whether positions go down the `column` or along the `row`; `base` whether
    absolute starts count from 0 or 1.

    `pattern` is a regular expression with a group `label` for the format `file_name`: searched in the path below the
    image folder. Without it the label is what stands before the last `_<number>` of the file's name. For `mask_images`
    it has a group `image` and, where a file holds one class, a group `label`: searched in the mask's path below its
    folder, without extension.

    `frame` says whether masks and boxes lie on the `stored` pixels or on the `displayed` picture, turned as Exif says;
    `auto`: on what has the mask's own size, where the mask tells one that fits only one of them, else `displayed`.
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

    def __post_init__(self) -> None:
        one_of("input.labels.format", self.format, LABEL_FORMATS)
        if self.format in ("label_csv", "rle_csv", "coco_json") and self.path is None:
            kind = "COCO JSON file" if self.format == "coco_json" else "CSV"
            raise ConfigError("input.labels.path", "missing", f"The format {self.format} needs the path of a {kind}.")
        if self.format in IN_FOLDERS and self.path is None:
            raise ConfigError("input.labels.path", "missing", f"The format {self.format} needs the path of a folder.")
        if self.format in ("class_folders", "file_name") and self.path is not None:
            raise ConfigError("input.labels.path", f"{self.path!r} is not used by {self.format}", "Remove it.")
        if self.pattern is not None:
            self._check_pattern(self.pattern)
        for role in self.columns:
            one_of(f"input.labels.columns.{role}", role, ("image", "label", "mask", "image_label"))
            if self.format in ("coco_json", *IN_FOLDERS):
                kind = "a COCO file" if self.format == "coco_json" else self.format
                raise ConfigError(f"input.labels.columns.{role}", f"{kind} has no columns", "Remove it.")
        one_of("input.labels.runs", self.runs, ("auto", "absolute", "relative", "counts"))
        one_of("input.labels.order", self.order, ("auto", "column", "row"))
        one_of("input.labels.frame", self.frame, ("auto", "stored", "displayed"))
        if self.base not in (None, 0, 1):
            raise ConfigError("input.labels.base", f"{self.base!r} is no first position", "Use 0 or 1.")
        if self.base is not None and self.runs in ("relative", "counts"):
            raise ConfigError("input.labels.base", f"{self.runs} runs have no base", "Remove it.")
        if self.order == "row" and self.runs == "counts":
            raise ConfigError("input.labels.order", "COCO counts go column by column", "Remove it.")
        for name in self.code:
            if self.path is None or self.format in (*WITHOUT_MASKS, *IN_FOLDERS, "coco_json"):
                raise ConfigError(f"input.labels.{name}", "there are no run lengths", "Remove it, or give their CSV.")

    def _check_pattern(self, pattern: str) -> None:
        of_masks = self.path is not None
        if self.format not in ("auto", "mask_images" if of_masks else "file_name"):
            raise ConfigError(
                "input.labels.pattern",
                f"{pattern!r} is for file_name, without a path, and mask_images only",
                "Remove it.",
            )
        try:
            groups = re.compile(pattern).groupindex
        except re.error as error:
            raise ConfigError(
                "input.labels.pattern", f"{pattern!r} is no regular expression ({error})", "Mend it."
            ) from None
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
        """`runs`, `order` and `base`, as far as they are given."""
        given: dict[str, str | int | None] = {"runs": self.runs, "order": self.order, "base": self.base}
        return {name: value for name, value in given.items() if value is not None and value != "auto"}
