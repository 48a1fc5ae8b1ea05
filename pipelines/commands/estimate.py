"""`shardwright estimate`: estimates the cost of a run before it is submitted."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json

if TYPE_CHECKING:
    from shardwright.config import Config


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    command = commands.add("estimate")
    command.add_argument("config", metavar="CONFIG", help="YAML file")
    command.add_argument("--target", required=True, choices=("vertex", "kubeflow"), help="platform that runs it")
    command.add_argument("--prices", required=True, metavar="FILE", help="YAML file with your prices and rates")
    command.add_argument("--images", type=int, metavar="N", help="number of images (default: they are listed)")
    command.add_argument("--image-size", type=int, metavar="BYTES", help="with --images: mean size of an image")
    command.add_argument("--json", action="store_true", help="print the parts as JSON")
    command.set_defaults(command=_estimate)


def _estimate(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.errors import UsageError
    from shardwright.pipelines.cloud.costs import estimate, estimate_text, read_prices

    if (options.images is None) != (options.image_size is None):
        raise UsageError("--images and --image-size need each other.")
    config = load_config(options.config)
    prices = read_prices(options.prices)
    if options.images is None:
        images, size = _listed(config)
    else:
        images, size = options.images, options.images * options.image_size
    found = estimate(config, options.target, prices, images, size)
    if options.json:
        row = {**dataclasses.asdict(found), "total": found.total, "unknown": list(found.unknown)}
        print_json(row)
    else:
        print(estimate_text(found))
    return 0


def _listed(config: Config) -> tuple[int, int]:
    """Returns number and bytes of the images of an input; of all its files where none has the ending of an image."""
    from shardwright.images.header import has_image_ending
    from shardwright.ingest import locate
    from shardwright.ingest.select_spans import read_spans

    found = read_spans(locate(config), config.input.on_conflict, config.input.exclude).listing
    sizes = [size for name, size in zip(found.names, found.sizes, strict=True) if has_image_ending(name)]
    sizes = sizes or list(found.sizes)
    return len(sizes), int(sum(sizes))
