"""The executor of InputResolver: lists and hashes the input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from shardwright.components.runtime.artifacts import Artifacts, flushed_outputs
from shardwright.ingest import IngestRecipe, InputLocation, identify_input, survey_input
from shardwright.ingest.baseline import BaselineRequest, resolve_baseline_at_run
from shardwright.ingest.recipe import absolute_places, location_json
from shardwright.running.progress import print_note, progress
from shardwright.storage.spans import NEWEST

RECIPE = "recipe"
PLACES = "places"
DATA_ROOT = "data_root"
SPAN = "span"
BLESSED = "blessed"
FINGERPRINT = "fingerprint"
LOCATION = "location"
SETTLED_RECIPE, SETTLED_DRIFT = SETTLED = ("settled_recipe", "settled_drift")


class Executor(base_executor.BaseExecutor):
    """Writes location and fingerprint of the input; ImageExampleGen refuses any other content."""

    @flushed_outputs
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Resolves the input.

        Args:
            input_dict: empty.
            output_dict: `fingerprint` (64 hex digits) and `location` (JSON of an `InputLocation`), both strings; where
                `blessed` is given also `settled_recipe` (ImageExampleGen's) and `settled_drift` (Report's).
            exec_properties: see `InputResolver`.

        Raises:
            ShardwrightError: the input, or the dataset of the baseline model, is invalid.
        """
        del input_dict
        places = InputLocation.from_json(exec_properties[PLACES])
        location = replace(absolute_places(exec_properties[DATA_ROOT], places), span=exec_properties[SPAN])
        recipe = IngestRecipe.from_json(exec_properties[RECIPE])
        asked = BaselineRequest.from_json(exec_properties[BLESSED]) if exec_properties.get(BLESSED) else None
        found = None if asked is None else asked.find()
        # Files that this dataset covers are not read again; the fingerprint is the same.
        copied = None if asked is None or found is None else asked.copied_from(found)
        surveyed = survey_input(recipe, location if copied is None else replace(location, earlier=copied))
        for note in surveyed.survey.notes:
            print_note(note)
        with progress(len(surveyed.listing.keys), "hashing the input") as shown:
            fingerprint = identify_input(surveyed, shown).fingerprint
        newest = surveyed.spans.newest
        if location.span == NEWEST and newest is not None:
            location = replace(location, span=str(newest))
        if asked is not None:
            settled = resolve_baseline_at_run(asked, found, recipe, location, fingerprint)
            location = settled.location
            _write(output_dict, SETTLED_RECIPE, settled.recipe.to_json())
            _write(output_dict, SETTLED_DRIFT, settled.drift)
            place = "none yet, since no model was ever blessed" if found is None else found.place
            print_note(f"dataset of the baseline model: {place}")
        _write(output_dict, FINGERPRINT, fingerprint)
        _write(output_dict, LOCATION, location_json(location))


def _write(output_dict: Artifacts, name: str, value: str) -> None:
    artifact_utils.get_single_instance(output_dict[name]).write(value)
