"""`shardwright bench`: the promised figures, measured on this machine."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from shardwright.bench.figures import Figure

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_GAP = "  "
_LOG = "bench.log"
_COMMAND = (sys.executable, "-m", "shardwright_pipelines.cli")


def add(commands: _Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    bench = commands.add_parser("bench", help="measure the promised figures on this machine")
    subjects = bench.add_subparsers(title="subjects", required=True, metavar="SUBJECT")
    ingest = subjects.add_parser("ingest", help="images and masks into a dataset, and reading it back")
    ingest.add_argument("--images", type=int, default=2000, metavar="N", help="photographs (default 2000)")
    ingest.add_argument("--dir", metavar="DIR", help="where they are kept between calls (default: not kept)")
    ingest.add_argument("--json", action="store_true", help="print the figures as JSON")
    ingest.set_defaults(command=_ingest)


def _ingest(options: argparse.Namespace) -> int:
    from shardwright.errors import UsageError

    if options.images < 1:
        raise UsageError(f"--images: {options.images} is too few. Give 1 or more.")
    if options.dir is not None:
        figures = _measure(Path(options.dir), options.images)
    else:
        with tempfile.TemporaryDirectory(prefix="shardwright-bench-") as folder:
            figures = _measure(Path(folder), options.images)
    if options.json:
        rows = [{**vars(figure), "verdict": figure.verdict} for figure in figures]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        print(_table(figures))
    return 1 if any(figure.verdict == "short" for figure in figures) else 0


def _measure(folder: Path, images: int) -> list[Figure]:
    from shardwright.bench.ingest import ingest_figures
    from shardwright.bench.masks import mask_figures
    from shardwright.bench.object_store import store_figures
    from shardwright.bench.probe import probe_figures
    from shardwright_pipelines.quiet import quiet

    folder = folder.absolute()
    with quiet(folder / _LOG):
        from shardwright_pipelines.notebook import write_records

        return [
            *ingest_figures(folder, images, _COMMAND, write_records),
            *mask_figures(),
            *probe_figures(folder, images, write_records),
            *store_figures(),
        ]


def _table(figures: list[Figure]) -> str:
    rows = [("what", "figure", "target", "", "on"), *(figure.row for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        (_GAP.join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)) + _GAP + row[4]).rstrip()
        for row in rows
    )
