"""Transforms every shard of a dataset, analyzes the train split and writes the TransformGraph.

Input, staging and outputs may each be on this machine or on a bucket. Workers only read the input and write to staging,
so they may run on any machine that reaches both. The rest is small and is done in this process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from shardwright.components.image_transform import transformed_statistics as image_transform_statistics
from shardwright.components.image_transform.analyze import served_sums, write_transform_graph
from shardwright.components.image_transform.shard_figures import sums_file
from shardwright.components.image_transform.text import Text
from shardwright.components.image_transform.train_figures import (
    GraphPlan,
    check_train,
    graph_plan_of,
    statistics_text,
)
from shardwright.components.image_transform.transform_plan import (
    TRAIN,
    TransformPlan,
    TransformWork,
    open_staging,
    plan_transform,
    write_numbered,
)
from shardwright.components.image_transform.transform_recipe import read_recipe
from shardwright.components.image_transform.vocabularies import write_vocabularies
from shardwright.components.runtime.artifacts import flushed_outputs
from shardwright.components.runtime.beam import reachable, spread_numbers, staging_root
from shardwright.components.runtime.joined_examples import SOURCE, newest_examples, open_all, set_span, span_of
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed
from shardwright.lineage.record import write_lineage
from shardwright.loader import STATISTICS_FILE
from shardwright.running.progress import print_note
from shardwright.staging.commit import commit
from shardwright.staging.staged import shard_progress
from shardwright.staging.staging import Staging
from shardwright.storage import hash_bytes, read_bytes
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.mirror import put_folder
from shardwright.storage.whole_files import write_bytes, write_text

_EXAMPLES = 3


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes a dataset of kind `transform`, the TransformGraph that belongs to it, its statistics and its schema.

    Beam maps over shard numbers: neither pixels nor masks pass through a shuffle. Shards are staged in
    `SHARDWRIGHT_STAGING`, or else in the component's temporary folder; shards of an earlier attempt are reused.
    """

    @flushed_outputs
    def Do(
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """Transforms the dataset.

        Raises:
            CheckFailed: too many records were rejected, or all of the train split; or a file of a worker is missing.
            ConfigError: the recipe does not fit the input.
            DatasetError: the input is not a finished dataset, or is stored in a foreign form.
            UsageError: Beam's workers are on other machines, and the input or the staging folder is not on a bucket.
        """
        staged_in = partial(staging_root, self._beam_pipeline_args, self._get_tmp_dir)
        source = open_all(input_dict["examples"], staged_in)
        outputs = {name: artifact_utils.get_single_instance(artifacts) for name, artifacts in output_dict.items()}
        recipe, max_rejects = read_recipe(exec_properties["recipe"])

        plan = plan_transform(source, recipe, max_rejects)
        if plan.note:
            print_note(plan.note)
        reachable(self._beam_pipeline_args, "the examples", source.root)
        staging = open_staging(staged_in(), plan.dataset)
        with staging.locked(), tempfile.TemporaryDirectory(prefix="shardwright-") as made:
            texts = self._vocabularies(source, plan, staging)
            self._write_shards(staging, TransformWork.of(source, plan, staging, texts))
            check_train(staging, plan)
            graph_plan = graph_plan_of(source, plan, staging)
            self._statistics(plan, staging, Path(made, "statistics"))
            _write_graph(plan, staging, Path(made, "graph"), graph_plan)
            _write_schema(source, plan, graph_plan, Path(made, "schema"))
            lineage = {"kind": "transform_graph", "recipe": plan.dataset.recipe, "parent": plan.dataset.parent}
            write_lineage(
                Path(made, "graph"),
                kind="transform_graph",
                fingerprint=fingerprint(lineage),
                parents=_parents(source, input_dict),
                recipe=plan.dataset.recipe,
            )
            write_text(staging.path(STATISTICS_FILE), Path(made, "graph", STATISTICS_FILE).read_text(encoding="utf-8"))
            put_folder(Path(made, "graph"), outputs["transform_graph"].uri)
            put_folder(Path(made, "statistics"), outputs["post_transform_stats"].uri)
            put_folder(Path(made, "schema"), outputs["post_transform_schema"].uri)
            examples = outputs["transformed_examples"]
            kept = replace(plan.dataset, kept=(STATISTICS_FILE,))
            notes = {"notes": [plan.note]} if plan.note else {}
            manifest = commit(staging, kept, examples.uri, {"runner": "beam", **notes})

        splits = artifact_utils.encode_split_names(list(manifest.splits))
        examples.split_names = outputs["post_transform_stats"].split_names = splits
        # file_format stays unset: TFX has no value for uncompressed TFRecords.
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        newest = newest_examples(input_dict["examples"])[-1]
        set_span(examples, *span_of(newest))
        examples.set_string_custom_property(SOURCE, newest.get_string_custom_property(SOURCE))
        examples.set_string_custom_property("dataset_fingerprint", manifest.fingerprint)
        examples.set_string_custom_property("dataset_digest", manifest.digest)

    def _vocabularies(self, source: ImageDataset, plan: TransformPlan, staging: Staging) -> Mapping[str, Text]:
        if not plan.texts:
            return {}
        pairs = zip(plan.train, source.shards(TRAIN), strict=True)
        shards = [(planned, shard.file, shard.checksum) for planned, shard in pairs]
        return write_vocabularies(self._make_beam_pipeline, staging, shards, plan.texts)

    def _write_shards(self, staging: Staging, work: TransformWork) -> None:
        shown = shard_progress(staging, [planned for planned, *_ in work.shards], "transforming shards")
        with shown, self._make_beam_pipeline() as pipeline:
            _ = spread_numbers(pipeline, len(work.shards)) | "WriteShard" >> beam.Map(write_numbered, work=work)

    def _statistics(self, plan: TransformPlan, staging: Staging, folder: Path) -> None:
        with self._make_beam_pipeline() as pipeline:
            image_transform_statistics.write_statistics(pipeline, plan.totals, staging)
        for split in plan.totals:
            name = image_transform_statistics.statistics_file(split)
            if not staging.is_shared(name):
                raise CheckFailed(f"{staging.location(name)}: Beam's workers have not written it. Run it again.")
            write_bytes(folder / name, read_bytes(staging.location(name)))


def _write_graph(plan: TransformPlan, staging: Staging, folder: Path, graph_plan: GraphPlan) -> None:
    """Writes the TransformGraph, and in it the figures of the train split."""
    sums = [staging.location(sums_file(planned)) for planned in plan.train]
    with tempfile.TemporaryDirectory(prefix="shardwright-") as scratch:
        write_transform_graph(sums, str(folder), graph_plan, scratch)
    write_text(folder / STATISTICS_FILE, statistics_text(served_sums(str(folder), graph_plan), plan, graph_plan))


def _write_schema(source: ImageDataset, plan: TransformPlan, graph_plan: GraphPlan, folder: Path) -> None:
    schema = image_transform_statistics.render_post_schema(
        plan.recipe,
        source.manifest.features,
        plan.stored,
        plan.texts,
        task=plan.dataset.task,
        classes=plan.dataset.classes,
        labels=str(plan.dataset.labels),
        size=graph_plan.size,
    )
    write_text(folder / image_transform_statistics.SCHEMA_NAME, schema)


def _parents(source: ImageDataset, input_dict: dict[str, list[Any]]) -> dict[str, str]:
    parents = {"examples": source.manifest.digest}
    if input_dict.get("schema"):
        # Outside a pipeline there is no schema.
        schema = os.path.join(
            artifact_utils.get_single_uri(input_dict["schema"]), image_transform_statistics.SCHEMA_NAME
        )
        parents["schema"] = hash_bytes(read_bytes(schema)).content_id.hex()
    return parents
