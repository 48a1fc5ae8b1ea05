"""`input`: the images and their annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.checks import may_be_named, one_of
from shardwright.config.labels import REFUSE, WITHOUT_CLASSES, LabelsConfig
from shardwright.errors import ConfigError
from shardwright.spans import NEWEST, Choice

NEWEST_WINS, CONFLICT_FAILS, WITH_SPAN = NEWEST, "fail", "with_span"
ON_CONFLICT = (NEWEST_WINS, CONFLICT_FAILS, WITH_SPAN)
UNLISTED = ("auto", "empty", "unlabelled", "reject", "fail")


@dataclass(frozen=True)
class InputConfig:
    """The images and their annotations.

    `classes` is `None` (told from the data) or an ordered mapping from name to the id the annotations use; a YAML list
    of names stands for ids in the order of the list, with `None` for "the annotations use the names".

    Where `images` or `labels.path` name spans (`{SPAN}`, `{YYYY}-{MM}-{DD}`, `{VERSION}`), `span` says which are read:
    the `newest`, `all`, a number (or date), or [first, last]; `version` which version of each. `on_conflict` decides
    about images that several spans deliver with different bytes: the `newest` counts, or `fail`, or `with_span` puts
    the span into the key of every image.
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
            raise ConfigError("input.classes", f"{self.labels.format} holds no classes", "Remove it.")
        if self.classes is None and self.labels.others != REFUSE:
            raise ConfigError("input.labels.others", "classes that are told have no others", "Give input.classes.")
        for name in self.classes or ():
            if not name.strip() or not may_be_named(name):
                raise ConfigError("input.classes", f"{name!r} cannot be part of a feature's name", "Rename the class.")
