"""What ImageExampleGen reads and how: an ingest as three values that a pipeline can carry and cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardwright.config import Config
from shardwright.ingest.recipe import IngestRecipe, ingest_recipe, locate, location_json
from shardwright.ingest.survey import hash_input, survey_input


@dataclass(frozen=True)
class IngestSource:
    """An ingest as parameters: texts, or values of a task that has not run yet.

    Attributes:
        fingerprint: of the content of images and annotations, 64 hex digits. Other content is refused when it is read.
        recipe: the options that change bytes, as canonical JSON.
        location: where the input is, as JSON; empty where the environment variable `SHARDWRIGHT_INPUT` has it.
    """

    fingerprint: Any
    recipe: Any
    location: Any = ""

    @staticmethod
    def of(config: Config) -> IngestSource:
        """Lists the input of a configuration, reads its annotations and hashes its files: seconds for a gigabyte.

        Raises:
            UsageError: the folder, the table, a column or a class is wrong.
            CheckFailed: nothing matches, or images without annotations are not allowed.
        """
        location = locate(config)
        surveyed = survey_input(IngestRecipe.of(config), location)
        recipe = ingest_recipe(config, surveyed.survey.classes)
        return IngestSource(hash_input(surveyed).fingerprint, recipe, location_json(location))
