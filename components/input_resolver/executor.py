"""The work of InputResolver: lists and hashes the input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import Artifact, artifact_utils

from shardwright.console import progress
from shardwright.ingest import IngestRecipe, InputLocation, hash_input, survey_input
from shardwright.ingest.places import absolute_places, location_json
from shardwright.spans import NEWEST

RECIPE = "recipe"
PLACES = "places"
DATA_ROOT = "data_root"
SPAN = "span"
FINGERPRINT = "fingerprint"
LOCATION = "location"


class Executor(base_executor.BaseExecutor):
    """Says where the input lies and what it holds; ImageExampleGen refuses to read anything else."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Resolves the input.

        Args:
            input_dict: empty.
            output_dict: `fingerprint` (64 hex digits) and `location` (JSON of an `InputLocation`), both strings.
            exec_properties: see `InputResolver`.

        Raises:
            ShardwrightError: something about the input is wrong.
        """
        del input_dict
        places = InputLocation.from_json(exec_properties[PLACES])
        location = replace(absolute_places(exec_properties[DATA_ROOT], places), span=exec_properties[SPAN])
        surveyed = survey_input(IngestRecipe.from_json(exec_properties[RECIPE]), location)
        for note in surveyed.survey.notes:
            print(f"  {note}", flush=True)
        with progress(len(surveyed.listing.keys), "hashing the input") as shown:
            fingerprint = hash_input(surveyed, shown).fingerprint
        newest = surveyed.delivered.newest
        if location.span == NEWEST and newest is not None:
            location = replace(location, span=str(newest))
        artifact_utils.get_single_instance(output_dict[FINGERPRINT]).write(fingerprint)
        artifact_utils.get_single_instance(output_dict[LOCATION]).write(location_json(location))
