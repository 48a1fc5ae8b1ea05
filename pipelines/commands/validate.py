"""`shardwright validate`: whether a configuration is valid, with everything that is wrong at once."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import counted, print_note

if TYPE_CHECKING:
    from shardwright.config import Config
    from shardwright.ingest.survey import SurveyedInput
    from shardwright.storage.listing import Refusal

# Images that `--data` reads, and rejects that it prints.
_TRIED, _SHOWN = 100, 5


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    validate = commands.add("validate")
    validate.add_argument("config", metavar="CONFIG", help="YAML file")
    validate.add_argument("--show", action="store_true", help="print every value, defaults included, as YAML")
    validate.add_argument("--data", action="store_true", help="read the annotations, and try up to 100 images, too")
    validate.add_argument(
        "--json", action="store_true", help="print the errors, with --show the values, with --data the rejects, as JSON"
    )
    validate.set_defaults(command=_validate)


def _validate(options: argparse.Namespace) -> int:
    from shardwright.config.problems import check_file

    config, errors = check_file(options.config)
    if config is None:
        if options.json:
            rows = [{"key": error.path, "problem": error.problem, "fix": error.fix} for error in errors]
            print_json(rows)
        else:
            print("\n".join(str(error) for error in errors))
        return errors[0].exit_code
    if options.json:
        return _print_json(config, show=options.show, data=options.data)
    if options.show:
        _print_values(config)
    if options.data:
        return _print_data(config, _try_data(config))
    if not options.show:
        for note in config.notes:
            print_note(note)
        print(f"{options.config}: valid; --data reads the images and annotations, too")
    return 0


def _print_json(config: Config, *, show: bool, data: bool) -> int:
    """Prints one document: the values, the data with the values if they are asked for, too, or no errors."""
    values = plain_values(config) if show else []
    if not data:
        print_json(values)
        return 0
    trial = _try_data(config)
    print_json({**trial.row, **({"configuration": values} if show else {})})
    return int(trial.ends)


def _print_values(config: Config) -> None:
    from shardwright.config.yaml_text import dump_yaml
    from shardwright.text.escaping import escape

    for note in config.notes:
        print(f"# {escape(note)}")
    print(dump_yaml(plain_values(config)), end="")


def plain_values(config: Config) -> dict[str, Any]:
    """Returns all values of a configuration under their keys in the file."""
    from shardwright.config.parse_values import plain_value

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

    surveyed: SurveyedInput
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
    from shardwright.dataset.ledger import UNLISTED
    from shardwright.ingest import IngestRecipe, locate, survey_input
    from shardwright.ingest.baseline import without_baseline
    from shardwright.ingest.trial import try_images
    from shardwright.staging.commit import allowed_rejects

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


def _print_data(config: Config, trial: _DataTrial) -> int:
    """Prints the images, the classes and what would be rejected; returns 1 if an ingest would end for that."""
    from shardwright.text.escaping import escape

    listing, survey = trial.surveyed.listing, trial.surveyed.survey
    print(f"images       {len(listing.keys):,}, {sum(listing.sizes) / 1e6:,.1f} MB")
    print(f"classes      {', '.join(survey.classes) or 'none'}")
    print(f"rejected     {len(trial.known):,}")
    print(f"tried        {counted(trial.tried, 'image')}, of which {len(trial.unread):,} would be rejected")
    for refusal in [*trial.known, *trial.unread][:_SHOWN]:
        print(f"  {escape(refusal.key)}: {refusal.code}: {escape(refusal.reason)}")
    for note in (*config.notes, *survey.notes, *_root_notes(config), *_reference_notes(config)):
        print(f"note         {escape(note)}")
    if trial.ends:
        limit = f"rejects.max_fraction is {config.rejects.max_fraction:g}"
        print(f"An ingest would end with too many rejects: {limit}. Fix or remove these files, or raise it.")
    return int(trial.ends)


def _root_notes(config: Config) -> list[str]:
    """Returns a note if `shardwright run` would refuse the folder of the run."""
    from shardwright.ingest import locate
    from shardwright.ingest.baseline import run_root
    from shardwright.ingest.select_spans import becomes_input

    inside = becomes_input(run_root(config), locate(config).images)
    return [f"run.root: {run_root(config)} is inside the input folder, which `run` refuses; see --root"] * inside


def _reference_notes(config: Config) -> list[str]:
    """Returns a note if `shardwright run` would refuse the dataset that images are compared with."""
    from shardwright.config.trainer import BLESSED
    from shardwright.drift.monitor import open_reference
    from shardwright.errors import ShardwrightError

    drift = config.gate.drift
    if drift is None or drift.reference == BLESSED:
        return []
    try:
        open_reference(config.resolve(drift.reference))
    except ShardwrightError as error:
        return [f"{error} `run` refuses it"]
    return []
