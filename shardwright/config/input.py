"""`input`: the images and their annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.checks import one_of
from shardwright.config.labels import WITHOUT_CLASSES, LabelsConfig
from shardwright.errors import ConfigError

UNLISTED = ("auto", "empty", "unlabelled", "reject", "fail")


@dataclass(frozen=True)
class InputConfig:
    """The images and their annotations.

    `classes` is `None` (told from the data) or an ordered mapping from name to the id the annotations use; a YAML list
    of names stands for ids in the order of the list, with `None` for "the annotations use the names".
    """

    PATH: ClassVar[str] = "input"

    images: str
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    classes: Mapping[str, int | None] | None = None
    unlisted: str = "auto"

    def __post_init__(self) -> None:
        if not self.images:
            raise ConfigError("input.images", "empty", "Give a folder or a glob of images.")
        one_of("input.unlisted", self.unlisted, UNLISTED)
        if self.classes is not None and not self.classes:
            raise ConfigError("input.classes", "empty", "Name at least one class, or leave the key out.")
        if self.classes is not None and self.labels.format in WITHOUT_CLASSES:
            raise ConfigError("input.classes", f"{self.labels.format} holds no classes", "Remove it.")
        for name in self.classes or ():
            if not name.strip() or any(ord(c) < 32 for c in name) or "/" in name:
                raise ConfigError("input.classes", f"{name!r} cannot be part of a feature's name", "Rename the class.")
