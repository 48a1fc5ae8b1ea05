"""The location of an input and the recipe, the options that change the dataset: two things that never mix.

A compiled pipeline gets the folder of an input when it runs, so locations can also be relative to a folder.
"""

from __future__ import annotations

import json
import posixpath
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from typing import Any

from shardwright.config import (
    Config,
    DuplicatesConfig,
    FeaturesConfig,
    ImagesConfig,
    InputConfig,
    RejectsConfig,
    ShardsConfig,
    SplitConfig,
)
from shardwright.config.canonical import NOWHERE, read_section, recipe_options
from shardwright.errors import UsageError
from shardwright.storage.fingerprint import canonical_json
from shardwright.storage.spans import NEWEST

# Version of the bytes that this code writes for the same recipe and input. It is raised whenever they change, so that
# no cache and no staging folder of an older version is used.
CODE_FORMAT = 7

# Gives the location of the input, as JSON, to a component whose parameters must not contain it.
INPUT_VARIABLE = "SHARDWRIGHT_INPUT"
_SECTIONS = ("input", "images", "duplicates", "split", "shards", "features")
# A name with one of these matches several files, and cannot be part of a folder that is given at run time.
_MARKS = frozenset("*?[{")


@dataclass(frozen=True)
class InputLocation:
    """The location of an input on this machine. It is in no fingerprint and no cache key.

    Attributes:
        images: absolute folder or glob.
        labels: absolute path of the table of annotations, or `None`.
        lists: split -> absolute path of the file that lists its images.
        previous: absolute path of the earlier dataset, or `None`.
        span: which spans are read, where the paths name some: `input.span`.
        version: which version of each: `input.version`.
        earlier: absolute path of the dataset that images may be copied from, `previous`, or `None`.
    """

    images: str
    labels: str | None = None
    lists: Mapping[str, str] = field(default_factory=dict)
    previous: str | None = None
    span: str = NEWEST
    version: str = NEWEST
    earlier: str | None = None

    @staticmethod
    def from_json(text: str) -> InputLocation:
        """Reads `{"images": ..., "labels": ..., ...}`; `ValueError` or `TypeError` when it is something else."""
        return InputLocation(**json.loads(text))


def locate(config: Config) -> InputLocation:
    """Returns the absolute paths of a configuration's input."""
    labels, previous = config.input.labels.path, config.split.keep_from
    return InputLocation(
        config.resolve(config.input.images),
        None if labels is None else config.resolve(labels),
        {split: config.resolve(path) for split, path in sorted((config.split.from_lists or {}).items())},
        None if previous is None else config.resolve(previous),
        config.input.span,
        config.input.version,
        None if config.reuse_from is None else config.resolve(config.reuse_from),
    )


@dataclass(frozen=True)
class IngestRecipe:
    """The sections of the configuration that an ingest obeys, without locations.

    Attributes:
        task: `segmentation` or `classification`.
        input: `input` without locations: `labels.path` is only the file's name, `images` is a dot, `span` and `version`
            have their defaults, and `classes` may have been detected.
        images: `images`.
        duplicates: `duplicates`.
        split: `split` without locations: `lists` are only the files' names, and `previous` is the digest of the
            earlier dataset.
        shards: `shards`.
        features: `features`.
        rejects: `rejects`. Changes no bytes, so it is not in `options`.
    """

    task: str
    input: InputConfig
    images: ImagesConfig
    duplicates: DuplicatesConfig
    split: SplitConfig
    shards: ShardsConfig
    features: FeaturesConfig
    rejects: RejectsConfig

    @staticmethod
    def of(config: Config, classes: Sequence[str] | None = None) -> IngestRecipe:
        """Returns the recipe of a configuration.

        Args:
            config: the configuration.
            classes: names that were detected, where the configuration gives none.

        Raises:
            UsageError: `split.keep_from` is not a dataset.
            DatasetError: it is damaged.
        """
        labels, split = config.input.labels, config.split
        if labels.path is not None:
            labels = replace(labels, path=posixpath.basename(labels.path.rstrip("/")))
        if split.from_lists is not None:
            lists = {name: posixpath.basename(path) for name, path in split.from_lists.items()}
            split = replace(split, from_lists=lists)
        if split.keep_from is not None:
            from shardwright.ingest.previous_splits import named_dataset

            previous = named_dataset("split.keep_from", config.resolve(split.keep_from))
            split = replace(split, keep_from=previous.manifest.digest)
        recipe = IngestRecipe(
            task=config.task,
            input=replace(config.input, images=NOWHERE, labels=labels, span=NEWEST, version=NEWEST),
            images=config.images,
            duplicates=config.duplicates,
            split=split,
            shards=config.shards,
            features=config.features,
            rejects=config.rejects,
        )
        return recipe if classes is None else recipe.with_classes(classes)

    def with_classes(self, classes: Sequence[str]) -> IngestRecipe:
        """Returns the same recipe with the classes that were detected, unless it names some already."""
        if self.input.classes is not None or not classes:
            return self
        return replace(self, input=replace(self.input, classes=dict.fromkeys(classes)))

    def options(self) -> dict[str, Any]:
        """Returns the options that change bytes, as plain values: the `recipe` of the manifest."""
        sections = {name: recipe_options(getattr(self, name)) for name in _SECTIONS}
        return {"code_format": CODE_FORMAT, "task": self.task, **sections}

    def to_json(self) -> str:
        """Returns canonical JSON of the whole recipe, for a component's parameter."""
        return canonical_json({"options": self.options(), "rejects": recipe_options(self.rejects)})

    @staticmethod
    def from_json(text: str) -> IngestRecipe:
        """Reads the JSON of `to_json`.

        Raises:
            ValueError: another version wrote it.
        """
        raw = json.loads(text)
        options = raw["options"]
        if options["code_format"] != CODE_FORMAT:
            raise ValueError(f"recipe of code format {options['code_format']!r}, this is {CODE_FORMAT}; compile again")
        types = typing.get_type_hints(IngestRecipe)
        sections = {**{name: options[name] for name in _SECTIONS}, "rejects": raw["rejects"]}
        parsed = {name: read_section(types[name], values, name) for name, values in sections.items()}
        return IngestRecipe(task=options["task"], **parsed)


def ingest_recipe(config: Config, classes: Sequence[str]) -> str:
    """Returns the recipe of a configuration and its (given or detected) classes as canonical JSON."""
    return IngestRecipe.of(config, classes).to_json()


def relative_places(location: InputLocation) -> tuple[str, InputLocation]:
    """Returns the deepest folder that contains all of an input, and the paths relative to it.

    Args:
        location: absolute paths, all on one machine or in one bucket.

    Raises:
        UsageError: they have no folder in common.
    """
    paths = [location.images, location.labels, location.previous, location.earlier, *location.lists.values()]
    parents = [[*takewhile(_MARKS.isdisjoint, path.split("/")[:-1])] for path in paths if path is not None]
    shared = parents[0]  # The folders of each path, up to the first with a wildcard.
    for parent in parents[1:]:
        same = [a == b for a, b in zip(shared, parent, strict=False)]
        shared = shared[: same.index(False) if False in same else len(same)]
    root = "/".join(shared)
    if root in ("", "gs:", "gs:/", "s3:", "s3:/"):
        shown = ", ".join(path for path in paths if path is not None)
        raise UsageError(f"input: {shown} have no folder in common. Put them into one folder or bucket.")
    return root, _mapped(location, lambda path: path[len(root) + 1 :])


def absolute_places(root: str, location: InputLocation) -> InputLocation:
    """Returns the paths below a folder as absolute ones."""
    return _mapped(location, lambda path: posixpath.join(root, path))


def location_json(location: InputLocation) -> str:
    """Returns canonical JSON for `InputLocation.from_json`."""
    paths = json.loads(json.dumps(asdict(location)))
    if location.earlier is None:
        del paths["earlier"]  # Pipelines without it keep their cache.
    return canonical_json(paths)


def _mapped(location: InputLocation, change: Callable[[str], str]) -> InputLocation:
    def optional(path: str | None) -> str | None:
        return None if path is None else change(path)

    return replace(
        location,
        images=change(location.images),
        labels=optional(location.labels),
        previous=optional(location.previous),
        earlier=optional(location.earlier),
        lists={split: change(path) for split, path in location.lists.items()},
    )
