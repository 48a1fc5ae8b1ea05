"""The differences of two datasets as a page of its own."""

from __future__ import annotations

import html

from shardwright.dataset import Dataset
from shardwright.derived.differences import WAYS, Differences
from shardwright.report.histograms import number
from shardwright.report.markup import card, more, section, shown, table
from shardwright.report.page import document

_OPEN = 30
_WORDS = {
    "added": "New images",
    "removed": "Images that are gone",
    "changed": "Images whose bytes differ",
    "moved": "Images in another split",
    "relabelled": "Images of other classes",
    "masks": "Images whose masks differ",
    "features": "Images whose further features differ",
}


def render_differences(found: Differences, one: Dataset, other: Dataset) -> str:
    """Renders what `find_differences` found of two datasets."""
    both, before, after = found.images
    tiles = [("In both", both), ("In the first", before), ("In the second", after)]
    tiles += [(_WORDS[way], found.counts[way]) for way in WAYS]
    head = "".join(f'<div class="stat"><dt>{name}</dt><dd>{number(count)}</dd></div>' for name, count in tiles)
    body = "".join(_way(way, found) for way in WAYS if found.counts[way])
    if found.labels:
        rows = [(shown(what), number(count)) for what, count in found.labels.most_common(40)]
        body += section(
            "labels",
            "Classes",
            card("From what to what", table(("Change", "Images"), rows, caption="Classes", numbers=(1,))),
        )
    if any(found.only):
        lists = [
            (which, shown(", ".join(names)))
            for which, names in zip(("First", "Second"), found.only, strict=True)
            if names
        ]
        stored = table(("Dataset", "Features"), lists, caption="Features that only one dataset stores")
        body += section("only", "Features", card("Features that only one dataset stores", stored, wide=True))
    if not body:
        body = section("none", "No difference", "<p>All records hold the same.</p>")
    names = " to ".join(f"<code>{html.escape(dataset.manifest.fingerprint[:12])}</code>" for dataset in (one, other))
    return document("Differences of two datasets", "Dataset differences", names, f'<dl class="tiles">{head}</dl>', body)


def _way(way: str, found: Differences) -> str:
    rows = [
        (
            shown(row.key),
            shown(row.before) if row.iou is None else "",
            shown(row.after) if row.iou is None else f"IoU {row.iou:.4f}",
        )
        for row in found.rows
        if row.way == way
    ]
    head = ("Image", "Before", "After")
    parts = [table(head, rows[:_OPEN], caption=_WORDS[way])]
    if len(rows) > _OPEN:
        parts.append(
            more(f"{number(len(rows) - _OPEN)} more", table(head, rows[_OPEN:], caption=f"{_WORDS[way]}, more"))
        )
    left = found.counts[way] - len(rows)
    note = f"{number(left)} more; --json has the counts." if left else ""
    return section(way, _WORDS[way], card(f"{number(found.counts[way])} images", *parts, note=note, wide=True))
