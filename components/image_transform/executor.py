"""Maps every shard of a dataset to one of the wanted size, analyzes the train split, writes the TransformGraph."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import tensorflow as tf
import tensorflow_transform.beam as tft_beam
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from shardwright.commit import DatasetPlan, commit
from shardwright.config.transform import TextConfig
from shardwright.dataset import Dataset
from shardwright.errors import CheckFailed, DatasetError
from shardwright.fingerprint import fingerprint, sha256_file
from shardwright.lineage import write_lineage
from shardwright.loader import STATISTICS_FILE
from shardwright.manifest import MASKS, REJECTED
from shardwright.mirror import local_folder
from shardwright.presets import StoredFeatures
from shardwright.staging import STAGING_VARIABLE, PlannedShard, Staging
from shardwright.watch import shards_shown
from shardwright.whole_files import write_text
from shardwright_components.image_transform import post
from shardwright_components.image_transform.analyze import GraphPlan, read_sums, write_transform_graph
from shardwright_components.image_transform.as_ingested import ingested_options
from shardwright_components.image_transform.features import stored_features
from shardwright_components.image_transform.figures import figures_file, one_size
from shardwright_components.image_transform.recipe import Recipe, read_recipe
from shardwright_components.image_transform.rewrite import ShardJob, write_shard
from shardwright_components.image_transform.summary import statistics
from shardwright_components.image_transform.text import Text, write_vocabularies

TRAIN = "train"
_EXAMPLES = 3


class TransformPlan(NamedTuple):
    """What a run will do.

    Attributes:
        dataset: the dataset that will be written.
        recipe: options that change bytes.
        stored: how features are stored.
        texts: feature -> what becomes of its texts.
    """

    dataset: DatasetPlan
    recipe: Recipe
    stored: StoredFeatures
    texts: Mapping[str, TextConfig]

    @property
    def train(self) -> list[PlannedShard]:
        """The shards that are analyzed."""
        return [planned for planned in self.dataset.shards if planned.split == TRAIN]


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes a dataset of kind `transform`, the TransformGraph that belongs to it, its statistics and its schema.

    Beam maps over shards: neither pixels nor masks cross a shuffle. Shards are staged under `SHARDWRIGHT_STAGING`, or
    else in the component's own temporary folder, and those that an earlier attempt finished are used again.
    """

    def Do(
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """See the base class.

        Raises:
            CheckFailed: too many records could not be transformed, or none of the train split.
            ConfigError: the recipe does not fit the input.
            DatasetError: the input is no finished dataset, or one in forms that only others read.
        """
        source = Dataset.open(artifact_utils.get_single_uri(input_dict["examples"]))
        examples = artifact_utils.get_single_instance(output_dict["transformed_examples"])
        graph = artifact_utils.get_single_uri(output_dict["transform_graph"])
        recipe, max_rejects = read_recipe(exec_properties["recipe"])

        plan = plan_transform(source, recipe, max_rejects)
        dataset = plan.dataset
        staging = open_staging(os.environ.get(STAGING_VARIABLE) or self._get_tmp_dir(), dataset)
        with staging.locked():
            self._write_shards(source, plan, staging, self._vocabularies(source, plan, staging))
            _check_train(staging, plan.train)
            ingested = ingested_options(source.manifest.recipe)
            graph_plan = GraphPlan(
                recipe, dataset.classes, str(dataset.labels), _size(staging, plan), plan.texts, ingested
            )
            self._analyze(plan, staging, graph, output_dict["post_transform_stats"], graph_plan)
            figures = statistics(read_sums(graph, graph_plan), graph_plan, masks=dataset.labels == MASKS)
            manifest = commit(staging, dataset, examples.uri, {"runner": "beam"})

        text = json.dumps(figures, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
        for folder in (graph, examples.uri):
            write_text(Path(folder, STATISTICS_FILE), text)
        self._write_schema(
            source, plan, graph_plan, artifact_utils.get_single_uri(output_dict["post_transform_schema"])
        )
        parents = {"examples": source.manifest.digest}
        if input_dict.get("schema"):
            # Outside a pipeline nothing has checked the examples against one.
            schema = Path(artifact_utils.get_single_uri(input_dict["schema"]), post.SCHEMA_NAME)
            parents["schema"] = sha256_file(schema)
        identity = {"kind": "transform_graph", "recipe": dataset.recipe, "parent": dataset.parent}
        write_lineage(
            graph, kind="transform_graph", fingerprint=fingerprint(identity), parents=parents, recipe=dataset.recipe
        )
        examples.split_names = artifact_utils.encode_split_names(list(manifest.splits))
        # file_format stays unset: TFX knows no value for TFRecords that are not compressed.
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        examples.set_string_custom_property("dataset_fingerprint", manifest.fingerprint)
        examples.set_string_custom_property("dataset_digest", manifest.digest)

    def _vocabularies(self, source: Dataset, plan: TransformPlan, staging: Staging) -> dict[str, Text]:
        if not plan.texts:
            return {}
        train = [shard.file for shard in source.shards(TRAIN)]
        output, scratch = (str(staging.path(name)) for name in ("vocabularies", "tft-vocabularies"))
        return write_vocabularies(self._make_beam_pipeline, train, plan.texts, output, scratch)

    def _write_shards(self, source: Dataset, plan: TransformPlan, staging: Staging, texts: Mapping[str, Text]) -> None:
        jobs = shard_jobs(source, plan, staging, texts)
        shown = shards_shown(staging, plan.dataset.shards, "transforming shards")
        with shown, self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Shards" >> beam.Create(jobs)
                # Spreads the jobs over the workers; they are a few hundred bytes each.
                | "Spread" >> beam.Reshuffle()
                | "Write" >> beam.Map(write_shard)
            )

    def _analyze(
        self, plan: TransformPlan, staging: Staging, graph: str, outputs: list[Any], graph_plan: GraphPlan
    ) -> None:
        """One pipeline for the TransformGraph and the statistics of what was written."""
        by_split: dict[str, list[Path]] = {}
        for planned in plan.dataset.shards:
            by_split.setdefault(planned.split, []).append(figures_file(staging, planned))
        artifact = artifact_utils.get_single_instance(outputs)
        artifact.split_names = artifact_utils.encode_split_names(sorted(by_split))
        with self._make_beam_pipeline() as p, tft_beam.Context(temp_dir=str(staging.path("tft"))):
            write_transform_graph(p, by_split[TRAIN], graph, graph_plan)
            post.write_statistics(p, by_split, artifact.uri)

    def _write_schema(self, source: Dataset, plan: TransformPlan, graph_plan: GraphPlan, folder: str) -> None:
        schema = post.render_post_schema(
            plan.recipe,
            source.manifest.features,
            plan.stored,
            plan.texts,
            task=plan.dataset.task,
            classes=plan.dataset.classes,
            labels=str(plan.dataset.labels),
            size=graph_plan.size,
        )
        write_text(Path(folder, post.SCHEMA_NAME), schema)


def shard_jobs(source: Dataset, plan: TransformPlan, staging: Staging, texts: Mapping[str, Text]) -> list[ShardJob]:
    """A job for every shard of the plan."""
    files = {shard.path: shard.file for split in source.splits for shard in source.shards(split)}
    dataset = plan.dataset
    return [
        ShardJob(staging, planned, files[shard.path], plan.recipe, dataset.task, dataset.classes, plan.stored, texts)
        for planned, shard in zip(dataset.shards, source.manifest.shards, strict=True)
    ]


def open_staging(root: str, plan: DatasetPlan) -> Staging:
    """The staging folder of a plan, one a TensorFlow: re-encoded pixels are promised to be equal within one only.

    It is on this machine also where `root` is on a bucket: figures of the pixels lie beside the shards.
    """
    return Staging.open(os.path.join(local_folder(root), f"tensorflow-{tf.__version__}"), plan.fingerprint)


def plan_transform(source: Dataset, recipe: Recipe, max_rejects: float) -> TransformPlan:
    """Plans the transformed dataset: a shard for every shard, an input for every record.

    Raises:
        ConfigError: the recipe does not fit the input.
        DatasetError: the input has other names or forms than our own.
    """
    manifest = source.manifest
    _refuse_foreign(source)
    totals = {split: len(source.shards(split)) for split in source.splits}
    numbers = dict.fromkeys(totals, 0)
    planned = []
    for shard in manifest.shards:
        planned.append(PlannedShard(shard.split, numbers[shard.split], totals[shard.split]))
        numbers[shard.split] += 1
    stored, texts = stored_features(recipe, manifest.features, labels=manifest.labels, classes=len(manifest.classes))
    dataset = DatasetPlan(
        kind="transform",
        task=manifest.task,
        classes=manifest.classes,
        recipe=recipe.to_dict(),
        parent=manifest.digest,
        features=stored.kinds,
        names=stored.names,
        inputs=sum(shard.records for shard in manifest.shards),
        shards=tuple(planned),
        max_rejects=max_rejects,
        labels=manifest.labels,
    )
    return TransformPlan(dataset, recipe, stored, texts)


def _refuse_foreign(source: Dataset) -> None:
    recipe = source.manifest.recipe
    stored_as = recipe.get("images", {}).get("reencode", "none")
    problem = ""
    if source.manifest.names or recipe.get("features"):
        problem = "its features have the names of a preset or of features.map. Ingest without the section features"
    elif stored_as in ("tensor", "raw"):
        problem = f"its images are stored as {stored_as}. Ingest with images.reencode: jpeg, png or none"
    if problem:
        raise DatasetError(f"{source.root}: cannot be transformed: {problem}.")


def _size(staging: Staging, plan: TransformPlan) -> tuple[int, int] | None:
    if plan.recipe.size is not None:
        return plan.recipe.size
    return one_size([figures_file(staging, planned) for planned in plan.dataset.shards])


def _check_train(staging: Staging, train: Sequence[PlannedShard]) -> None:
    results = [staging.result(planned) for planned in train]
    if sum(result.info.records for result in results if result is not None):
        return
    rejected = [row for row in map(json.loads, staging.ledger_lines(train)) if row["status"] == REJECTED]
    shown = "".join(f"\n  {row['key']}: {row['code']}: {row['reason']}" for row in rejected[:_EXAMPLES])
    raise CheckFailed(
        f"The split {TRAIN!r} has no image left to train on: {len(rejected)} were rejected. Mend the input or change "
        f"the split.{' The first:' if shown else ''}{shown}"
    )
