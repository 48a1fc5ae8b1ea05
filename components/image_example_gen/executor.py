"""The executor of ImageExampleGen: plans the ingest, writes the shards, commits the dataset."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from shardwright.components.runtime.artifacts import Artifacts
from shardwright.components.runtime.beam import reachable, spread, staging_root
from shardwright.components.runtime.joined_examples import SOURCE, set_span
from shardwright.config.images import FULL
from shardwright.errors import UsageError
from shardwright.ingest import (
    INPUT_VARIABLE,
    IngestPlan,
    IngestRecipe,
    InputLocation,
    commit_ingest,
    plan_ingest,
    write_range,
    write_ranges,
    written_notes,
)
from shardwright.ingest.baseline import baseline_source
from shardwright.ingest.probe import Look, Part, Seen, look_at_part, look_fingerprint, share_parts, shared_results
from shardwright.running.progress import print_note
from shardwright.staging.staged import shard_progress
from shardwright.staging.staging import Staging
from shardwright.storage.fingerprint import fingerprint

# Beam does not say how many workers it has.
_WORKERS = 16


class Executor(base_beam_executor.BaseBeamExecutor):
    """Maps over ranges of shards: neither pixels nor run lengths pass through Beam. So does a look before the plan.

    The mapped function is that of the core, so that Beam's worker processes start without importing TFX. Without
    options of Beam, the processes of `shardwright ingest` write the shards.
    """

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Writes the dataset.

        Raises:
            UsageError: no location is given, the input is invalid, or workers are on other machines and images or the
                staging folder are not on a bucket.
            CheckFailed: the input's content does not match the fingerprint, or too much of it was rejected.
        """
        del input_dict
        examples = artifact_utils.get_single_instance(output_dict["examples"])
        location = _location(exec_properties)
        recipe = IngestRecipe.from_json(exec_properties["recipe"])
        root = staging_root(self._beam_pipeline_args, self._get_tmp_dir)
        reachable(self._beam_pipeline_args, "the images (input.images)", location.images)
        if location.earlier:
            reachable(self._beam_pipeline_args, "the dataset that is copied from", location.earlier)
        look = _Look(self._make_beam_pipeline, root, exec_properties["input_fingerprint"])
        prepared = plan_ingest(
            recipe,
            location,
            expected_fingerprint=exec_properties["input_fingerprint"],
            quiet=recipe.images.verify != FULL,
            staging_root=root,
            # Beam's default runner would look and write with one process.
            spread=look.spread if self._beam_pipeline_args else None,
        )
        records = prepared.surveyed.records
        if records is not None and records.unpacked:
            what = "what compressed TFRecords are unpacked to (unpack them beforehand)"
            reachable(self._beam_pipeline_args, what, records.unpacked)
        prepared.check_rejects()
        plan = prepared.plan
        staging = Staging.open(root, plan.dataset.fingerprint, plan.tools)
        with staging.locked():
            prepared.stage(staging, elsewhere=True)
            with shard_progress(staging, plan.dataset.shards, "writing images", plan.cut.bounds, plan.cut.sizes):
                self._write(plan, staging)
            written = written_notes(plan, staging.results(plan.dataset.shards))
            for note in written:
                print_note(note)
            notes = [*plan.notes, *written]
            build = {"runner": "tfx", "notes": notes, **baseline_source(location, examples.uri)}
            manifest = commit_ingest(plan, staging, examples.uri, build)
        look.remove()
        examples.split_names = artifact_utils.encode_split_names(list(manifest.splits))
        # `file_format` stays unset: it has no value for plain TFRecords, and StatisticsGen rejects unknown values.
        examples_utils.set_payload_format(examples, example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE)
        spans = prepared.surveyed.spans
        set_span(examples, spans.newest or 0, spans.version)
        examples.set_string_custom_property(SOURCE, fingerprint(location.images))
        examples.set_string_custom_property("dataset_fingerprint", manifest.fingerprint)
        examples.set_string_custom_property("dataset_digest", manifest.digest)

    def _write(self, plan: IngestPlan, staging: Staging) -> None:
        if not self._beam_pipeline_args:
            deque(write_ranges(plan, staging)[1], maxlen=0)
            return
        ranges = plan.cut.missing(plan.dataset.shards, staging, _WORKERS)
        if not ranges:
            return
        with self._make_beam_pipeline() as pipeline:
            write = beam.Map(write_range, plan=plan.for_writers(), staging=staging)
            _ = spread(pipeline, ranges, "Ranges") | "WriteRange" >> write


class _Look:
    """The look at the pixels before the plan, where the plan depends on them: a Beam map over parts of the files.

    Args:
        make_pipeline: returns a pipeline with the runner.
        root: folder of staging folders.
        content: the content fingerprint of the input, under which a retry finds the results of an earlier attempt.
    """

    def __init__(self, make_pipeline: Callable[[], beam.Pipeline], root: str, content: str) -> None:
        self._make_pipeline, self._root, self._content = make_pipeline, root, content
        self._stagings: list[Staging] = []

    def spread(self, look: Look, parts: Sequence[Part]) -> Iterator[tuple[int, list[Seen]]]:
        """Has parts probed by Beam's workers; neither pixels nor results pass through Beam."""
        staging = Staging.open(self._root, look_fingerprint(self._content, look, parts))
        self._stagings.append(staging)
        with staging.locked():
            missing = share_parts(staging, parts)
            if missing:
                with self._make_pipeline() as pipeline:
                    look_at = beam.Map(look_at_part, look=look, staging=staging)
                    _ = spread(pipeline, missing, "PartNumbers") | "LookAtPart" >> look_at
            yield from shared_results(staging, look, parts)

    def remove(self) -> None:
        """Deletes the results, after the dataset has appeared."""
        for staging in self._stagings:
            staging.remove()


def _location(exec_properties: dict[str, Any]) -> InputLocation:
    text = exec_properties.get("input_location") or os.environ.get(INPUT_VARIABLE)
    if not text:
        raise UsageError(f"ImageExampleGen: neither input_location nor {INPUT_VARIABLE} is set. Set one of them.")
    try:
        return InputLocation.from_json(text)
    except (ValueError, TypeError):
        raise UsageError(
            f'The input\'s location is {text!r}, not JSON like {{"images": "/data", "labels": null}}.'
        ) from None
