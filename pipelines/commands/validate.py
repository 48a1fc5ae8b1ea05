"""`shardwright validate`: whether a configuration is valid, with everything that is wrong at once."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.progress import print_note

if TYPE_CHECKING:
    from shardwright.config import Config


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    validate = commands.add("validate")
    validate.add_argument("config", metavar="CONFIG", help="YAML file")
    validate.add_argument("--show", action="store_true", help="print every value, defaults included, as YAML")
    validate.add_argument("--data", action="store_true", help="list the images and read the annotations, too")
    validate.add_argument("--json", action="store_true", help="print the errors, or with --show the values, as JSON")
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
    if options.show:
        _print_values(config, as_json=options.json)
    elif options.json:
        print("[]")
    if options.data:
        _print_data(config, quiet=options.json)
    elif not options.show and not options.json:
        for note in config.notes:
            print_note(note)
        print(f"{options.config}: valid; --data reads the images and annotations, too")
    return 0


def _print_values(config: Config, *, as_json: bool) -> None:
    import yaml

    values = plain_values(config)
    if as_json:
        print_json(values)
    else:
        for note in config.notes:
            print(f"# {note}")
        print(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), end="")


def plain_values(config: Config) -> dict[str, Any]:
    """Returns all values of a configuration under their keys in the file."""
    from shardwright.config.parsing import plain_value

    values = {
        field.name: plain_value(getattr(config, field.name))
        for field in dataclasses.fields(config)
        if field.metadata.get("key", True)
    }
    classes = values["input"]["classes"]
    if classes and None in classes.values():
        values["input"]["classes"] = list(classes)
    return values


def _print_data(config: Config, *, quiet: bool) -> None:
    from shardwright.ingest import IngestRecipe, locate, survey_input
    from shardwright.ingest.baseline import without_baseline

    config = without_baseline(config)
    surveyed = survey_input(IngestRecipe.of(config), locate(config))
    if quiet:
        return
    listing, survey = surveyed.listing, surveyed.survey
    refused = len(surveyed.rejected) + len(listing.refused) + len(survey.refused)
    print(f"images       {len(listing.keys):,}, {sum(listing.sizes) / 1e6:,.1f} MB")
    print(f"classes      {', '.join(survey.classes) or 'none'}")
    print(f"rejected     {refused:,}")
    for note in (*config.notes, *survey.notes):
        print(f"note         {note}")
