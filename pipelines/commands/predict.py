"""`shardwright predict`: writes a model's predictions for images, as a submission table or as TFRecord files."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.files import add_force, add_trust, check_free
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.text.escaping import escape

if TYPE_CHECKING:
    from shardwright.components.predictor.predict_images import RunParts

# Those of `evaluation.submission`, which the help of all commands does not import.
DIALECTS = (
    *("clouds", "severstal", "severstal-first", "airbus", "dsb2018", "tgs", "carvana", "siim", "sartorius"),
    *("uw-madison", "coco"),
)


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    predict = commands.add("predict")
    predict.add_argument(
        "model", metavar="MODEL", help="folder of a run, folder that models are pushed to, or SavedModel"
    )
    predict.add_argument("images", metavar="IMAGES", help="folder or glob of images, or a dataset")
    predict.add_argument("--out", required=True, metavar="PATH", help="CSV to write, or folder of TFRecord files")
    predict.add_argument(
        "--format", choices=("csv", "tfrecord"), default="csv", help="a table, or TFRecord files (default csv)"
    )
    predict.add_argument("--split", metavar="NAME", help="split of a dataset (default: all)")
    predict.add_argument(
        "--unblessed", action="store_true", help="MODEL is a run: its last model, though it is not blessed"
    )
    layout = predict.add_mutually_exclusive_group()
    layout.add_argument("--dialect", choices=DIALECTS, help="layout of masks (default: that of the model's own table)")
    layout.add_argument("--like", metavar="CSV", help="the layout of this table, e.g. a sample submission")
    predict.add_argument("--texts", metavar="CSV", help="texts of the images, for a model that reads texts")
    predict.add_argument("--batch-size", type=int, default=16, metavar="N", help="images per batch (default 16)")
    predict.add_argument(
        "--beam", action="append", metavar="OPTION", help="an option of Beam, whose workers then predict; repeatable"
    )
    predict.add_argument("--staging", metavar="PATH", help="folder or URL that all of Beam's workers reach")
    add_trust(predict)
    add_force(predict)
    predict.add_argument("--json", action="store_true", help="print what was done as JSON")
    predict.set_defaults(command=_predict)


def _predict(options: argparse.Namespace) -> int:
    from shardwright.errors import UsageError

    for option in options.beam or ():
        if not option.startswith("--"):
            raise UsageError(f"--beam {option}: is not an option of Beam, which ignores it. Write --beam=--NAME=VALUE.")
    if options.format == "csv":
        check_free("--out", os.path.expanduser(options.out), force=options.force)
    dialect = options.dialect if options.like is None else _dialect_of(options.like)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from shardwright.components.predictor.predict_images import PredictOptions, predict
    from shardwright.pipelines.runs.logs import quiet_libraries

    model = _last_model(options.model) if options.unblessed else options.model
    with quiet_libraries():
        found = predict(
            model,
            options.images,
            options.out,
            PredictOptions(
                options.format, options.split, dialect, options.texts, options.batch_size, options.trust_model
            ),
            quiet=options.json,
            run_parts=_on_beam(options.beam) if options.beam else None,
            staging_root=options.staging,
        )
    if options.json:
        failures = [failure._asdict() for failure in found.failures]
        print_json({**vars(found), "model": model, "failures": failures})
    else:
        layout = f" in the layout of {found.dialect}" if found.dialect else ""
        for note in found.notes:
            print(f"  {escape(note)}")
        print(f"{found.out}: {found.images} images, {found.rows} rows{layout}")
    for failure in found.failures:
        print(f"shardwright: {escape(failure.key)}: {failure.code}: {escape(failure.reason)}", file=sys.stderr)
    return 1 if found.failures else 0


def _last_model(run: str) -> str:
    """Returns the model that a run trained last, and says which."""
    from shardwright.pipelines.runs.metadata_store import last_model
    from shardwright.running.progress import print_note

    model = last_model(os.path.abspath(run))
    print_note(f"--unblessed: {model}")
    return model


def _on_beam(given: list[str]) -> RunParts:
    """Returns a function that predicts parts on the runner of these options."""
    import apache_beam as beam

    from shardwright.components.predictor.predict_images import on_beam
    from shardwright.components.runtime.beam import in_process_beam

    def make_pipeline() -> beam.Pipeline:
        with in_process_beam():
            return beam.Pipeline(argv=list(given))

    return on_beam(make_pipeline, given)


def _dialect_of(path: str) -> str:
    """Returns the layout whose header a table has."""
    from shardwright.errors import UsageError
    from shardwright.evaluation.submission import LAYOUTS, layout_of_header
    from shardwright.storage import open_table
    from shardwright.storage.limits import bounded_lines

    header: list[str] = []
    with open_table(path) as file, suppress(ValueError, csv.Error):  # It is not a table, and has no known header.
        header = next(csv.reader(bounded_lines(file)), [])
    name = layout_of_header(header)
    if name is None:
        known = "; ".join(f"{name}: {','.join(layout.header)}" for name, layout in LAYOUTS.items())
        raise UsageError(
            f"--like {path}: its header {','.join(header)[:200]!r} is of no known layout. Use one of: {known}."
        )
    return name
