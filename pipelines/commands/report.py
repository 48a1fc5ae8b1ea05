"""`shardwright report`: a dataset as one HTML file."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from shardwright.report.page import Chapter

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add(commands: _Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    report = commands.add_parser("report", help="show a dataset as one HTML file")
    report.add_argument("dataset", metavar="DIR", help="folder that `shardwright ingest` wrote, or its URL")
    report.add_argument("--out", metavar="FILE", help="file to write (default: DIR.html beside the folder)")
    report.add_argument("--seed", type=int, default=0, metavar="S", help="another seed, other samples (default 0)")
    report.add_argument("--evaluation", metavar="DIR", help="also show a model: what the Evaluator wrote")
    report.add_argument("--training", metavar="DIR", help="and its curves: what the Trainer wrote (model_run)")
    report.add_argument("--json", action="store_true", help="print where the report lies as JSON")
    report.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from shardwright.report.collect import Options
    from shardwright.report.page import write_report

    out = options.out or _beside(options.dataset)
    chapters = _model(options)
    file = write_report(options.dataset, out, chapters=chapters, options=Options(seed=options.seed), quiet=options.json)
    size = file.stat().st_size
    if options.json:
        print(json.dumps({"report": str(file), "bytes": size}, ensure_ascii=False))
    else:
        print(f"{file}: {size / 1e6:.1f} MB; open it in a browser")
    return 0


def _model(options: argparse.Namespace) -> list[Chapter]:
    """The chapter of a trained model, where one is asked for."""
    from shardwright.errors import UsageError

    if options.evaluation is None:
        if options.training is not None:
            raise UsageError("--training: is shown with --evaluation only. Give both.")
        return []
    for option, folder in (("--evaluation", options.evaluation), ("--training", options.training)):
        if folder is not None and not os.path.isdir(folder):
            raise UsageError(f"{option}: there is no folder {folder}. Give what the component wrote.")
    from shardwright.pipelines.runs.summary import evaluated

    return [evaluated(options.evaluation, options.training)]


def _beside(dataset: str) -> str:
    """`DIR.html` beside a folder; of a URL in the current one."""
    name = os.path.basename(os.path.normpath(dataset)) or "dataset"
    return (
        f"{name}.html"
        if "://" in dataset
        else str(Path(dataset).absolute().with_name(f"{Path(dataset).absolute().name}.html"))
    )
