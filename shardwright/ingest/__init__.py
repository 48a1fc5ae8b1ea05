"""Images and annotations into a dataset: recipe and location, plan, write, commit."""

from shardwright.ingest.inputs import input_fingerprint, resolve_classes
from shardwright.ingest.plan import IngestPlan, PreparedIngest, example_features, plan_ingest
from shardwright.ingest.recipe import INPUT_VARIABLE, IngestRecipe, InputLocation, ingest_recipe, locate
from shardwright.ingest.run import ingest
from shardwright.ingest.write import write_shard

__all__ = [
    "INPUT_VARIABLE",
    "IngestPlan",
    "IngestRecipe",
    "InputLocation",
    "PreparedIngest",
    "example_features",
    "ingest",
    "ingest_recipe",
    "input_fingerprint",
    "locate",
    "plan_ingest",
    "resolve_classes",
    "write_shard",
]
