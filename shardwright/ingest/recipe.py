"""Where an input lies, and the options that change what is made of it: two things that never mix."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shardwright.config import Config, ImagesConfig, ShardsConfig, SplitConfig
from shardwright.fingerprint import canonical_json

# Of the bytes that this code writes for the same recipe and input: raised whenever they change, so that no cache and no
# staging folder of an older version is taken for ours.
_CODE_FORMAT = 1

# Says where the input lies, as JSON, to a component whose parameters must not.
INPUT_VARIABLE = "SHARDWRIGHT_INPUT"


@dataclass(frozen=True)
class InputLocation:
    """Where an input lies on this machine. In no fingerprint and no cache key.

    Attributes:
        images: absolute folder or glob.
        labels: absolute path of the table of annotations, or `None`.
    """

    images: str
    labels: str | None = None

    @staticmethod
    def from_json(text: str) -> InputLocation:
        """Reads `{"images": ..., "labels": ...}`; `ValueError` or `TypeError` when it is something else."""
        return InputLocation(**json.loads(text))


def locate(config: Config) -> InputLocation:
    """Absolute paths of a configuration's input."""
    labels = config.input.labels.path
    return InputLocation(config.resolve(config.input.images), None if labels is None else config.resolve(labels))


@dataclass(frozen=True)
class IngestRecipe:
    """What an ingest needs to know besides the input.

    Attributes:
        task: `segmentation` or `classification`.
        label_format: `input.labels.format`.
        columns: `input.labels.columns`.
        code: `input.labels.runs`, `order` and `base`, as far as they are given.
        classes: name -> id or `None`, in the order of the indices; `None` to tell them from the data.
        unlisted: `input.unlisted`.
        images: what is checked of images.
        split: shares, salt.
        shards: how many shards.
        rejects_max: share of the inputs that may be rejected. Changes no bytes, so it is not in `options`.
        pattern: `input.labels.pattern`.
    """

    task: str
    label_format: str
    columns: Mapping[str, str]
    code: Mapping[str, str | int]
    classes: Mapping[str, int | None] | None
    unlisted: str
    images: ImagesConfig
    split: SplitConfig
    shards: ShardsConfig
    rejects_max: float
    pattern: str | None = None

    @staticmethod
    def of(config: Config, classes: Sequence[str] | None = None) -> IngestRecipe:
        """The recipe of a configuration.

        Args:
            config: the configuration.
            classes: names that were told from the data, where the configuration gives none.
        """
        told = None if classes is None else dict.fromkeys(classes)
        return IngestRecipe(
            task=config.task,
            label_format=config.input.labels.format,
            columns=config.input.labels.columns,
            code=config.input.labels.code,
            classes=told if config.input.classes is None else config.input.classes,
            unlisted=config.input.unlisted,
            images=config.images,
            split=config.split,
            shards=config.shards,
            rejects_max=config.rejects.max,
            pattern=config.input.labels.pattern,
        )

    def options(self) -> dict[str, Any]:
        """The options that change bytes, as plain values: the `recipe` of the manifest."""
        pattern = {} if self.pattern is None else {"pattern": self.pattern}
        return {
            "code_format": _CODE_FORMAT,
            "task": self.task,
            "labels": {"format": self.label_format, "columns": dict(self.columns), **pattern, **self.code},
            # Pairs, because their order counts and that of a mapping does not.
            "classes": None if self.classes is None else [[name, number] for name, number in self.classes.items()],
            "unlisted": self.unlisted,
            "images": asdict(self.images),
            "split": {**asdict(self.split), "shares": dict(self.split.shares)},
            "shards": {name: value for name, value in asdict(self.shards).items() if value is not None},
        }

    def to_json(self) -> str:
        """Canonical JSON of the whole recipe, for a component's parameter."""
        return canonical_json({"options": self.options(), "rejects_max": self.rejects_max})

    @staticmethod
    def from_json(text: str) -> IngestRecipe:
        """Reads what `to_json` wrote.

        Raises:
            ValueError: another version wrote it.
        """
        raw = json.loads(text)
        options = raw["options"]
        labels = options["labels"]
        if options["code_format"] != _CODE_FORMAT:
            raise ValueError(f"recipe of code format {options['code_format']!r}, this is {_CODE_FORMAT}; compile again")
        return IngestRecipe(
            task=options["task"],
            label_format=labels["format"],
            columns=labels["columns"],
            code={name: value for name, value in labels.items() if name not in ("format", "columns", "pattern")},
            classes=None if options["classes"] is None else dict(options["classes"]),
            unlisted=options["unlisted"],
            images=ImagesConfig(**options["images"]),
            split=SplitConfig(**options["split"]),
            shards=ShardsConfig(**options["shards"]),
            rejects_max=raw["rejects_max"],
            pattern=labels.get("pattern"),
        )


def ingest_recipe(config: Config, classes: Sequence[str]) -> str:
    """The recipe of a configuration and its (given or told) classes as canonical JSON."""
    return IngestRecipe.of(config, classes).to_json()
