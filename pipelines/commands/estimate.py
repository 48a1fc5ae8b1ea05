"""`shardwright estimate`: estimates the cost of a run before it is submitted."""

from __future__ import annotations

import dataclasses
from argparse import Namespace

from shardwright.errors import UsageError
from shardwright.images.header import has_image_ending
from shardwright.ingest import locate
from shardwright.ingest.select_spans import read_spans
from shardwright.pipelines.cloud.costs import estimate, estimate_text, read_prices
from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.commands.settings import config_words, configuration


def run(options: Namespace) -> int:
    """Prints what a run would cost."""
    if (options.images is None) != (options.image_size is None):
        raise UsageError("--images and --image-size need each other.")
    config = configuration(options)
    prices = read_prices(options.prices)
    if options.images is None:
        listing = read_spans(locate(config), config.input.on_conflict, config.input.exclude).listing
        sizes = [size for name, size in zip(listing.names, listing.sizes, strict=True) if has_image_ending(name)]
        # All of its files where none has the ending of an image.
        sizes = sizes or list(listing.sizes)
        images, size = len(sizes), int(sum(sizes))
    else:
        images, size = options.images, options.images * options.image_size
    estimated = estimate(config, options.target, prices, images, size)
    row = {**dataclasses.asdict(estimated), "total": estimated.total, "unknown": list(estimated.unknown)}
    following = f"shardwright compile {config_words(options)} --target {options.target} --out FILE"
    return finish(options, row, estimate_text(estimated), following=following)
