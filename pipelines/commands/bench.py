"""`shardwright bench loader`: measures the loader on a dataset of yours and advises on its options."""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json

if TYPE_CHECKING:
    from shardwright.loader.profile import LoaderReport

_FLIPS = ("flip_left_right", "flip_up_down")


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    loader = commands.add_group("bench").add("loader")
    loader.add_argument("dataset", metavar="DIR", help="folder of a dataset on this machine")
    loader.add_argument("--split", default="train", metavar="NAME", help="split to load (default train)")
    loader.add_argument("--batch-size", type=int, default=32, metavar="N", help="images in a batch (default 32)")
    loader.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds, for medians (default 5)")
    loader.add_argument("--augment", nargs="*", metavar="NAME", help="augmentations (default: both flips)")
    loader.add_argument(
        "--read-rate", type=float, default=500, metavar="MB", help="MB/s that storage gives in a training (default 500)"
    )
    loader.add_argument("--json", action="store_true", help="print all of it as JSON")
    loader.set_defaults(command=_loader)


def _loader(options: argparse.Namespace) -> int:
    from shardwright.errors import DatasetError, UsageError
    from shardwright.pipelines.runs.logs import log_to_file
    from shardwright.running.processes import keep_tensors

    for name, count in {"--batch-size": options.batch_size, "--rounds": options.rounds}.items():
        if count < 1:
            raise UsageError(f"{name}: {count} is too few. Give 1 or more.")
    if not options.read_rate > 0:
        raise UsageError(f"--read-rate: {options.read_rate:g} is not a rate. Give MB/s above 0.")
    augment = _FLIPS if options.augment is None else tuple(options.augment)
    # As in the process of the Trainer.
    os.environ.update(keep_tensors(os.environ))
    # TensorFlow's messages go to a file.
    with tempfile.TemporaryDirectory(prefix="shardwright-bench-") as folder, log_to_file(Path(folder, "bench.log")):
        from shardwright.loader.error_context import error_message
        from shardwright.loader.profile import LoadingError, loader_report

        try:
            report = loader_report(
                options.dataset,
                options.split,
                batch=options.batch_size,
                augment=augment,
                rounds=options.rounds,
                read_rate=options.read_rate * 1e6,
            )
        except LoadingError as error:
            raise DatasetError(error_message(error)) from None
    if options.json:
        print_json(report)
    else:
        _print(report)
    return 0


def print_encodings(report: LoaderReport) -> None:
    """Prints the ways to store the images, and from which rate of reading each gives more images than as stored."""
    print(f"{'images stored as':<30}{'KB':>8}{'images/s':>10}  more images than as stored, at a rate of reading")
    for row in report.encodings:
        rate = f"{row.images:,.0f}" if row.images else "-"
        pays = "never"
        if row.pays < math.inf:
            pays = "always" if not row.pays else f"from {row.pays / 1e6:,.0f} MB/s"
            pays = pays if row.pays_below == math.inf else f"below {row.pays_below / 1e6:,.0f} MB/s"
        if not row.images:
            pays = "not measured: the loader has no decoder for it"
        elif row is report.encodings[0]:
            pays = ""
        changed = "" if row.lossless else " (changes pixels)"
        print(f"{row.name:<30}{row.bytes / 1e3:>8,.1f}{rate:>10}  {pays}{changed if pays else ''}".rstrip())


def _print(report: LoaderReport) -> None:
    for step in report.shares:
        print(f"{step.step:<8}{step.share:>6.1%}{step.seconds * 1e6:>9,.0f} us of processor an image")
    print()
    rows = [(figure.name, f"{figure.value:,.4g} {figure.unit}", figure.note) for figure in report.figures]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, note in rows:
        print(f"{name:{widths[0]}}  {value:{widths[1]}}  {note}".rstrip())
    print()
    print_encodings(report)
    print()
    width = max(len(advice.setting) + len(advice.value) for advice in report.advice)
    for advice in report.advice:
        print(f"{f'{advice.setting}: {advice.value}':<{width + 4}}{advice.reason}")
