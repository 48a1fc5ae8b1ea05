"""`blessed` in a compiled pipeline: which dataset that is, its first task finds out when it runs.

On one machine all artifacts lie below a run's folder, where they are found by what they are (`in_force`). Here
`BLESSED.json` tells where the dataset lies that the model in force was evaluated on, and its digest, which must still
be that of what lies there. The digest goes into the recipe that ImageExampleGen is given, so that what is cached was
made with that very dataset. As on one machine, the input that the model in force was made from is the same run again:
what it was kept from then `build.json` tells, and the digests say whether it still is that.

`blessed` in place of a dataset's path: the dataset that the model in force was made from.

One YAML file then serves every month: the first run finds no model in force and divides afresh; a later one keeps old
images where they were and compares new ones with the last good delivery, whatever runs were stopped in between. Which
dataset it was the recipe records by digest. A run of the very input and recipe that the model in force was made from is
the same run again: it takes the dataset that was taken then, so that its cache serves it.
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
from shardwright.fingerprint import canonical_json
from shardwright.ingest.recipe import IngestRecipe, InputLocation
from shardwright.lineage.ancestry import Artifact, Family, read_artifact
from shardwright.lineage.blessing import BLESSING_FILE, DIGEST, PLACE, Blessing, read_blessing
from shardwright.lineage.places import ARTIFACTS, PUSHED, find_artifacts
from shardwright.storage import read_bytes
from shardwright.untrusted import parse_untrusted_json

_DATASET, _INPUT, PREVIOUS = "dataset", "input", "previous"
# The option that changes nothing of what is made.
COPIED = "previous"


def uses_baseline(config: Config) -> list[str]:
    """YAML paths of the options that name the dataset of the model in force."""
    drift = config.gate.drift
    options = {
        COPIED: config.previous,
        "split.previous": config.split.previous,
        "gate.drift.reference": None if drift is None else drift.reference,
    }
    return [path for path, value in options.items() if value == BLESSED]


def run_root(config: Config) -> str:
    """The folder that runs of a configuration live in, absolute."""
    return config.resolve(config.run.root or f"shardwright-runs/{config.name}")


def without_baseline(config: Config) -> Config:
    """The configuration as it is where no model was ever blessed."""
    config = _with(config, None)
    return replace(config, previous=None) if config.previous == BLESSED else config


def without_previous_splits(recipe: Mapping[str, Any]) -> str:
    """A recipe, as canonical JSON, but for the dataset that its splits were kept from."""
    split = {name: value for name, value in recipe.get("split", {}).items() if name != PREVIOUS}
    return canonical_json({**recipe, "split": split})


def resolve_baseline(config: Config, data: str = "", classes: Sequence[str] = ()) -> Config:
    """A configuration in which `blessed` is a path, or nothing where no model was ever blessed.

    Args:
        config: the configuration.
        data: fingerprint of its input, where it is known.
        classes: that were told from the data.

    Raises:
        ConfigError: a model is in force, and its dataset is not in the run's folder.
        DatasetError: what is in force is damaged.
    """
    asked = uses_baseline(config)
    if not asked:
        return config
    root = run_root(config)
    blessing = read_blessing(os.path.join(root, PUSHED))
    found = last = None
    if blessing is not None:
        model = read_artifact(os.path.join(root, PUSHED, blessing.model), whole=False)
        family = Family(place for folder in (ARTIFACTS, PUSHED) for place in find_artifacts(os.path.join(root, folder)))
        found = last = _dataset_of(model, family)
        if found is None:
            raise ConfigError(
                asked[0],
                f"the dataset of the model in force ({model.place}) is not in {root}",
                f"Restore it (`shardwright lineage {model.place}` tells its digest), or name a dataset by its path.",
            )
        shaping = [path for path in asked if path != COPIED]
        if shaping and found.data == data and without_previous_splits(found.recipe) == _fresh(config, classes):
            before = found.parents.get(PREVIOUS)
            found = None if before is None else _known(family.find(PREVIOUS, before), before, shaping[0], root)
    settled = _with(config, None if found is None else found.place)
    return replace(settled, previous=None if last is None else last.place) if config.previous == BLESSED else settled


def _fresh(config: Config, classes: Sequence[str]) -> str:
    """The options of a configuration whose splits are kept from none."""
    return without_previous_splits(IngestRecipe.of(_with(config, None), classes).options())


def _dataset_of(model: Artifact, family: Family) -> Artifact | None:
    transformed = family.find(_DATASET, model.parents.get(_DATASET, ""))
    return None if transformed is None else family.find(_INPUT, transformed.parents.get(_INPUT, ""))


def _known(found: Artifact | None, digest: str, option: str, root: str) -> Artifact:
    if found is None:
        raise ConfigError(
            option,
            f"the dataset {digest[:12]}, which the one in force kept its splits from, is not in {root}",
            "Restore it, or name a dataset by its path.",
        )
    return found


def _with(config: Config, path: str | None) -> Config:
    """The configuration with a path, or none, for every `blessed` that changes what is made."""
    if config.split.previous == BLESSED:
        config = replace(config, split=replace(config.split, previous=path))
    drift = config.gate.drift
    if drift is not None and drift.reference == BLESSED:
        watched = None if path is None else replace(drift, reference=path)
        config = replace(config, gate=replace(config.gate, drift=watched))
    return config


SPLITS, REFERENCE = "split.previous", "gate.drift.reference"
# In `build.json`: where the datasets lay that an ingest was given.
KEPT_FROM = "kept_from"
_FIX = "Name a dataset by its path, or run without it once."


@dataclass(frozen=True)
class BaselineRequest:
    """What a pipeline has to look up.

    Attributes:
        options: YAML paths of the options that say `blessed`.
        push_directory: folder or URL of blessed models.
        drift: `gate.drift` without a reference, as plain values.
        skew: `gate.skew`; with the former it makes one parameter of Report's.
    """

    options: tuple[str, ...]
    push_directory: str
    drift: Mapping[str, Any] = field(default_factory=dict)
    skew: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(config: Config, push_directory: str) -> BaselineRequest | None:
        """What a configuration asks for; `None` where every dataset has a path."""
        options = tuple(uses_baseline(config))
        if not options:
            return None
        drift, skew = (dict(vars(asked)) if asked else {} for asked in (config.gate.drift, config.gate.skew))
        drift.pop("reference", None)
        return BaselineRequest(options, push_directory, drift, skew)

    @staticmethod
    def from_json(text: str) -> BaselineRequest:
        """Reads what `to_json` wrote."""
        raw = parse_untrusted_json(text)
        return BaselineRequest(tuple(raw["options"]), raw["push_directory"], raw["drift"], raw["skew"])

    def to_json(self) -> str:
        """Canonical JSON, for a component's parameter."""
        return canonical_json(vars(self))

    def find(self) -> Artifact | None:
        """The dataset of the model in force; `None` where no model was ever blessed.

        Raises:
            ConfigError: nothing says where it lies, or another one lies there.
            DatasetError: it is gone or damaged, or what is in force is.
        """
        blessing = read_blessing(self.push_directory)
        if blessing is None:
            return None
        file = os.path.join(self.push_directory, BLESSING_FILE)
        place = blessing.examples.get(PLACE, "")
        if not place:
            what = f"{file} does not say where the dataset of the model in force lies"
            raise ConfigError(self.options[0], f"{what}: no compiled pipeline of this version pushed it", _FIX)
        try:
            found = read_artifact(place, whole=False)
        except DatasetError as error:
            raise ConfigError(self.options[0], f"{error} It is the dataset of the model in force", _FIX) from None
        _check_digest(self.options[0], place, found.digest, _digest(blessing))
        return found

    def copied_from(self, found: Artifact) -> str | None:
        """The dataset that images may be copied from, where that is asked for."""
        return found.place if COPIED in self.options else None


@dataclass(frozen=True)
class ResolvedInput:
    """What ImageExampleGen and Report are given where datasets were looked up.

    Attributes:
        recipe: the ingest's options, with the digest of the dataset that splits are kept from.
        location: where the input and that dataset lie.
        drift: Report's parameter; empty where nothing is to be compared.
    """

    recipe: IngestRecipe
    location: InputLocation
    drift: str


def resolve_baseline_at_run(
    asked: BaselineRequest, found: Artifact | None, recipe: IngestRecipe, location: InputLocation, data: str
) -> ResolvedInput:
    """Puts the dataset of the model in force wherever it was asked for.

    Args:
        asked: what is asked for.
        found: that dataset, see `BlessedData.find`.
        recipe: options of the ingest that keeps its splits from none.
        location: where the input lies.
        data: its fingerprint.

    Raises:
        ConfigError: the dataset that the model in force was kept from is not there any more.
    """
    watched = {"skew": asked.skew} if asked.skew else {}
    if found is None:
        return ResolvedInput(recipe, location, canonical_json(watched) if watched else "")
    place, digest, earlier = found.place, found.digest, found.place
    if found.data == data and without_previous_splits(found.recipe) == without_previous_splits(recipe.options()):
        kept = _kept_from(found.place)
        earlier = kept.get(COPIED, "")
        place, digest = kept.get(SPLITS, ""), found.parents.get(PREVIOUS, "")
        if digest and len(asked.options) > (COPIED in asked.options):
            _check_digest(SPLITS, place, _digest_at(place), digest)
    if COPIED in asked.options:
        location = replace(location, earlier=earlier or None)
    if SPLITS in asked.options and digest:
        recipe = replace(recipe, split=replace(recipe.split, previous=digest))
        location = replace(location, previous=place)
    if REFERENCE in asked.options and digest:
        watched["drift"] = {**asked.drift, "location": place, "digest": digest}
    return ResolvedInput(recipe, location, canonical_json(watched) if watched else "")


def baseline_source(location: InputLocation) -> dict[str, dict[str, str]]:
    """What `build.json` says of the datasets that an ingest was given; nothing where there was none."""
    places = {SPLITS: location.previous, COPIED: location.earlier}
    told = {option: place for option, place in places.items() if place is not None}
    return {KEPT_FROM: told} if told else {}


def _kept_from(place: str) -> dict[str, str]:
    try:
        told = parse_untrusted_json(read_bytes(os.path.join(place, BUILD_FILE))).get(KEPT_FROM, {})
        return {str(option): str(where) for option, where in told.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise DatasetError(f"{place}: {BUILD_FILE} cannot be read ({error}). Restore it.") from None


def _digest(blessing: Blessing) -> str:
    return blessing.examples.get(DIGEST, "")


def _digest_at(place: str) -> str:
    try:
        return ImageDataset.open(place).manifest.digest if place else ""
    except DatasetError:
        return ""


def _check_digest(option: str, place: str, found: str, expected: str) -> None:
    if found != expected:
        what = f"{place or 'nowhere'} is not the dataset {expected[:12]} any more that the model in force descends from"
        raise ConfigError(option, what, f"Restore it. {_FIX}")
