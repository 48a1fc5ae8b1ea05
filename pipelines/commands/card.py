"""`shardwright card`: describes a dataset or a model for people, or a dataset for Croissant."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ShardwrightError, UsageError
from shardwright.evaluation.figures import Figures
from shardwright.lineage.ancestry import contains, family_of, run_root_of
from shardwright.pipelines.cards import croissant, data_card, model_card
from shardwright.pipelines.commands.files import new_page
from shardwright.pipelines.commands.lineage import describe
from shardwright.pipelines.commands.parsers import refuse_unused
from shardwright.pipelines.commands.results import finish, reading
from shardwright.pipelines.commands.stats import figures_of
from shardwright.report.page import collect_page, write_page
from shardwright.running.progress import quiet_output
from shardwright.storage import read_bytes
from shardwright.text.redaction import published
from shardwright.untrusted.json_text import parse_untrusted_json


def run(options: Namespace) -> int:
    """Writes a card, or prints it."""
    authored = {"license": options.license, "url": options.url, "citeAs": options.cite}
    authored = {name: value for name, value in authored.items() if value is not None}
    if authored and not options.croissant:
        raise UsageError("--license, --url, --cite: are for Croissant. Give --croissant, or write them into the card.")
    of_dataset = contains(options.path.rstrip("/"), MANIFEST_FILE)
    if of_dataset:
        refuse_unused(options, "the card of a dataset", "--search")
    within = [options.path] if of_dataset else []
    target = None if options.out == "-" else new_page("--out", options.out, *within, force=options.force)
    if of_dataset:
        text = _of_dataset(options, authored)
    elif options.croissant:
        raise UsageError(
            f"--croissant: {options.path} is not a dataset. Give a folder that `shardwright ingest` wrote."
        )
    else:
        text = card_of_model(options.path, options.search, _title(options))
    if target is None:
        return finish(options, {"text": text}, text.removesuffix("\n"))
    write_page(target, text)
    return finish(options, {"card": options.out, "bytes": len(text.encode("utf-8"))}, f"{options.out}: written")


def _title(options: Namespace) -> str:
    return str(options.name or os.path.basename(os.path.normpath(options.path)))


def _of_dataset(options: Namespace, authored: dict[str, str]) -> str:
    dataset = ImageDataset.open(options.path)
    with quiet_output(options.out == "-"), reading(dataset, "reading records") as shown:
        if options.croissant:
            document = croissant(dataset, _title(options), authored, shown)
            return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        figures = figures_of(collect_page(dataset, progress=shown))
    return data_card(dataset.manifest, figures, _title(options))


def card_of_model(
    path: str, search: Sequence[str], title: str, *, figures: Figures | None = None, about: str = ""
) -> str:
    """Returns the card of a model. Places in it are relative to the folder of its run: a card is published.

    Args:
        path: the model, see `family_of`.
        search: further folders with its ancestors and evaluations.
        title: its title.
        figures: of its evaluation; by default those of the first evaluation that is found.
        about: see `model_card`.
    """
    start, family = family_of(path, search)
    described = describe(start, family)
    places = [evaluation["place"] for evaluation in described["evaluations"]]
    shown = published(described, run_root_of(start.place) or "")
    return model_card(shown, figures or _figures(places), _classes(start.place), title, about)


def _figures(places: list[str]) -> Figures | None:
    """Returns the figures of the first evaluation that can be read."""
    from shardwright.components.evaluator.result_files import read_evaluation

    for place in places:
        try:
            return read_evaluation(place).figures
        except (ShardwrightError, OSError):
            continue
    return None


def _classes(place: str) -> list[str]:
    """Returns the names of a model's classes; none if its file cannot be read."""
    for folder in (place, f"{place}/Format-Serving"):
        try:
            value: Any = parse_untrusted_json(read_bytes(f"{folder}/assets/classes.json"))
        except (OSError, ValueError):
            continue
        names = value.get("classes", []) if isinstance(value, dict) else value
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return []
