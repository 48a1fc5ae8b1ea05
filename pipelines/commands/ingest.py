"""`shardwright ingest`: makes a dataset of images and annotations."""

from __future__ import annotations

import json
import os
import shlex
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from shardwright.config.yaml_config import parse_config, read_mapping
from shardwright.display.html import plain
from shardwright.errors import ShardwrightError
from shardwright.ingest import IngestInput, IngestRecipe, ingest, locate, survey_input
from shardwright.ingest.baseline import resolve_baseline, without_baseline
from shardwright.pipelines.commands.results import dataset_facts, dataset_row, finish, rejected_lines
from shardwright.pipelines.commands.settings import configuration
from shardwright.running.progress import counted, print_note
from shardwright.storage.mirror import local_folder
from shardwright.storage.own_names import staging_next_to

_LINE = 500


def run(options: Namespace) -> int:
    """Makes the dataset."""
    notes: list[str] = []

    def log(note: str) -> None:
        notes.append(note)
        print_note(note)

    config = resolve_baseline(configuration(options))
    pictures = None
    if options.show is not None:
        from shardwright.pipelines.commands.files import picture_file

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
    facts = dataset_facts(manifest)
    if manifest.totals["duplicate"]:
        facts["images"] += f", {counted(manifest.totals['duplicate'], 'duplicate')}"
    return finish(
        options,
        {**dataset_row(options.out, manifest), "classes": list(manifest.classes), "notes": notes},
        f"{options.out}: {counted(manifest.totals['written'], 'image')} in {counted(len(manifest.shards), 'shard')}",
        *(f"  {name:<9}{plain(fact or 'none', _LINE)}" for name, fact in facts.items() if not options.quiet),
        *rejected_lines(options.out, manifest),
        following=f"shardwright report {shlex.quote(options.out)}",
    )


def _add_readings(error: ShardwrightError, file: str, pictures: str | None) -> None:
    """Adds the readings of an input to the message of a question, and shows images under each.

    Args:
        error: the question.
        file: the configuration.
        pictures: the PNG of `--show`, empty for the terminal; `None` without the option.
    """
    # Reports and pictures, which a run without a question does not need.
    from shardwright.pipelines.init.read_trial import nested
    from shardwright.pipelines.init.show import hint, show_readings

    def survey(options: Mapping[str, Any]) -> IngestInput:
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
