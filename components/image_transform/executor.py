"""Transforms every shard of a dataset, analyzes the train split and writes the TransformGraph.

Input, staging and outputs may each be on this machine or on a bucket. Workers only read the input and write to staging,
so they may run on any machine that reaches both. The rest is small and is done in this process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from shardwright.components.image_transform.transform_images import commit_transformed, write_graph, write_transformed
from shardwright.components.image_transform.transform_plan import open_staging, plan_transform
from shardwright.components.image_transform.transform_recipe import read_recipe
from shardwright.components.image_transform.transformed_statistics import (
    SCHEMA_NAME,
    render_post_schema,
    statistics_file,
    write_statistics,
)
from shardwright.components.runtime.artifacts import flushed_outputs
from shardwright.components.runtime.beam import reachable, spread, staging_root
from shardwright.components.runtime.joined_examples import SOURCE, newest_examples, open_all, set_span, span_of
from shardwright.errors import CheckFailed
from shardwright.running.progress import print_note
from shardwright.storage import hash_bytes, read_bytes
from shardwright.storage.mirror import put_folder
from shardwright.storage.whole_files import write_bytes, write_text


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
            graph_plan = write_transformed(source, plan, staging, self._spread)
            folder = Path(made, "statistics")
            with self._make_beam_pipeline() as pipeline:
                write_statistics(pipeline, plan.totals, staging)
            for split in plan.totals:
                file = statistics_file(split)
                if not staging.is_shared(file):
                    raise CheckFailed(f"{staging.location(file)}: Beam's workers have not written it. Run it again.")
                write_bytes(folder / file, read_bytes(staging.location(file)))
            parents = {"examples": source.manifest.digest}
            if input_dict.get("schema"):  # Outside a pipeline there is none.
                schema = os.path.join(artifact_utils.get_single_uri(input_dict["schema"]), SCHEMA_NAME)
                parents["schema"] = hash_bytes(read_bytes(schema)).content_id.hex()
            write_graph(plan, staging, graph_plan, parents, Path(made, "graph"))
            schema_text = render_post_schema(source.manifest, plan, graph_plan.size)
            write_text(Path(made, "schema") / SCHEMA_NAME, schema_text)
            put_folder(Path(made, "graph"), outputs["transform_graph"].uri)
            put_folder(Path(made, "statistics"), outputs["post_transform_stats"].uri)
            put_folder(Path(made, "schema"), outputs["post_transform_schema"].uri)
            examples = outputs["transformed_examples"]
            manifest = commit_transformed(plan, staging, examples.uri, "beam")

        splits = artifact_utils.encode_split_names(list(manifest.splits))
        examples.split_names = outputs["post_transform_stats"].split_names = splits
        # file_format stays unset: TFX has no value for uncompressed TFRecords.
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        newest = newest_examples(input_dict["examples"])[-1]
        set_span(examples, *span_of(newest))
        examples.set_string_custom_property(SOURCE, newest.get_string_custom_property(SOURCE))
        examples.set_string_custom_property("dataset_fingerprint", manifest.fingerprint)
        examples.set_string_custom_property("dataset_digest", manifest.digest)

    def _spread(self, function: Callable[[int], object], count: int) -> None:
        with self._make_beam_pipeline() as pipeline:
            _ = spread(pipeline, range(count)) | "Call" >> beam.Map(function)
