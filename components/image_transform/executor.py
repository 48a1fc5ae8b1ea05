"""Maps every shard of a dataset to one of the wanted size, analyzes the train split, writes the TransformGraph."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import apache_beam as beam
import tensorflow as tf
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from shardwright.commit import DatasetPlan, commit
from shardwright.dataset import Dataset
from shardwright.errors import CheckFailed
from shardwright.fingerprint import fingerprint, sha256_file
from shardwright.lineage import write_lineage
from shardwright.loader import STATISTICS_FILE
from shardwright.manifest import REJECTED
from shardwright.mirror import local_folder
from shardwright.staging import STAGING_VARIABLE, PlannedShard, Staging, write_text
from shardwright.watch import shards_shown
from shardwright_components.image_transform.analyze import write_transform_graph
from shardwright_components.image_transform.recipe import Recipe, read_recipe
from shardwright_components.image_transform.rewrite import ShardJob, figures_file, write_shard

TRAIN = "train"
_ADDED_FEATURES = {"image/original/height": "int64", "image/original/width": "int64"}
_EXAMPLES = 3


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes a dataset of kind `transform` and the TransformGraph that belongs to it.

    Beam maps over shards: neither pixels nor masks cross a shuffle. Shards are staged under `SHARDWRIGHT_STAGING`, or
    else in the component's own temporary folder, and those that an earlier attempt finished are used again.
    """

    def Do(
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """See the base class.

        Raises:
            CheckFailed: too many records could not be transformed, or none of the train split.
            DatasetError: the input is no finished dataset.
        """
        source = Dataset.open(artifact_utils.get_single_uri(input_dict["examples"]))
        schema = Path(artifact_utils.get_single_uri(input_dict["schema"]), "schema.pbtxt")
        examples = artifact_utils.get_single_instance(output_dict["transformed_examples"])
        graph = artifact_utils.get_single_uri(output_dict["transform_graph"])
        recipe, max_rejects = read_recipe(exec_properties["recipe"])

        plan = plan_transform(source, recipe, max_rejects)
        staging = open_staging(os.environ.get(STAGING_VARIABLE) or self._get_tmp_dir(), plan)
        with staging.locked():
            self._write_shards(source, plan, staging, recipe)
            train = [planned for planned in plan.shards if planned.split == TRAIN]
            _check_train(staging, train)
            figures = [figures_file(staging, planned) for planned in train]
            scratch = str(staging.path("tft"))
            statistics = write_transform_graph(
                self._make_beam_pipeline, figures, graph, scratch, recipe, plan.task, plan.classes
            )
            manifest = commit(staging, plan, examples.uri, {"runner": "beam"})

        text = json.dumps(statistics, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
        for folder in (graph, examples.uri):
            write_text(Path(folder, STATISTICS_FILE), text)
        parents = {"examples": source.manifest.digest, "schema": sha256_file(schema)}
        identity = {"kind": "transform_graph", "recipe": plan.recipe, "parent": plan.parent}
        write_lineage(
            graph, kind="transform_graph", fingerprint=fingerprint(identity), parents=parents, recipe=plan.recipe
        )
        examples.split_names = artifact_utils.encode_split_names(list(manifest.splits))
        # file_format stays unset: TFX knows no value for TFRecords that are not compressed.
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        examples.set_string_custom_property("dataset_fingerprint", manifest.fingerprint)
        examples.set_string_custom_property("dataset_digest", manifest.digest)

    def _write_shards(self, source: Dataset, plan: DatasetPlan, staging: Staging, recipe: Recipe) -> None:
        files = {shard.path: shard.file for split in source.splits for shard in source.shards(split)}
        jobs = [
            ShardJob(staging, planned, files[shard.path], recipe, plan.task, plan.classes)
            for planned, shard in zip(plan.shards, source.manifest.shards, strict=True)
        ]
        shown = shards_shown(staging, plan.shards, "transforming shards")
        with shown, self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Shards" >> beam.Create(jobs)
                # Spreads the jobs over the workers; they are a few hundred bytes each.
                | "Spread" >> beam.Reshuffle()
                | "Write" >> beam.Map(write_shard)
            )


def open_staging(root: str, plan: DatasetPlan) -> Staging:
    """The staging folder of a plan, one a TensorFlow: re-encoded pixels are promised to be equal within one only.

    It is on this machine also where `root` is on a bucket: figures of the pixels lie beside the shards.
    """
    return Staging.open(os.path.join(local_folder(root), f"tensorflow-{tf.__version__}"), plan.fingerprint)


def plan_transform(source: Dataset, recipe: Recipe, max_rejects: float) -> DatasetPlan:
    """Plans the transformed dataset: a shard for every shard, an input for every record."""
    manifest = source.manifest
    totals = {split: len(source.shards(split)) for split in source.splits}
    numbers = dict.fromkeys(totals, 0)
    planned = []
    for shard in manifest.shards:
        planned.append(PlannedShard(shard.split, numbers[shard.split], totals[shard.split]))
        numbers[shard.split] += 1
    return DatasetPlan(
        kind="transform",
        task=manifest.task,
        classes=manifest.classes,
        recipe=recipe.to_dict(),
        parent=manifest.digest,
        features={**manifest.features, **_ADDED_FEATURES},
        inputs=sum(shard.records for shard in manifest.shards),
        shards=tuple(planned),
        max_rejects=max_rejects,
        labels=manifest.labels,
    )


def _check_train(staging: Staging, train: list[PlannedShard]) -> None:
    results = [staging.result(planned) for planned in train]
    if sum(result.info.records for result in results if result is not None):
        return
    rejected = [row for row in map(json.loads, staging.ledger_lines(train)) if row["status"] == REJECTED]
    shown = "".join(f"\n  {row['key']}: {row['code']}: {row['reason']}" for row in rejected[:_EXAMPLES])
    raise CheckFailed(
        f"The split {TRAIN!r} has no image left to train on: {len(rejected)} were rejected. Mend the input or change "
        f"the split.{' The first:' if shown else ''}{shown}"
    )
