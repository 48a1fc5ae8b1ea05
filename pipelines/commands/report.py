"""`shardwright report`: shows a dataset as one HTML file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.files import add_force, new_page
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json

if TYPE_CHECKING:
    from shardwright.report.page import Chapter


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    report = commands.add("report")
    report.add_argument("dataset", metavar="DIR", help="folder that `shardwright ingest` wrote, or its URL")
    report.add_argument("--out", metavar="FILE", help="file to write (default: DIR.html next to the folder)")
    report.add_argument("--seed", type=int, default=0, metavar="S", help="selects the samples (default 0)")
    report.add_argument("--evaluation", metavar="DIR", help="also show a model: the output of the Evaluator")
    report.add_argument("--training", metavar="DIR", help="and its curves: the output model_run of the Trainer")
    add_force(report)
    report.add_argument("--json", action="store_true", help="print the report's path as JSON")
    report.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from shardwright.report.collect import Options
    from shardwright.report.page import write_report

    out = options.out or _default_file(options.dataset)
    new_page("--out", out, options.dataset, force=options.force, title=r"[^\n]* · dataset [0-9a-f]{12}")
    chapters = _model(options)
    file = write_report(options.dataset, out, chapters=chapters, options=Options(seed=options.seed), quiet=options.json)
    size = file.stat().st_size
    if options.json:
        print_json({"report": str(file), "bytes": size})
    else:
        print(f"{file}: {size / 1e6:.1f} MB; open it in a browser")
    return 0


def _model(options: argparse.Namespace) -> list[Chapter]:
    """Returns the chapter of a trained model, if the call asks for one."""
    from shardwright.errors import UsageError

    if options.evaluation is None:
        if options.training is not None:
            raise UsageError("--training: is shown only with --evaluation. Give both.")
        return []
    for option, folder in (("--evaluation", options.evaluation), ("--training", options.training)):
        if folder is not None and not os.path.isdir(folder):
            raise UsageError(f"{option}: there is no folder {folder}. Give what the component wrote.")
    from shardwright.pipelines.runs.summary import model_chapter_of

    return [model_chapter_of(options.evaluation, options.training)]


def _default_file(dataset: str) -> str:
    """Returns `DIR.html` next to the folder, or in the current folder for a URL."""
    if "://" in dataset:
        return f"{os.path.basename(os.path.normpath(dataset)) or 'dataset'}.html"
    folder = Path(dataset).absolute()
    return str(folder.with_name(f"{folder.name}.html"))
