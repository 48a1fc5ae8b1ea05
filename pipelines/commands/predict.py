"""`shardwright predict`: writes a model's predictions for images, as a submission table or as TFRecord files."""

from __future__ import annotations

import csv
import os
import sys
from argparse import Namespace
from contextlib import suppress
from typing import TYPE_CHECKING

from shardwright.errors import UsageError
from shardwright.evaluation.submission import LAYOUTS, layout_of_header
from shardwright.pipelines.commands.files import check_free
from shardwright.pipelines.commands.results import finish
from shardwright.running.progress import print_note
from shardwright.storage import open_table
from shardwright.storage.limits import bounded_lines
from shardwright.text.escaping import escape

if TYPE_CHECKING:
    from shardwright.components.predictor.other_model import Stated
    from shardwright.components.predictor.predict_images import RunParts


def run(options: Namespace) -> int:
    """Predicts; returns 1 if an image could not be read."""
    for option in options.beam or ():
        if not option.startswith("--"):
            raise UsageError(f"--beam {option}: is not an option of Beam, which ignores it. Write --beam=--NAME=VALUE.")
    if options.format == "csv":
        check_free("--out", os.path.expanduser(options.out), force=options.force)
    dialect = options.dialect if options.like is None else _dialect_of(options.like)
    from shardwright.components.predictor.predict_images import PredictOptions, predict
    from shardwright.pipelines.runs.logs import quiet_libraries

    stated = stated_of(options)
    model = last_model(options.model) if options.unblessed else options.model
    with quiet_libraries():
        made = predict(
            model,
            options.images,
            options.out,
            PredictOptions(
                options.format, options.split, dialect, options.texts, options.batch_size, options.trust_model, stated
            ),
            quiet=options.json,
            run_parts=_on_beam(options.beam) if options.beam else None,
            staging_root=options.staging,
        )
    layout = f" in the layout of {made.dialect}" if made.dialect else ""
    code = finish(
        options,
        {**vars(made), "model": model, "failures": [failure._asdict() for failure in made.failures]},
        *(f"  {escape(note)}" for note in made.notes),
        f"{made.out}: {made.images} images, {made.rows} rows{layout}",
        failed=bool(made.failures),
    )
    for failure in made.failures:
        print(f"shardwright: {escape(failure.key)}: {failure.code}: {escape(failure.reason)}", file=sys.stderr)
    return code


def stated_of(options: Namespace) -> Stated:
    """Returns what a call says about a model that Shardwright did not export."""
    from shardwright.components.predictor.other_model import Stated

    return Stated(
        options.preprocess or "",
        os.path.abspath(options.dataset) if options.dataset else "",
        tuple(options.classes),
        tuple(options.size) if options.size else None,
        options.outputs,
    )


def last_model(run: str) -> str:
    """Returns the model that a run trained last, and says which."""
    from shardwright.pipelines.runs.metadata_store import last_model

    model = last_model(os.path.abspath(run))
    print_note(f"--unblessed: {model}")
    return model


def _on_beam(beam_options: list[str]) -> RunParts:
    """Returns a function that predicts parts on the runner of these options."""
    import apache_beam as beam

    from shardwright.components.predictor.predict_images import on_beam
    from shardwright.components.runtime.beam import in_process_beam

    def make_pipeline() -> beam.Pipeline:
        with in_process_beam():
            return beam.Pipeline(argv=list(beam_options))

    return on_beam(make_pipeline, beam_options)


def _dialect_of(path: str) -> str:
    """Returns the layout whose header a table has."""
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
