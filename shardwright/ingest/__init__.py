"""Images and annotations into a dataset: recipe and location, plan, write, commit."""

from shardwright.ingest.example import example_features, labels_kind
from shardwright.ingest.identify import identify_input, input_fingerprint
from shardwright.ingest.plan import IngestPlan, plan_ingest
from shardwright.ingest.recipe import INPUT_VARIABLE, IngestRecipe, InputLocation, ingest_recipe, locate
from shardwright.ingest.run_ingest import ingest, write_ranges, written_notes
from shardwright.ingest.survey import IngestInput, survey_input
from shardwright.ingest.write_shards import commit_ingest, write_range

__all__ = [
    "INPUT_VARIABLE",
    "IngestInput",
    "IngestPlan",
    "IngestRecipe",
    "InputLocation",
    "commit_ingest",
    "example_features",
    "identify_input",
    "ingest",
    "ingest_recipe",
    "input_fingerprint",
    "labels_kind",
    "locate",
    "plan_ingest",
    "survey_input",
    "write_range",
    "write_ranges",
    "written_notes",
]
