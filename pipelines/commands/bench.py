"""`shardwright bench`: the promised figures, measured on this machine."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from shardwright.bench.figures import Figure
    from shardwright.bench.loader import Methods

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_GAP = "  "
_LOG = "bench.log"
_FEWEST = 100
_COMMAND = (sys.executable, "-m", "shardwright.pipelines.cli")


def add(commands: _Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    bench = commands.add_parser("bench", help="measure the promised figures on this machine")
    subjects = bench.add_subparsers(title="subjects", required=True, metavar="SUBJECT")
    ingest = subjects.add_parser("ingest", help="images and masks into a dataset, and reading it back")
    ingest.add_argument("--images", type=int, default=2000, metavar="N", help="photographs (default 2000)")
    ingest.add_argument("--dir", metavar="DIR", help="where they are kept between calls (default: not kept)")
    ingest.add_argument("--json", action="store_true", help="print the figures as JSON")
    ingest.set_defaults(command=_ingest)
    month = subjects.add_parser("month", help="one hundredth more images on an object store, with `previous`")
    month.add_argument("--images", type=int, default=20_000, metavar="N", help="small images (default 20000)")
    month.add_argument("--stores", nargs="+", choices=("gs", "s3"), default=("s3", "gs"), help="default: both")
    month.add_argument("--dir", metavar="DIR", help="where they are kept between calls (default: not kept)")
    month.add_argument("--json", action="store_true", help="print the figures as JSON")
    month.set_defaults(command=_month)
    loader = subjects.add_parser("loader", help="a dataset into batches, beside nothing but decoding")
    loader.add_argument("dataset", nargs="?", metavar="DIR", help="a dataset of yours (default: drawn photographs)")
    loader.add_argument("--split", default="train", metavar="NAME", help="of DIR (default train)")
    loader.add_argument("--batch", type=int, default=32, metavar="N", help="images in a batch (default 32)")
    loader.add_argument("--rounds", type=int, default=5, metavar="N", help="how often, for medians (default 5)")
    loader.add_argument("--augment", nargs="*", metavar="NAME", help="with DIR (default: flips)")
    loader.add_argument("--images", type=int, default=2000, metavar="N", help="photographs, without DIR (default 2000)")
    loader.add_argument("--dir", metavar="DIR", help="where they are kept between calls (default: not kept)")
    loader.add_argument("--json", action="store_true", help="print all of it as JSON")
    loader.set_defaults(command=_loader)
    transform = subjects.add_parser("transform", help="a dataset into images of a quarter of their size")
    transform.add_argument("--images", type=int, default=400, metavar="N", help="photographs (default 400)")
    transform.add_argument("--dir", metavar="DIR", help="where they are kept between calls (default: not kept)")
    transform.add_argument("--python", metavar="PYTHON", help="one that has cv2, to compare with (default: this one)")
    transform.add_argument("--json", action="store_true", help="print the figures as JSON")
    transform.set_defaults(command=_transform)
    train = subjects.add_parser("train", help="training, fed by the loader and by one batch, on each backend")
    train.add_argument("dataset", metavar="DIR", help="a dataset of ImageTransform")
    train.add_argument("--batch", type=int, default=16, metavar="N", help="images in a batch (default 16)")
    train.add_argument("--json", action="store_true", help="print the figures as JSON")
    train.set_defaults(command=_train)
    report = subjects.add_parser("report", help="the report of a large dataset")
    report.add_argument("--images", type=int, default=100_000, metavar="N", help="records (default 100000)")
    report.add_argument("--dir", metavar="DIR", help="where they are kept between calls (default: not kept)")
    report.add_argument("--json", action="store_true", help="print the figures as JSON")
    report.set_defaults(command=_report)


def _ingest(options: argparse.Namespace) -> int:
    _at_least_one(options, "images")
    with _kept(options) as folder:
        figures = _measure(folder, options.images)
    return _told(figures, as_json=options.json)


def _month(options: argparse.Namespace) -> int:
    from shardwright.bench.month import month_figures
    from shardwright.errors import UsageError

    if options.images < _FEWEST:
        raise UsageError(f"--images: {options.images} have no hundredth. Give {_FEWEST} or more.")
    with _kept(options) as folder:
        figures = month_figures(folder, options.images, options.stores)
    return _told(figures, as_json=options.json)


def _loader(options: argparse.Namespace) -> int:
    _at_least_one(options, "images", "batch", "rounds")
    if options.dataset is not None:
        return _loader_of(options)
    from shardwright.errors import UsageError

    if options.images < options.batch:
        raise UsageError(f"--images: {options.images} do not fill a batch of {options.batch}. Give more.")
    with _kept(options) as folder, _loader_methods(folder / _LOG) as methods:
        from shardwright.bench.loader import loader_figures

        figures = loader_figures(folder, options.images, methods, batch=options.batch, rounds=options.rounds)
    return _told(figures, as_json=options.json)


def _loader_of(options: argparse.Namespace) -> int:
    """The shares of a dataset of the user's, and what to set."""
    augment = ("flip_left_right", "flip_up_down") if options.augment is None else tuple(options.augment)
    with _kept(options) as folder, _loader_methods(folder / _LOG) as methods:
        from shardwright.bench.loader_shares import loader_report

        report = loader_report(
            options.dataset, options.split, methods, batch=options.batch, augment=augment, rounds=options.rounds
        )
    if options.json:
        print(json.dumps(dataclasses.asdict(report), indent=1, ensure_ascii=False))
        return 0
    for step in report.shares:
        print(f"{step.step:<8}{step.share:>6.1%}{step.seconds * 1e6:>9,.0f} us of processor an image")
    print()
    print(_table(list(report.figures)))
    print()
    width = max(len(advice.setting) + len(advice.value) for advice in report.advice)
    for advice in report.advice:
        print(f"{f'{advice.setting}: {advice.value}':<{width + 4}}{advice.reason}")
    return 0


def _report(options: argparse.Namespace) -> int:
    from shardwright.bench.report import measure_report

    _at_least_one(options, "images")
    with _kept(options) as folder:
        figures = measure_report(folder, options.images)
    return _told(figures, as_json=options.json)


def _train(options: argparse.Namespace) -> int:
    _at_least_one(options, "batch")
    from shardwright.dataset import Dataset
    from shardwright.errors import UsageError
    from shardwright.pipelines.quiet import quiet

    if Dataset.open(options.dataset).manifest.kind != "transform":
        raise UsageError(f"{options.dataset}: its images are not of one size. Give what `shardwright transform` made.")
    with tempfile.TemporaryDirectory(prefix="shardwright-bench-") as folder, quiet(Path(folder, _LOG)):
        from shardwright.components.image_trainer.speed import training_figures

        figures = training_figures(Path(options.dataset), options.batch)
    return _told(figures, as_json=options.json)


def _transform(options: argparse.Namespace) -> int:
    _at_least_one(options, "images")
    from shardwright.bench.transform import Methods, transform_figures
    from shardwright.pipelines.quiet import quiet

    with _kept(options) as folder, quiet(folder / _LOG):
        from shardwright.pipelines import transform_methods as ways

        with ways.notebook(options.python) as (method, name):
            methods = Methods(method, name, ways.pixels_only, ways.shards, ways.transform)
            figures = transform_figures(folder, options.images, methods)
    return _told(figures, as_json=options.json)


@contextmanager
def _loader_methods(log: Path) -> Iterator[Methods]:
    """What the loader is compared with; what TensorFlow says meanwhile goes into a file."""
    from shardwright.bench.loader import Methods
    from shardwright.errors import DatasetError
    from shardwright.pipelines.quiet import quiet

    with quiet(log):
        from shardwright.loader.telling import plain_message
        from shardwright.pipelines import loader_methods

        names = [field.name for field in dataclasses.fields(Methods)]
        try:
            yield Methods(**{name: getattr(loader_methods, name) for name in names})
        except loader_methods.LoadingError as error:
            raise DatasetError(plain_message(error)) from None


def _at_least_one(options: argparse.Namespace, *names: str) -> None:
    from shardwright.errors import UsageError

    for name in names:
        if getattr(options, name) < 1:
            raise UsageError(f"--{name}: {getattr(options, name)} is too few. Give 1 or more.")


@contextmanager
def _kept(options: argparse.Namespace) -> Iterator[Path]:
    """The folder that the user names, or one for this call alone."""
    if options.dir is not None:
        yield Path(options.dir).absolute()
    else:
        with tempfile.TemporaryDirectory(prefix="shardwright-bench-") as folder:
            yield Path(folder).absolute()


def _told(figures: list[Figure], *, as_json: bool) -> int:
    if as_json:
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
    from shardwright.pipelines.quiet import quiet

    with quiet(folder / _LOG):
        from shardwright.pipelines.notebook import write_records

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
