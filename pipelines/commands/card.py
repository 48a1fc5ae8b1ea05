"""`shardwright card`: describes a dataset or a model for people, or a dataset for Croissant."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from shardwright.pipelines.commands.files import add_force, new_page
from shardwright.pipelines.commands.parsers import Commands, refuse_unused
from shardwright.pipelines.commands.results import print_json

if TYPE_CHECKING:
    from shardwright.evaluation.figures import Figures


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    card = commands.add("card")
    card.add_argument(
        "path", metavar="PATH", help="a dataset, a model, or a run's folder (its blessed model); or a URL"
    )
    card.add_argument("--out", metavar="FILE", help="file to write; - prints it (default)", default="-")
    card.add_argument("--croissant", action="store_true", help="of a dataset: JSON-LD with the SHA-256 of all files")
    card.add_argument("--name", metavar="TEXT", help="title (default: name of the folder)")
    card.add_argument("--license", metavar="URL", help="for Croissant: the license of the images")
    card.add_argument("--url", metavar="URL", help="for Croissant: the page of the dataset")
    card.add_argument("--cite", metavar="TEXT", help="for Croissant: how to cite it")
    card.add_argument(
        "--search", action="append", default=[], metavar="DIR", help="of a model: also look for its sources below this"
    )
    card.add_argument("--json", action="store_true", help="print the file's path, or the text, as JSON")
    add_force(card)
    card.set_defaults(command=_card)


def _card(options: argparse.Namespace) -> int:
    from shardwright.dataset.manifest import MANIFEST_FILE
    from shardwright.errors import UsageError
    from shardwright.lineage.ancestry import contains
    from shardwright.report.page import write_page

    given = {"license": options.license, "url": options.url, "citeAs": options.cite}
    given = {name: value for name, value in given.items() if value is not None}
    if given and not options.croissant:
        raise UsageError("--license, --url, --cite: are for Croissant. Give --croissant, or write them into the card.")
    of_dataset = contains(options.path.rstrip("/"), MANIFEST_FILE)
    if of_dataset:
        refuse_unused(options, "the card of a dataset", "--search")
    within = [options.path] if of_dataset else []
    target = None if options.out == "-" else new_page("--out", options.out, *within, force=options.force)
    if of_dataset:
        text = _of_dataset(options, given)
    elif options.croissant:
        raise UsageError(
            f"--croissant: {options.path} is not a dataset. Give a folder that `shardwright ingest` wrote."
        )
    else:
        text = _of_model(options)
    if target is not None:
        write_page(target, text)
    if options.json:
        found = {"text": text} if options.out == "-" else {"card": options.out, "bytes": len(text.encode("utf-8"))}
        print_json(found)
    else:
        sys.stdout.write(text if options.out == "-" else f"{options.out}: written\n")
    return 0


def _title(options: argparse.Namespace) -> str:
    return str(options.name or os.path.basename(os.path.normpath(options.path)))


def _of_dataset(options: argparse.Namespace, given: dict[str, str]) -> str:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.pipelines.cards import croissant, data_card
    from shardwright.pipelines.commands.stats import figures_of
    from shardwright.report.page import collect_page
    from shardwright.running.progress import progress

    dataset = ImageDataset.open(options.path)
    total = sum(shard.records for shard in dataset.manifest.shards)
    quiet = options.out == "-" or options.json
    if options.croissant:
        with progress(total, "hashing shards", quiet=quiet) as shown:
            document = croissant(dataset, _title(options), given, shown)
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    with progress(total, "reading records", quiet=quiet) as shown:
        figures = figures_of(collect_page(dataset, progress=shown))
    return data_card(dataset.manifest, figures, _title(options))


def _of_model(options: argparse.Namespace) -> str:
    from shardwright.lineage.ancestry import family_of
    from shardwright.pipelines.cards import model_card
    from shardwright.pipelines.commands.lineage import describe

    start, family = family_of(options.path, options.search)
    described = describe(start, family)
    places = [one["place"] for one in described["evaluations"]]
    return model_card(described, _figures(places), _classes(start.place), _title(options))


def _figures(places: list[str]) -> Figures | None:
    """Returns the figures of the first evaluation that can be read."""
    from shardwright.components.evaluator.result_files import read_evaluation
    from shardwright.errors import ShardwrightError

    for place in places:
        try:
            return read_evaluation(place).figures
        except (ShardwrightError, OSError):
            continue
    return None


def _classes(place: str) -> list[str]:
    """Returns the names of a model's classes; none if its file cannot be read."""
    from shardwright.storage import read_bytes
    from shardwright.untrusted.json_text import parse_untrusted_json

    for folder in (place, f"{place}/Format-Serving"):
        try:
            found: Any = parse_untrusted_json(read_bytes(f"{folder}/assets/classes.json"))
        except (OSError, ValueError):
            continue
        names = found.get("classes", []) if isinstance(found, dict) else found
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return []
