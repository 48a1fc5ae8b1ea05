"""`python -m benchmarks SUBJECT`: measures the promised figures on this machine.

A ShardwrightError ends it with the same exit code as `shardwright`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from benchmarks.figures import Figure

_Subjects: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_Measure: TypeAlias = "Callable[[argparse.Namespace], list[Figure]]"
_GAP = "  "
_LOG = "bench.log"
_FEWEST = 100
_COMMAND = (sys.executable, "-m", "shardwright.pipelines.cli")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a subject; returns 1 if a figure misses its target."""
    from benchmarks.record import record
    from shardwright.errors import ShardwrightError

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures the promised figures.")
    _add_subjects(parser.add_subparsers(title="subjects", required=True, metavar="SUBJECT"))
    options = parser.parse_args(arguments)
    try:
        figures = options.measure(options)
    except ShardwrightError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return error.exit_code
    if options.record:
        record(options.subject, [vars(figure) for figure in figures])
    return _print(figures, as_json=options.json)


def _add_subjects(subjects: _Subjects) -> None:
    ingest = _add(subjects, "ingest", "ingest of images and masks, and reading the dataset", _ingest)
    ingest.add_argument("--profile", action="store_true", help="time by stage, and the speed-up of 1 to 16 processes")
    _add_images(ingest, "photographs", 2000)
    month = _add(subjects, "month", "one hundredth more images on an object store, with `reuse_from`", _month)
    month.add_argument("--stores", nargs="+", choices=("gs", "s3"), default=("s3", "gs"), help="default: both")
    _add_images(month, "small images", 20_000)
    loader = _add(subjects, "loader", "loading of drawn photographs, compared with decoding alone", _loader)
    loader.add_argument("--batch", type=int, default=32, metavar="N", help="images in a batch (default 32)")
    loader.add_argument("--rounds", type=int, default=5, metavar="N", help="how often, for medians (default 5)")
    _add_images(loader, "photographs", 2000)
    transform = _add(subjects, "transform", "transform of a dataset to images of a quarter of their size", _transform)
    transform.add_argument("--python", metavar="PYTHON", help="one that has cv2, to compare with (default: this one)")
    _add_images(transform, "photographs", 400)
    train = _add(subjects, "train", "training with the loader and with one batch, on each backend", _train)
    train.add_argument("dataset", metavar="DIR", help="a dataset of ImageTransform")
    train.add_argument("--batch", type=int, default=16, metavar="N", help="images in a batch (default 16)")
    _add_images(_add(subjects, "report", "the report of a large dataset", _report), "records", 100_000)


def _add(subjects: _Subjects, name: str, purpose: str, measure: _Measure) -> argparse.ArgumentParser:
    """Adds a subject, whose figures can be had as JSON or be published."""
    parser = subjects.add_parser(name, help=purpose)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--record", action="store_true", help="store the figures in benchmarks/figures.json")
    parser.set_defaults(measure=measure, subject=name)
    return parser


def _add_images(parser: argparse.ArgumentParser, kind: str, count: int) -> None:
    """Adds how many images are made, and where."""
    parser.add_argument("--images", type=int, default=count, metavar="N", help=f"{kind} (default {count})")
    parser.add_argument("--dir", metavar="DIR", help="where they are kept between calls (default: not kept)")


def _ingest(options: argparse.Namespace) -> list[Figure]:
    _at_least_one(options, "images")
    with _kept(options) as folder:
        if options.profile:
            from benchmarks.ingest import profile_figures

            return profile_figures(folder, options.images)
        return _measure(folder, options.images)


def _month(options: argparse.Namespace) -> list[Figure]:
    from benchmarks.month import month_figures
    from shardwright.errors import UsageError

    if options.images < _FEWEST:
        raise UsageError(f"--images: {options.images} have no hundredth. Give {_FEWEST} or more.")
    with _kept(options) as folder:
        return month_figures(folder, options.images, options.stores)


def _loader(options: argparse.Namespace) -> list[Figure]:
    _at_least_one(options, "images", "batch", "rounds")
    from shardwright.errors import UsageError

    if options.images < options.batch:
        raise UsageError(f"--images: {options.images} do not fill a batch of {options.batch}. Give more.")
    from shardwright.pipelines.runs.logs import log_to_file
    from shardwright.running.processes import keep_tensors

    # As in the process of the Trainer.
    os.environ.update(keep_tensors(os.environ))
    with _kept(options) as folder, log_to_file(folder / _LOG):
        from benchmarks.loader import loader_figures

        return loader_figures(folder, options.images, batch=options.batch, rounds=options.rounds)


def _report(options: argparse.Namespace) -> list[Figure]:
    from benchmarks.report import measure_report

    _at_least_one(options, "images")
    with _kept(options) as folder:
        return measure_report(folder, options.images)


def _train(options: argparse.Namespace) -> list[Figure]:
    _at_least_one(options, "batch")
    from shardwright.dataset.reader import ImageDataset
    from shardwright.errors import UsageError
    from shardwright.pipelines.runs.logs import log_to_file

    if ImageDataset.open(options.dataset).manifest.kind != "transform":
        raise UsageError(f"{options.dataset}: its images are not of one size. Give what `shardwright transform` made.")
    with tempfile.TemporaryDirectory(prefix="shardwright-bench-") as folder, log_to_file(Path(folder, _LOG)):
        from benchmarks.training import training_figures

        return training_figures(Path(options.dataset), options.batch)


def _transform(options: argparse.Namespace) -> list[Figure]:
    _at_least_one(options, "images")
    from benchmarks.transform import Methods, transform_figures
    from shardwright.pipelines.runs.logs import log_to_file

    with _kept(options) as folder, log_to_file(folder / _LOG):
        from benchmarks import transform as ways

        with ways.notebook(options.python) as (method, name):
            methods = Methods(method, name, ways.pixels_only, ways.shards, ways.transform)
            return transform_figures(folder, options.images, methods)


def _at_least_one(options: argparse.Namespace, *names: str) -> None:
    from shardwright.errors import UsageError

    for name in names:
        if getattr(options, name) < 1:
            raise UsageError(f"--{name}: {getattr(options, name)} is too few. Give 1 or more.")


@contextmanager
def _kept(options: argparse.Namespace) -> Iterator[Path]:
    """Yields the folder that the user names, or a temporary one."""
    if options.dir is not None:
        yield Path(options.dir).absolute()
    else:
        with tempfile.TemporaryDirectory(prefix="shardwright-bench-") as folder:
            yield Path(folder).absolute()


def _print(figures: list[Figure], *, as_json: bool) -> int:
    if as_json:
        rows = [{**vars(figure), "verdict": figure.verdict} for figure in figures]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        print(_table(figures))
    return 1 if any(figure.verdict == "short" for figure in figures) else 0


def _measure(folder: Path, images: int) -> list[Figure]:
    from benchmarks.ingest import ingest_figures
    from benchmarks.masks import mask_figures
    from benchmarks.object_store import store_figures
    from benchmarks.planning import planning_figures
    from benchmarks.probe import probe_figures
    from benchmarks.turns import turn_figures
    from shardwright.pipelines.runs.logs import log_to_file

    with log_to_file(folder / _LOG):
        from benchmarks.transform import write_records

        return [
            *turn_figures(folder, images),
            *ingest_figures(folder, images, _COMMAND, write_records),
            *mask_figures(),
            *probe_figures(folder, images, write_records),
            *store_figures(),
            *planning_figures(folder),
        ]


def _table(figures: list[Figure]) -> str:
    rows = [("what", "figure", "target", "", "on"), *(figure.row for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        (_GAP.join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)) + _GAP + row[4]).rstrip()
        for row in rows
    )


if __name__ == "__main__":
    sys.exit(main())
