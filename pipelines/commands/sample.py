"""`shardwright sample`: draws a data set to try things with."""

from __future__ import annotations

import argparse

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import counted


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    sample = commands.add("sample")
    sample.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    sample.add_argument("--count", type=int, default=20, metavar="N", help="number of images (default 20)")
    sample.add_argument("--height", type=int, default=1400, metavar="H", help="in pixels (default 1400)")
    sample.add_argument("--width", type=int, default=2100, metavar="W", help="in pixels (default 2100)")
    sample.add_argument("--seed", type=int, default=0, metavar="S", help="selects the images (default 0)")
    sample.add_argument("--json", action="store_true", help="print what was drawn as JSON")
    sample.set_defaults(command=_sample)


def _sample(options: argparse.Namespace) -> int:
    from shardwright.sample import write_sample

    report = write_sample(
        options.out,
        images=options.count,
        height=options.height,
        width=options.width,
        seed=options.seed,
        quiet=options.json or options.quiet,
    )
    if options.json:
        print_json(report)
        return 0
    kinds = ", ".join(f"{name} {count}" for name, count in report.present.items())
    size = f"{report.height}x{report.width}, {report.image_bytes / 1e6:.1f} MB"
    print(f"{report.images}: {counted(report.count, 'image')} of {size}")
    print(f"{report.labels}: images with {kinds}")
    return 0
