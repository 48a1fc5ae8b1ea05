"""`blessed` in place of a dataset's path: the dataset that the model in force was made from.

One YAML file then serves every month: the first run finds no model in force and divides afresh; a later one keeps old
images where they were and compares new ones with the last good delivery, whatever runs were stopped in between. Which
dataset it was the recipe records by digest. A run of the very input and recipe that the model in force was made from is
the same run again: it takes the dataset that was taken then, so that its cache serves it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardwright.config import Config
from shardwright.config.trainer import BLESSED
from shardwright.errors import ConfigError
from shardwright.fingerprint import canonical_json
from shardwright.ingest import IngestRecipe
from shardwright.provenance.ancestry import Artifact, Family, read_artifact
from shardwright.provenance.artifact_places import ARTIFACTS, PUSHED, places_below
from shardwright.provenance.blessing import read_blessing

_DATASET, _INPUT, PREVIOUS = "dataset", "input", "previous"
# The option that changes nothing of what is made.
COPIED = "previous"


def asks_for_blessed(config: Config) -> list[str]:
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


def without_blessed(config: Config) -> Config:
    """The configuration as it is where no model was ever blessed."""
    config = _with(config, None)
    return replace(config, previous=None) if config.previous == BLESSED else config


def without_kept_splits(recipe: Mapping[str, Any]) -> str:
    """A recipe, as canonical JSON, but for the dataset that its splits were kept from."""
    split = {name: value for name, value in recipe.get("split", {}).items() if name != PREVIOUS}
    return canonical_json({**recipe, "split": split})


def settle(config: Config, data: str = "", classes: Sequence[str] = ()) -> Config:
    """A configuration in which `blessed` is a path, or nothing where no model was ever blessed.

    Args:
        config: the configuration.
        data: fingerprint of its input, where it is known.
        classes: that were told from the data.

    Raises:
        ConfigError: a model is in force, and its dataset is not in the run's folder.
        DatasetError: what is in force is damaged.
    """
    asked = asks_for_blessed(config)
    if not asked:
        return config
    root = run_root(config)
    blessing = read_blessing(os.path.join(root, PUSHED))
    found = last = None
    if blessing is not None:
        model = read_artifact(os.path.join(root, PUSHED, blessing.model), whole=False)
        family = Family(place for folder in (ARTIFACTS, PUSHED) for place in places_below(os.path.join(root, folder)))
        found = last = _dataset_of(model, family)
        if found is None:
            raise ConfigError(
                asked[0],
                f"the dataset of the model in force ({model.place}) is not in {root}",
                f"Restore it (`shardwright lineage {model.place}` tells its digest), or name a dataset by its path.",
            )
        shaping = [path for path in asked if path != COPIED]
        if shaping and found.data == data and without_kept_splits(found.recipe) == _fresh(config, classes):
            before = found.parents.get(PREVIOUS)
            found = None if before is None else _known(family.find(PREVIOUS, before), before, shaping[0], root)
    settled = _with(config, None if found is None else found.place)
    return replace(settled, previous=None if last is None else last.place) if config.previous == BLESSED else settled


def _fresh(config: Config, classes: Sequence[str]) -> str:
    """The options of a configuration whose splits are kept from none."""
    return without_kept_splits(IngestRecipe.of(_with(config, None), classes).options())


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
