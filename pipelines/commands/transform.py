"""`shardwright transform`: transforms a dataset to images of one size, without a pipeline."""

from __future__ import annotations

import shlex
import tempfile
from argparse import Namespace
from pathlib import Path

from shardwright.pipelines.commands.results import dataset_row, finish
from shardwright.pipelines.commands.settings import configuration
from shardwright.running.processes import gc_paused
from shardwright.running.progress import counted


def run(options: Namespace) -> int:
    """Writes the transformed dataset."""
    from shardwright.pipelines.runs.logs import log_to_file

    config = configuration(options)
    staging = None if config.run.staging is None else config.resolve(config.run.staging)
    with (
        tempfile.TemporaryDirectory(prefix="shardwright-") as logs,
        log_to_file(Path(logs, "transform.log"), verbose=options.verbose),
    ):
        with gc_paused():  # Collections take a quarter of the time in which TensorFlow is imported.
            from shardwright.pipelines.standalone_transform import EXAMPLES, transform_dataset

        beam = [*config.beam.options, *config.beam.per_component.get("ImageTransform", ())] if options.tfx else None
        manifest = transform_dataset(
            options.dataset,
            config,
            options.out,
            staging=staging,
            workers=options.workers,
            beam=beam,
        )
    out = Path(options.out, EXAMPLES)
    images, shards = counted(manifest.totals["written"], "image"), counted(len(manifest.shards), "shard")
    row = dataset_row(out, manifest)
    return finish(options, row, f"{out}: {images} in {shards}", following=f"shardwright report {shlex.quote(str(out))}")
