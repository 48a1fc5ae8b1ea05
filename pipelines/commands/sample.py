"""`shardwright sample`: draws a data set to try things with."""

from __future__ import annotations

import shlex
from argparse import Namespace

from shardwright.pipelines.commands.results import finish
from shardwright.running.progress import counted
from shardwright.sample import write_sample


def run(options: Namespace) -> int:
    """Draws images with masks, and their table."""
    report = write_sample(
        options.out,
        images=options.count,
        height=options.height,
        width=options.width,
        seed=options.seed,
        quiet=options.json or options.quiet,
        test=options.test,
    )
    kinds = ", ".join(f"{name} {count}" for name, count in report.present.items())
    size = f"{report.height}x{report.width}, {report.image_bytes / 1e6:.1f} MB"
    return finish(
        options,
        report,
        f"{report.images}: {counted(report.count, 'image')} of {size}",
        f"{report.labels}: images with {kinds}",
        *([f"{report.test_images}: {counted(options.test, 'image')} without masks"] if options.test else []),
        following=f"shardwright init {shlex.quote(options.out)}",
    )
