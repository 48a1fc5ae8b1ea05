"""`shardwright validate`: whether a configuration is valid, with everything that is wrong at once."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.progress import counted, print_note

if TYPE_CHECKING:
    from shardwright.config import Config

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
    if options.show:
        _print_values(config, as_json=options.json)
    elif options.json and not options.data:
        print("[]")
    if options.data:
        return _check_data(config, as_json=options.json)
    if not options.show and not options.json:
        for note in config.notes:
            print_note(note)
        print(f"{options.config}: valid; --data reads the images and annotations, too")
    return 0


def _print_values(config: Config, *, as_json: bool) -> None:
    from shardwright.config.yaml_text import dump_yaml
    from shardwright.escaping import escape

    values = plain_values(config)
    if as_json:
        print_json(values)
    else:
        for note in config.notes:
            print(f"# {escape(note)}")
        print(dump_yaml(values), end="")


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


def _check_data(config: Config, *, as_json: bool) -> int:
    """Prints the images, the classes and what would be rejected; returns 1 if an ingest would end for that."""
    from shardwright.dataset.ledger import UNLISTED
    from shardwright.escaping import escape
    from shardwright.ingest import IngestRecipe, locate, survey_input, try_images
    from shardwright.ingest.baseline import without_baseline
    from shardwright.staging.commit import allowed_rejects

    config = without_baseline(config)
    recipe = IngestRecipe.of(config)
    surveyed = survey_input(recipe, locate(config))
    trial = try_images(recipe, surveyed, _TRIED)
    listing, survey = surveyed.listing, surveyed.survey
    known = [*surveyed.rejected.values(), *listing.refused, *survey.refused]
    inputs, share = len(listing.keys) + len(listing.refused) + len(survey.refused), config.rejects.max_fraction
    unwanted = sum(refusal.code != UNLISTED for refusal in known)
    ends = unwanted > allowed_rejects(share, inputs) or len(trial.rejected) > allowed_rejects(share, trial.tried)
    rejects = [*known, *trial.rejected]
    if as_json:
        rows = [refusal._asdict() for refusal in rejects]
        print_json({"images": len(listing.keys), "classes": survey.classes, "tried": trial.tried, "rejected": rows})
        return int(ends)
    print(f"images       {len(listing.keys):,}, {sum(listing.sizes) / 1e6:,.1f} MB")
    print(f"classes      {', '.join(survey.classes) or 'none'}")
    print(f"rejected     {len(known):,}")
    print(f"tried        {counted(trial.tried, 'image')}, of which {len(trial.rejected):,} would be rejected")
    for refusal in rejects[:_SHOWN]:
        print(f"  {escape(refusal.key)}: {refusal.code}: {escape(refusal.reason)}")
    for note in (*config.notes, *survey.notes):
        print(f"note         {note}")
    if ends:
        print("An ingest would end with too many rejects. Fix the input, or raise rejects.max_fraction.")
    return int(ends)
