"""`blessed` in place of a dataset's path: the dataset that the current blessed model was trained on, the baseline.

One YAML file then serves every month. The first run finds no blessed model and divides images from scratch. A later run
keeps old images in their splits and compares new ones with the last good input, even if other runs were stopped in
between. The recipe records the digest of that dataset.

A run with the same input and recipe as the baseline is the same run again. It uses the dataset that the baseline used,
so that its cache applies.

On one machine all artifacts are below the run's folder, where `resolve_baseline` finds them by digest. In a compiled
pipeline the first task resolves `blessed` when it runs (`resolve_baseline_at_run`): `BLESSED.json` contains location
and digest of the dataset that the blessed model was evaluated on, and `build.json` of that dataset the one that it used
itself. The digests prove that neither has changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shardwright.config import Config
from shardwright.config.trainer import BLESSED
from shardwright.dataset.manifest import BUILD_FILE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, DatasetError
from shardwright.ingest.recipe import IngestRecipe, InputLocation
from shardwright.lineage.ancestry import ARTIFACTS, PUSHED, Artifact, Family, find_artifacts, read_artifact
from shardwright.lineage.blessing import BLESSING_FILE, DIGEST, PLACE, read_blessing
from shardwright.storage import is_remote, read_bytes
from shardwright.storage.fingerprint import canonical_json
from shardwright.storage.paths import real_path
from shardwright.untrusted.json_text import parse_untrusted_json

_DATASET, _INPUT, PREVIOUS = "dataset", "input", "previous"
# The option that does not change the new dataset.
COPIED = "reuse_from"
# The key of `split` in a recipe with the digest of the dataset that splits are kept from.
_KEPT = "keep_from"
SPLITS, REFERENCE = "split.keep_from", "gate.drift.reference"
# In `build.json`: locations of the datasets that an ingest was given.
KEPT_FROM = "kept_from"
_FIX = "Name a dataset by its path, or run without it once."


def uses_baseline(config: Config) -> list[str]:
    """Returns the YAML paths of the options that name the baseline dataset."""
    drift = config.gate.drift
    options = {
        COPIED: config.reuse_from,
        "split.keep_from": config.split.keep_from,
        "gate.drift.reference": None if drift is None else drift.reference,
    }
    return [path for path, value in options.items() if value == BLESSED]


def refuse_baseline(path: str, value: str | None) -> None:
    """Refuses `blessed` where no folder of pushed models is known.

    Args:
        path: YAML path of the option.
        value: its value.

    Raises:
        ConfigError: it is `blessed`.
    """
    if value == BLESSED:
        works = "Use `shardwright run` or `shardwright compile` with a configuration"
        raise ConfigError(path, f"{BLESSED!r} needs a push folder", f"{works}, or give the path of a dataset.")


def run_root(config: Config) -> str:
    """Returns the absolute folder of the runs of a configuration."""
    return config.resolve(config.run.root or f"shardwright-runs/{config.name}")


def push_directory_of(config: Config) -> str:
    """Returns the absolute folder of blessed models of the runs of a configuration on this machine."""
    return os.path.join(run_root(config), PUSHED)


def without_baseline(config: Config) -> Config:
    """Returns the configuration as it is used while no model is blessed."""
    config = _with(config, None)
    return replace(config, reuse_from=None) if config.reuse_from == BLESSED else config


def without_previous_splits(recipe: Mapping[str, Any]) -> str:
    """Returns a recipe as canonical JSON, without the dataset that its splits were kept from."""
    split = {name: value for name, value in recipe.get("split", {}).items() if name != _KEPT}
    return canonical_json({**recipe, "split": split})


def resolve_baseline(config: Config, data: str = "", classes: Sequence[str] = ()) -> Config:
    """Replaces `blessed` in a configuration by a path, or by nothing where no model was ever blessed.

    Args:
        config: the configuration.
        data: fingerprint of its input, where it is known.
        classes: the classes that were detected.

    Raises:
        ConfigError: a model is blessed, and its dataset is not in the run's folder.
        DatasetError: the model or its dataset is damaged.
    """
    asked = uses_baseline(config)
    if not asked:
        return config
    root = run_root(config)
    blessing = read_blessing(push_directory_of(config))
    found = last = None
    if blessing is not None:
        model = read_artifact(os.path.join(root, PUSHED, blessing.model), whole=False)
        family = Family(place for folder in (ARTIFACTS, PUSHED) for place in find_artifacts(os.path.join(root, folder)))
        transformed = family.find(_DATASET, model.parents.get(_DATASET, ""))
        found = last = None if transformed is None else family.find(_INPUT, transformed.parents.get(_INPUT, ""))
        if found is None:
            raise ConfigError(
                asked[0],
                f"the dataset of the blessed model ({model.place}) is not in {root}",
                f"Restore it (`shardwright lineage {model.place}` shows its digest), or name a dataset by its path.",
            )
        shaping = [path for path in asked if path != COPIED]
        # The options without a dataset that splits are kept from.
        fresh = without_previous_splits(IngestRecipe.of(_with(config, None), classes).options())
        if shaping and found.data == data and without_previous_splits(found.recipe) == fresh:
            before = found.parents.get(PREVIOUS)
            found = None if before is None else family.find(PREVIOUS, before)
            if before is not None and found is None:
                raise ConfigError(
                    shaping[0],
                    f"the dataset {before[:12]}, which the baseline kept its splits from, is not in {root}",
                    "Restore it, or name a dataset by its path.",
                )
    resolved = _with(config, None if found is None else found.place)
    return (
        replace(resolved, reuse_from=None if last is None else last.place) if config.reuse_from == BLESSED else resolved
    )


def _with(config: Config, path: str | None) -> Config:
    """Replaces every `blessed` that changes the new dataset by a path, or by nothing."""
    if config.split.keep_from == BLESSED:
        config = replace(config, split=replace(config.split, keep_from=path))
    drift = config.gate.drift
    if drift is not None and drift.reference == BLESSED:
        watched = None if path is None else replace(drift, reference=path)
        config = replace(config, gate=replace(config.gate, drift=watched))
    return config


@dataclass(frozen=True)
class BaselineRequest:
    """The options of a pipeline that need the baseline.

    Attributes:
        options: YAML paths of the options that are `blessed`.
        push_directory: folder or URL of blessed models.
        drift: `gate.drift` without a reference, as plain values.
        skew: `gate.skew`; together with `drift` it is one parameter of Report.
    """

    options: tuple[str, ...]
    push_directory: str
    drift: Mapping[str, Any] = field(default_factory=dict)
    skew: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(config: Config, push_directory: str) -> BaselineRequest | None:
        """Returns the request of a configuration; `None` where every dataset has a path."""
        options = tuple(uses_baseline(config))
        if not options:
            return None
        drift, skew = (dict(vars(asked)) if asked else {} for asked in (config.gate.drift, config.gate.skew))
        drift.pop("reference", None)
        return BaselineRequest(options, push_directory, drift, skew)

    @staticmethod
    def from_json(text: str) -> BaselineRequest:
        """Reads the JSON of `to_json`."""
        raw = parse_untrusted_json(text)
        return BaselineRequest(tuple(raw["options"]), raw["push_directory"], raw["drift"], raw["skew"])

    def to_json(self) -> str:
        """Returns canonical JSON, for a component's parameter."""
        return canonical_json(vars(self))

    def find(self) -> Artifact | None:
        """Returns the dataset of the blessed model; `None` where no model was ever blessed.

        Raises:
            ConfigError: its location is unknown, or another dataset is there.
            DatasetError: the dataset or the model is missing or damaged.
        """
        blessing = read_blessing(self.push_directory)
        if blessing is None:
            return None
        file = os.path.join(self.push_directory, BLESSING_FILE)
        path = blessing.examples.get(PLACE, "")
        if not path:
            what = f"{file} does not contain the location of the blessed model's dataset"
            raise ConfigError(self.options[0], f"{what}: no compiled pipeline of this version pushed the model", _FIX)
        try:
            found = read_artifact(path, whole=False)
        except DatasetError as error:
            raise ConfigError(self.options[0], f"{error} It is the dataset of the blessed model", _FIX) from None
        _check_digest(self.options[0], path, found.digest, blessing.examples.get(DIGEST, ""))
        return found

    def copied_from(self, found: Artifact) -> str | None:
        """Returns the dataset that images may be copied from, if `previous` is `blessed`."""
        return found.place if COPIED in self.options else None


@dataclass(frozen=True)
class ResolvedInput:
    """The parameters of ImageExampleGen and Report after the baseline was found.

    Attributes:
        recipe: the ingest's options, with the digest of the dataset that splits are kept from.
        location: of the input and of that dataset.
        drift: Report's parameter; empty where nothing is to be compared.
    """

    recipe: IngestRecipe
    location: InputLocation
    drift: str


def resolve_baseline_at_run(
    asked: BaselineRequest, found: Artifact | None, recipe: IngestRecipe, location: InputLocation, data: str
) -> ResolvedInput:
    """Sets the baseline dataset in every option that requests it.

    Args:
        asked: the request.
        found: that dataset, see `BaselineRequest.find`.
        recipe: options of the ingest without a dataset that splits are kept from.
        location: of the input.
        data: its fingerprint.

    Raises:
        ConfigError: the dataset that the baseline kept its splits from is gone.
    """
    watched = {"skew": asked.skew} if asked.skew else {}
    if found is None:
        return ResolvedInput(recipe, location, canonical_json(watched) if watched else "")
    path, digest, earlier = found.place, found.digest, found.place
    if found.data == data and without_previous_splits(found.recipe) == without_previous_splits(recipe.options()):
        kept = _kept_from(found.place)
        earlier = kept.get(COPIED, "")
        path, digest = kept.get(SPLITS, ""), found.parents.get(PREVIOUS, "")
        if digest and len(asked.options) > (COPIED in asked.options):
            _check_digest(SPLITS, path, _digest_at(path), digest)
    if COPIED in asked.options:
        location = replace(location, earlier=earlier or None)
    if SPLITS in asked.options and digest:
        recipe = replace(recipe, split=replace(recipe.split, keep_from=digest))
        location = replace(location, previous=path)
    if REFERENCE in asked.options and digest:
        watched["drift"] = {**asked.drift, "location": path, "digest": digest}
    return ResolvedInput(recipe, location, canonical_json(watched) if watched else "")


def baseline_source(location: InputLocation, out: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Returns the entry of `build.json` on the datasets that an ingest was given; empty where there was none.

    Args:
        location: of the input and of these datasets.
        out: the dataset that `build.json` is of; paths on this machine are relative to it.
    """
    paths = {SPLITS: location.previous, COPIED: location.earlier}
    kept = {option: _from(str(out), path) for option, path in paths.items() if path is not None}
    return {KEPT_FROM: kept} if kept else {}


def _from(folder: str, path: str) -> str:
    if is_remote(path) or is_remote(folder):
        return path
    return os.path.relpath(real_path(path), real_path(folder))


def _kept_from(path: str) -> dict[str, str]:
    try:
        kept = parse_untrusted_json(read_bytes(os.path.join(path, BUILD_FILE))).get(KEPT_FROM, {})
        return {str(option): _at(path, str(where)) for option, where in kept.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise DatasetError(f"{path}: {BUILD_FILE} cannot be read ({error}). Restore it.") from None


def _at(folder: str, path: str) -> str:
    """Returns the path that `_from` made relative; earlier versions stored absolute ones."""
    if not path or is_remote(path) or os.path.isabs(path):
        return path
    return os.path.normpath(os.path.join(real_path(folder), path))


def _digest_at(path: str) -> str:
    try:
        return ImageDataset.open(path).manifest.digest if path else ""
    except DatasetError:
        return ""


def _check_digest(option: str, path: str, found: str, expected: str) -> None:
    if found != expected:
        what = f"{path or '(no path)'} is no longer the dataset {expected[:12]}, from which the blessed model was made"
        raise ConfigError(option, what, f"Restore it. {_FIX}")
