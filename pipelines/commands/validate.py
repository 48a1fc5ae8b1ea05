"""`shardwright validate`: whether a configuration is valid, with everything that is wrong at once."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from shardwright.config import Config
from shardwright.config.json_schema import SCHEMA_FILE, SCHEMA_LINE, schema_text
from shardwright.config.parse_values import plain_value
from shardwright.config.problems import check_file
from shardwright.config.trainer import BLESSED
from shardwright.config.yaml_text import dump_yaml
from shardwright.dataset.ledger import UNLISTED
from shardwright.drift.monitor import open_reference
from shardwright.errors import ShardwrightError
from shardwright.ingest import IngestInput, IngestRecipe, locate, survey_input
from shardwright.ingest.baseline import run_root, without_baseline
from shardwright.ingest.select_spans import becomes_input
from shardwright.ingest.trial import try_images
from shardwright.pipelines.commands.files import write
from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.commands.settings import config_words, settings_of
from shardwright.running.progress import counted, print_note
from shardwright.staging.commit import allowed_rejects
from shardwright.storage.listing import Refusal
from shardwright.text.escaping import escape

# Images that `--data` reads, and rejects that it prints.
_TRIED, _SHOWN = 100, 5


def run(options: Namespace) -> int:
    """Prints all errors of a configuration, or its values, or what an ingest would make of the data."""
    if options.editor:
        _set_up_editor(Path(options.config))
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
        trial = _try_data(config)
        row = {**trial.row, **({"configuration": values} if values else {})}
        return finish(options, row, *shown, *_data_lines(config, trial), failed=trial.ends)
    if not shown:
        for note in config.notes:
            print_note(note)
        shown = [f"{options.config}: valid; --data reads the images and annotations, too"]
    following = f"shardwright ingest {config_words(options)} --out DIR"
    if options.target is not None:
        out = "pipeline.json" if options.target == "vertex" else "pipeline.yaml"
        following = f"shardwright compile {config_words(options)} --target {options.target} --out {out}"
    return finish(options, values, *shown, following="" if options.show else following)


def _set_up_editor(file: Path) -> None:
    """Writes the JSON Schema next to a configuration, and names it in the first line."""
    lines = file.read_text(encoding="utf-8-sig").splitlines(keepends=True) if file.is_file() else []
    if lines:
        kept = [line for line in lines if not line.startswith(SCHEMA_LINE.partition("=")[0])]
        schema = file.with_name(SCHEMA_FILE)
        write(str(schema), schema_text().encode("utf-8"), "--editor")
        write(str(file), "".join([f"{SCHEMA_LINE}\n", *kept]).encode("utf-8"), "--editor")
        print_note(f"{schema}: written; editors with a YAML language server check and complete {file} by it")


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


class _DataTrial(NamedTuple):
    """The data of a configuration, as far as it was tried.

    Attributes:
        surveyed: images and annotations.
        tried: images that were read.
        unread: of these, those that an ingest would reject.
        known: what is rejected without reading the images.
        ends: whether an ingest would end for too many rejects.
    """

    surveyed: IngestInput
    tried: int
    unread: Sequence[Refusal]
    known: Sequence[Refusal]
    ends: bool

    @property
    def row(self) -> dict[str, Any]:
        """The result as plain values, for JSON."""
        rows = [refusal._asdict() for refusal in (*self.known, *self.unread)]
        listed, classes = len(self.surveyed.listing.keys), self.surveyed.survey.classes
        return {"images": listed, "classes": classes, "tried": self.tried, "rejected": rows}


def _try_data(config: Config) -> _DataTrial:
    """Reads the annotations and some images."""
    config = without_baseline(config)
    recipe = IngestRecipe.of(config)
    surveyed = survey_input(recipe, locate(config))
    tried = [image.refusal for image in try_images(surveyed, _TRIED)]
    unread = [refusal for refusal in tried if refusal is not None]
    listing, survey = surveyed.listing, surveyed.survey
    known = [*surveyed.rejected.values(), *listing.refused, *survey.refused]
    inputs, share = len(listing.keys) + len(listing.refused) + len(survey.refused), config.rejects.max_fraction
    unwanted = sum(refusal.code != UNLISTED for refusal in known)
    ends = unwanted > allowed_rejects(share, inputs) or len(unread) > allowed_rejects(share, len(tried))
    return _DataTrial(surveyed, len(tried), unread, known, ends)


def _data_lines(config: Config, trial: _DataTrial) -> Iterator[str]:
    """Yields the images, the classes and what would be rejected."""
    listing, survey = trial.surveyed.listing, trial.surveyed.survey
    yield f"images       {len(listing.keys):,}, {sum(listing.sizes) / 1e6:,.1f} MB"
    yield f"classes      {', '.join(survey.classes) or 'none'}"
    yield f"rejected     {len(trial.known):,}"
    yield f"tried        {counted(trial.tried, 'image')}, of which {len(trial.unread):,} would be rejected"
    for refusal in [*trial.known, *trial.unread][:_SHOWN]:
        yield f"  {escape(refusal.key)}: {refusal.code}: {escape(refusal.reason)}"
    for note in (*config.notes, *survey.notes, *_root_notes(config), *_reference_notes(config)):
        yield f"note         {escape(note)}"
    if trial.ends:
        limit = f"rejects.max_fraction is {config.rejects.max_fraction:g}"
        yield f"An ingest would end with too many rejects: {limit}. Fix or remove these files, or raise it."


def _root_notes(config: Config) -> list[str]:
    """Returns a note if `shardwright run` would refuse the folder of the run."""
    inside = becomes_input(run_root(config), locate(config).images)
    return [f"run.root: {run_root(config)} is inside the input folder, which `run` refuses; see --root"] * inside


def _reference_notes(config: Config) -> list[str]:
    """Returns a note if `shardwright run` would refuse the dataset that images are compared with."""
    drift = config.gate.drift
    if drift is None or drift.reference == BLESSED:
        return []
    try:
        open_reference(config.resolve(drift.reference))
    except ShardwrightError as error:
        return [f"{error} `run` refuses it"]
    return []
