"""`shardwright validate`: whether a configuration is valid, with everything that is wrong at once."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from shardwright.config import Config
from shardwright.config.json_schema import SCHEMA_FILE, SCHEMA_LINE, schema_text
from shardwright.config.parse_values import plain_value
from shardwright.config.problems import check_file
from shardwright.config.yaml_text import dump_yaml
from shardwright.pipelines.commands.files import write
from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.commands.settings import config_words, settings_of
from shardwright.running.progress import print_note
from shardwright.text.escaping import escape


def run(options: Namespace) -> int:
    """Prints all errors of a configuration, or its values, or what an ingest would make of the data."""
    if options.editor:
        file = Path(options.config)
        written = file.read_text(encoding="utf-8-sig").splitlines(keepends=True) if file.is_file() else []
        if written:
            # The JSON Schema is written next to the file, which names it in its first line.
            kept = [line for line in written if not line.startswith(SCHEMA_LINE.partition("=")[0])]
            schema = file.with_name(SCHEMA_FILE)
            write(str(schema), schema_text().encode("utf-8"), "--editor")
            write(str(file), "".join([f"{SCHEMA_LINE}\n", *kept]).encode("utf-8"), "--editor")
            print_note(f"{schema}: written; editors with a YAML language server check and complete {file} by it")
    config, errors = check_file(options.config, settings_of(options))
    if config is not None and options.target is not None:
        errors = import_module(f"shardwright.pipelines.compile_{options.target}").target_errors(config)
    if errors or config is None:
        rows = [{"key": error.path, "problem": error.problem, "fix": error.fix} for error in errors]
        finish(options, rows, *map(str, errors))
        return errors[0].exit_code
    values = plain_values(config) if options.show else []
    shown = [*(f"# {escape(note)}" for note in config.notes), dump_yaml(values).removesuffix("\n")] if values else []
    if options.data:
        # Formats and statistics, without which a configuration is checked in half the time.
        from shardwright.pipelines.commands.data_trial import try_data

        row, lines, ends = try_data(config)
        row |= {"configuration": values} if values else {}
        return finish(options, row, *shown, *lines, failed=ends)
    if not shown:
        for note in config.notes:
            print_note(note)
        shown = [f"{options.config}: valid; --data reads the images and annotations, too"]
    following = f"shardwright ingest {config_words(options)} --out DIR"
    if options.target is not None:
        out = "pipeline.json" if options.target == "vertex" else "pipeline.yaml"
        following = f"shardwright compile {config_words(options)} --target {options.target} --out {out}"
    return finish(options, values, *shown, following="" if options.show else following)


def plain_values(config: Config) -> dict[str, Any]:
    """Returns all values of a configuration under their keys in the file."""
    values = {
        field.name: plain_value(getattr(config, field.name))
        for field in dataclasses.fields(config)
        if field.metadata.get("key", True)
    }
    classes = values["input"]["classes"]
    if classes and None in classes.values():
        values["input"]["classes"] = list(classes)
    if config.split.method == "kfold":
        # The shares of the folds follow from their number, and without `test` its default would come back.
        rest = {name: share for name, share in values["split"]["ratios"].items() if name not in ("train", "eval")}
        values["split"]["ratios"] = rest or {"test": 0}
    return values
