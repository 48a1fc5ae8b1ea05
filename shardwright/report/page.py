"""The whole page: one file, nothing fetched, no script."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from shardwright.console import SILENT, Progress
from shardwright.dataset import Dataset
from shardwright.report.collect import DEFAULTS, Collected, Options, collect
from shardwright.report.contacts import BUDGET, Sheets, contact_sheets, duplicate_sheets
from shardwright.report.duplicates import Duplicates, find_duplicates
from shardwright.report.ending import rejected, reproducibility, shards
from shardwright.report.histograms import number
from shardwright.report.looks import images, masks
from shardwright.report.markup import shown
from shardwright.report.overview import overview, statistics
from shardwright.report.style import STYLE

MOST_BYTES = 5_000_000
# For all that is neither a picture nor a list of what the dataset holds.
_RESERVE = 500_000
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Chapter(NamedTuple):
    """A section that another part of the house adds: anomalies, drift, a trained model.

    Attributes:
        ident: its anchor.
        title: its name in the navigation.
        body: the section, ready as HTML.
        findings: what of it is worth a look: (`bad`, `warn` or `good`, a sentence as HTML).
    """

    ident: str
    title: str
    body: str
    findings: tuple[tuple[str, str], ...] = ()


class Seen(NamedTuple):
    """What one pass over a dataset found.

    Attributes:
        found: figures and picks.
        duplicates: groups of images that are the same.
    """

    found: Collected
    duplicates: Duplicates


def see(dataset: Dataset, options: Options = DEFAULTS, progress: Progress = SILENT) -> Seen:
    """Reads a dataset once.

    Args:
        dataset: what the report will be about.
        options: how much is looked at.
        progress: told of every image.

    Raises:
        DatasetError: the dataset is damaged.
    """
    found = collect(dataset, options, progress)
    return Seen(found, find_duplicates(found))


def render(seen: Seen, chapters: Sequence[Chapter] = ()) -> str:
    """Renders the report of a dataset.

    Args:
        seen: what `see` found.
        chapters: further sections, in their order.

    Returns:
        HTML; the same for the same dataset.

    Raises:
        DatasetError: the dataset has changed since it was read.
    """
    found, duplicates = seen
    dataset = found.dataset
    ending = rejected(dataset), shards(dataset), reproducibility(dataset)
    told = sum(len(part.encode("utf-8")) for part in (*ending, *(chapter.body for chapter in chapters)))
    sheets = Sheets(found, min(BUDGET, MOST_BYTES - _RESERVE - told))
    further = [finding for chapter in chapters for finding in chapter.findings]
    parts = [
        ("look", "Worth a look", ""),
        ("funnel", "What came in", ""),
        ("classes", "Classes", overview(found, duplicates, further)),
        *((chapter.ident, chapter.title, chapter.body) for chapter in chapters),
        ("images", "Images", images(found)),
        ("masks", "Masks", masks(found)),
        ("samples", "Samples", contact_sheets(found, sheets)),
        ("duplicates", "Same and alike", duplicate_sheets(found, duplicates, sheets)),
        ("rejected", "Not written", ending[0]),
        ("shards", "Shards", ending[1]),
        ("made", "How it was made", ending[2]),
    ]
    body = "".join(part for _, _, part in parts)
    links = "".join(
        f'<li><a href="#{ident}">{html.escape(title)}</a></li>' for ident, title, _ in parts if f'id="{ident}"' in body
    )
    manifest = dataset.manifest
    short = html.escape(manifest.fingerprint[:12])
    name = f"{number(found.total)} images for {manifest.task}"
    classes = ", ".join(shown(name, 40) for name in manifest.classes[:8]) + (", …" if len(manifest.classes) > 8 else "")
    left = f" {number(sheets.left_out)} pictures were left out to keep it small." if sheets.left_out else ""
    title = f"{name} · dataset {manifest.fingerprint[:12]}"
    return document(
        name,
        "Dataset report",
        f"{classes or 'no classes'} · fingerprint <code>{short}</code>",
        statistics(found, duplicates),
        body,
        title=title,
        links=links,
        ending=left,
    )


def document(
    name: str, kicker: str, lead: str, top: str, body: str, *, title: str = "", links: str = "", ending: str = ""
) -> str:
    """A whole page.

    Args:
        name: its heading.
        kicker: a word above it.
        lead: a line below it, ready as HTML.
        top: what follows in the head, ready as HTML.
        body: the sections, ready as HTML.
        title: name of its window, where it is not the heading.
        links: items of the navigation, ready as HTML.
        ending: a sentence at the end.
    """
    contents = links or f'<li><a href="#main">{html.escape(name)}</a></li>'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{html.escape(title or name)}</title>"
        f"<style>{STYLE}</style></head><body>"
        '<a class="skip" href="#main">Skip to the content</a>'
        f'<header class="wrap"><p class="kicker">{html.escape(kicker)}</p><h1>{html.escape(name)}</h1>'
        f'<p class="lead">{lead}</p>{top}</header>'
        f'<nav aria-label="Sections"><ul class="wrap">{contents}</ul></nav>'
        f'<main id="main" class="wrap">{body}</main>'
        '<footer class="wrap">Written by Shardwright. This file is whole: it fetches nothing and runs no script.'
        f"{html.escape(ending)}</footer></body></html>\n"
    )
