"""`shardwright transform`: transforms a dataset to images of one size, without a pipeline."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import dataset_row, print_json
from shardwright.running.progress import counted

_LOG = "transform.log"


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    command = commands.add("transform")
    command.add_argument("config", metavar="CONFIG", help="YAML file with the section transform")
    command.add_argument("dataset", metavar="DIR", help="folder or URL that `shardwright ingest` wrote")
    command.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    command.add_argument("--json", action="store_true", help="print what was made as JSON")
    command.add_argument("-v", "--verbose", action="store_true", help="show all messages of Beam and TensorFlow")
    command.set_defaults(command=_transform)


def _transform(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.pipelines.runs.logs import log_to_file

    config = load_config(options.config)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    staging = None if config.run.staging is None else config.resolve(config.run.staging)
    with (
        tempfile.TemporaryDirectory(prefix="shardwright-") as logs,
        log_to_file(Path(logs, _LOG), verbose=options.verbose),
    ):
        from shardwright.components.image_transform.transform_recipe import transform_recipe
        from shardwright.pipelines.standalone_transform import EXAMPLES, transform_dataset

        beam = (*config.beam.options, *config.beam.per_component.get("ImageTransform", ()))
        recipe = transform_recipe(config)
        manifest = transform_dataset(options.dataset, recipe, options.out, staging=staging, beam=beam)
    if options.json:
        print_json(dataset_row(Path(options.out, EXAMPLES), manifest))
    else:
        images, shards = counted(manifest.totals["written"], "image"), counted(len(manifest.shards), "shard")
        print(f"{Path(options.out, EXAMPLES)}: {images} in {shards}")
    return 0
