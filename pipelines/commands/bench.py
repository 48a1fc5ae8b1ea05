"""`shardwright bench loader`: measures the loader on a dataset of yours and advises on its options."""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from shardwright.loader.profile import LoaderReport

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_FLIPS = ("flip_left_right", "flip_up_down")


def add(commands: _Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    bench = commands.add_parser("bench", help="measure how fast this machine loads a dataset")
    subjects = bench.add_subparsers(title="subjects", required=True, metavar="SUBJECT")
    loader = subjects.add_parser("loader", help="measure loading of a dataset and give advice on options")
    loader.add_argument("dataset", metavar="DIR", help="folder of a dataset on this machine")
    loader.add_argument("--split", default="train", metavar="NAME", help="split to load (default train)")
    loader.add_argument("--batch", type=int, default=32, metavar="N", help="images in a batch (default 32)")
    loader.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds, for medians (default 5)")
    loader.add_argument("--augment", nargs="*", metavar="NAME", help="augmentations (default: both flips)")
    loader.add_argument("--json", action="store_true", help="print all of it as JSON")
    loader.set_defaults(command=_loader)


def _loader(options: argparse.Namespace) -> int:
    from shardwright.errors import DatasetError, UsageError
    from shardwright.pipelines.runs.logs import log_to_file

    for name in ("batch", "rounds"):
        if getattr(options, name) < 1:
            raise UsageError(f"--{name}: {getattr(options, name)} is too few. Give 1 or more.")
    augment = _FLIPS if options.augment is None else tuple(options.augment)
    # TensorFlow's messages go to a file.
    with tempfile.TemporaryDirectory(prefix="shardwright-bench-") as folder, log_to_file(Path(folder, "bench.log")):
        from shardwright.loader.error_context import error_message
        from shardwright.loader.profile import LoadingError, loader_report

        try:
            report = loader_report(
                options.dataset, options.split, batch=options.batch, augment=augment, rounds=options.rounds
            )
        except LoadingError as error:
            raise DatasetError(error_message(error)) from None
    if options.json:
        print(json.dumps(dataclasses.asdict(report), indent=1, ensure_ascii=False))
    else:
        _print(report)
    return 0


def _print(report: LoaderReport) -> None:
    for step in report.shares:
        print(f"{step.step:<8}{step.share:>6.1%}{step.seconds * 1e6:>9,.0f} us of processor an image")
    print()
    rows = [(figure.name, f"{figure.value:,.4g} {figure.unit}", figure.note) for figure in report.figures]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, note in rows:
        print(f"{name:{widths[0]}}  {value:{widths[1]}}  {note}".rstrip())
    print()
    width = max(len(advice.setting) + len(advice.value) for advice in report.advice)
    for advice in report.advice:
        print(f"{f'{advice.setting}: {advice.value}':<{width + 4}}{advice.reason}")
