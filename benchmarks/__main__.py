"""`python -m benchmarks SUBJECT`: measures the promised figures on this machine.

A ShardwrightError ends it with the same exit code as `shardwright`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shardwright.errors import ShardwrightError, UsageError
from shardwright.pipelines.commands.results import table
from shardwright.running.processes import keep_tensors

if TYPE_CHECKING:
    from benchmarks.figures import Figure

_COMMAND = (sys.executable, "-m", "shardwright.pipelines.cli")
# Subject -> what it measures, the images that it makes, and how many by default.
_SUBJECTS = {
    "ingest": ("ingest of images and masks, and reading the dataset", "photographs", 2000),
    "month": ("one hundredth more images on an object store, with `reuse_from`", "small images", 20_000),
    "loader": ("loading of drawn photographs, compared with decoding alone", "photographs", 2000),
    "transform": ("transform of a dataset to images of a quarter of their size", "photographs", 400),
    "report": ("the report of a large dataset", "records", 100_000),
    "train": ("training with the loader and with one batch, on each backend", "", 0),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a subject; returns 1 if a figure misses its target."""
    from benchmarks.record import record

    options = _parser().parse_args(arguments)
    try:
        with _kept(options.dir) as folder:
            figures = _measure(options, folder)
    except ShardwrightError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return error.exit_code
    if options.record:
        record(options.subject, [vars(figure) for figure in figures])
    if options.json:
        print(
            json.dumps(
                [{**vars(figure), "verdict": figure.verdict} for figure in figures], indent=1, ensure_ascii=False
            )
        )
    else:
        print(table([("what", "figure", "target", "", "on"), *(figure.row for figure in figures)]))
    return 1 if any(figure.verdict == "short" for figure in figures) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures the promised figures.")
    subjects = parser.add_subparsers(title="subjects", required=True, metavar="SUBJECT", dest="subject")
    for name, (purpose, kind, count) in _SUBJECTS.items():
        subject = subjects.add_parser(name, help=purpose)
        subject.add_argument("--json", action="store_true", help="print the figures as JSON")
        subject.add_argument("--record", action="store_true", help="store the figures in benchmarks/figures.json")
        subject.add_argument("--dir", metavar="DIR", help="where images are kept between calls (default: not kept)")
        if kind:
            subject.add_argument("--images", type=int, default=count, metavar="N", help=f"{kind} (default {count})")
        if name == "ingest":
            subject.add_argument("--profile", action="store_true", help="where the time of small images goes, by stage")
        if name == "month":
            stores = ("s3", "gs")
            subject.add_argument("--stores", nargs="+", choices=stores, default=stores, help="default: both")
        if name in ("loader", "train"):
            batch = 32 if name == "loader" else 16
            subject.add_argument("--batch", type=int, default=batch, metavar="N", help=f"images (default {batch})")
        if name == "loader":
            subject.add_argument("--rounds", type=int, default=5, metavar="N", help="for medians (default 5)")
        if name == "train":
            subject.add_argument("dataset", metavar="DIR", help="a dataset of ImageTransform")
    return parser


@contextmanager
def _kept(folder: str | None) -> Iterator[Path]:
    """Yields the folder that the user names, or a temporary one."""
    if folder is not None:
        yield Path(folder).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="shardwright-bench-") as temporary:
        yield Path(temporary).absolute()


def _measure(options: argparse.Namespace, folder: Path) -> list[Figure]:
    """Measures a subject; what libraries print goes to a file."""
    from shardwright.pipelines.runs.logs import log_to_file

    for name in ("images", "batch", "rounds"):
        if getattr(options, name, 1) < 1:
            raise UsageError(f"--{name}: {getattr(options, name)} is too few. Give 1 or more.")
    if options.subject == "month":
        from benchmarks.month import month_figures

        return month_figures(folder, options.images, options.stores)
    if options.subject == "report":
        from benchmarks.report import measure_report

        return measure_report(folder, options.images)
    # As in the process of the Trainer.
    os.environ.update(keep_tensors(os.environ))
    with log_to_file(folder / "bench.log"):
        if options.subject == "loader":
            from benchmarks.loader import loader_figures

            return loader_figures(folder, options.images, batch=options.batch, rounds=options.rounds)
        if options.subject == "train":
            from benchmarks.training import training_figures

            return training_figures(Path(options.dataset), options.batch)
        if options.subject == "transform":
            from benchmarks.transform import transform_figures

            return transform_figures(folder, options.images)
        if options.profile:
            if options.record:
                raise UsageError(
                    "--record: the figures of --profile have no place in benchmarks/figures.json. Omit it."
                )
            from benchmarks.ingest_stages import stage_figures

            return stage_figures(folder, options.images)
        return _ingest_figures(folder, options.images)


def _ingest_figures(folder: Path, images: int) -> list[Figure]:
    from benchmarks.ingest import ingest_figures
    from benchmarks.masks import mask_figures
    from benchmarks.object_store import store_figures
    from benchmarks.planning import planning_figures
    from benchmarks.probe import probe_figures

    return [
        *ingest_figures(folder, images, _COMMAND),
        *mask_figures(),
        *probe_figures(folder, images),
        *store_figures(),
        *planning_figures(folder),
    ]


if __name__ == "__main__":
    sys.exit(main())
