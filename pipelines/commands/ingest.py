"""`shardwright ingest`: makes a dataset of images and annotations."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shardwright.pipelines.commands.files import add_show, picture_file
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import dataset_row, print_json, print_rejects
from shardwright.running.progress import counted, print_note

if TYPE_CHECKING:
    from shardwright.errors import ShardwrightError
    from shardwright.ingest import SurveyedInput


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    ingest = commands.add("ingest")
    ingest.add_argument("config", metavar="CONFIG", help="YAML file")
    ingest.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    ingest.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each core)")
    add_show(ingest, "where the input can be read in several ways, show images under each, in the terminal or as a PNG")
    ingest.add_argument("--json", action="store_true", help="print fingerprint, totals and notes as JSON")
    ingest.set_defaults(command=_ingest)


def _ingest(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.errors import ShardwrightError
    from shardwright.ingest import ingest
    from shardwright.ingest.baseline import resolve_baseline
    from shardwright.storage.mirror import local_folder
    from shardwright.storage.own_names import staging_next_to

    notes: list[str] = []

    def log(note: str) -> None:
        notes.append(note)
        print_note(note)

    config = resolve_baseline(load_config(options.config))
    pictures = picture_file(options.show, config.resolve(config.input.images))
    try:
        manifest = ingest(config, options.out, workers=options.workers, log=log)
    except ShardwrightError as error:
        if error.readings:
            _add_readings(error, options.config, pictures)
        left = local_folder(staging_next_to(options.out))
        if config.run.staging is None and os.path.isdir(left):
            log(f"{left} keeps what was done. The next call with this --out uses it, and deletes it in the end")
        raise
    if options.json:
        print_json({**dataset_row(options.out, manifest), "classes": list(manifest.classes), "notes": notes})
        return 0
    totals = ", ".join(f"{name} {count}" for name, count in sorted(manifest.totals.items()))
    print(f"{options.out}: {counted(len(manifest.shards), 'shard')}; {totals}; fingerprint {manifest.fingerprint}")
    print_rejects(options.out, manifest)
    return 0


def _add_readings(error: ShardwrightError, file: str, pictures: str | None) -> None:
    """Adds the readings of an input to the message of a question, and shows images under each.

    Args:
        error: the question.
        file: the configuration.
        pictures: the PNG of `--show`, empty for the terminal; `None` without the option.
    """
    from shardwright.config.yaml_config import parse_config, read_mapping
    from shardwright.ingest import IngestRecipe, locate, survey_input
    from shardwright.ingest.baseline import without_baseline
    from shardwright.pipelines.init.read_trial import nested
    from shardwright.pipelines.init.show import hint, show_readings

    def survey(options: Mapping[str, Any]) -> SurveyedInput:
        config = without_baseline(parse_config(nested({**read_mapping(file), **options}), base=os.getcwd()))
        return survey_input(IngestRecipe.of(config), locate(config))

    if pictures is None:
        lines = [hint(error.readings)]
    else:
        lines = [
            f"{number}. {reading.meaning}: "
            + "; ".join(f"{path}: {json.dumps(value, ensure_ascii=False)}" for path, value in reading.options.items())
            for number, reading in enumerate(error.readings, 1)
        ]
        lines.append(show_readings(error.readings, survey, pictures))
    error.args = ("\n".join([str(error), *filter(None, lines)]),)
