"""`blessed` in a compiled pipeline: which dataset that is, its first task finds out when it runs.

On one machine all artifacts lie below a run's folder, where they are found by what they are (`in_force`). Here
`BLESSED.json` tells where the dataset lies that the model in force was evaluated on, and its digest, which must still
be that of what lies there. The digest goes into the recipe that ImageExampleGen is given, so that what is cached was
made with that very dataset. As on one machine, the input that the model in force was made from is the same run again:
what it was kept from then `build.json` tells, and the digests say whether it still is that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shardwright.config import Config
from shardwright.dataset import Dataset
from shardwright.errors import ConfigError, DatasetError
from shardwright.fingerprint import canonical_json
from shardwright.foreign_json import foreign_json
from shardwright.ingest import IngestRecipe, InputLocation
from shardwright.manifest import BUILD_FILE
from shardwright.provenance.ancestry import Artifact, read_artifact
from shardwright.provenance.blessing import BLESSING_FILE, DIGEST, PLACE, Blessing, read_blessing
from shardwright.provenance.in_force import COPIED, PREVIOUS, asks_for_blessed, without_kept_splits
from shardwright.storage import read_bytes

SPLITS, REFERENCE = "split.previous", "gate.drift.reference"
# In `build.json`: where the datasets lay that an ingest was given.
KEPT_FROM = "kept_from"
_FIX = "Name a dataset by its path, or run without it once."


@dataclass(frozen=True)
class BlessedData:
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
    def of(config: Config, push_directory: str) -> BlessedData | None:
        """What a configuration asks for; `None` where every dataset has a path."""
        options = tuple(asks_for_blessed(config))
        if not options:
            return None
        drift, skew = (dict(vars(asked)) if asked else {} for asked in (config.gate.drift, config.gate.skew))
        drift.pop("reference", None)
        return BlessedData(options, push_directory, drift, skew)

    @staticmethod
    def from_json(text: str) -> BlessedData:
        """Reads what `to_json` wrote."""
        raw = foreign_json(text)
        return BlessedData(tuple(raw["options"]), raw["push_directory"], raw["drift"], raw["skew"])

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
class Settled:
    """What ImageExampleGen and Report are given where datasets were looked up.

    Attributes:
        recipe: the ingest's options, with the digest of the dataset that splits are kept from.
        location: where the input and that dataset lie.
        drift: Report's parameter; empty where nothing is to be compared.
    """

    recipe: IngestRecipe
    location: InputLocation
    drift: str


def settle(
    asked: BlessedData, found: Artifact | None, recipe: IngestRecipe, location: InputLocation, data: str
) -> Settled:
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
        return Settled(recipe, location, canonical_json(watched) if watched else "")
    place, digest, earlier = found.place, found.digest, found.place
    if found.data == data and without_kept_splits(found.recipe) == without_kept_splits(recipe.options()):
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
    return Settled(recipe, location, canonical_json(watched) if watched else "")


def kept_from(location: InputLocation) -> dict[str, dict[str, str]]:
    """What `build.json` says of the datasets that an ingest was given; nothing where there was none."""
    places = {SPLITS: location.previous, COPIED: location.earlier}
    told = {option: place for option, place in places.items() if place is not None}
    return {KEPT_FROM: told} if told else {}


def _kept_from(place: str) -> dict[str, str]:
    try:
        told = foreign_json(read_bytes(os.path.join(place, BUILD_FILE))).get(KEPT_FROM, {})
        return {str(option): str(where) for option, where in told.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise DatasetError(f"{place}: {BUILD_FILE} cannot be read ({error}). Restore it.") from None


def _digest(blessing: Blessing) -> str:
    return blessing.examples.get(DIGEST, "")


def _digest_at(place: str) -> str:
    try:
        return Dataset.open(place).manifest.digest if place else ""
    except DatasetError:
        return ""


def _check_digest(option: str, place: str, found: str, expected: str) -> None:
    if found != expected:
        what = f"{place or 'nowhere'} is not the dataset {expected[:12]} any more that the model in force descends from"
        raise ConfigError(option, what, f"Restore it. {_FIX}")
