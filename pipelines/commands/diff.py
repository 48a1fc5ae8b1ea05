"""`shardwright diff`: compares two datasets, as a table, as JSON or as a page."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.files import add_force, new_page
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import counted

if TYPE_CHECKING:
    from shardwright.edit.diff_datasets import Differences

_ROWS = 20


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    diff = commands.add("diff")
    diff.add_argument("one", metavar="A", help="the earlier dataset")
    diff.add_argument("other", metavar="B", help="the later one")
    diff.add_argument("--html", metavar="FILE", help="also write a page")
    add_force(diff)
    diff.add_argument("--json", action="store_true", help="print all of it as JSON")
    diff.set_defaults(command=_diff)


def _diff(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.diff_datasets import find_differences
    from shardwright.running.progress import progress

    one, other = ImageDataset.open(options.one), ImageDataset.open(options.other)
    page = None
    if options.html is not None:
        title = "Differences of two datasets"
        page = new_page("--html", options.html, one.root, other.root, force=options.force, title=title)
    total = sum(shard.records for shard in other.manifest.shards)
    with progress(total, "comparing records", quiet=options.json) as shown:
        found = find_differences(one, other, shown)
    if page is not None:
        from shardwright.edit.diff_datasets import render_differences
        from shardwright.report.page import write_page

        write_page(page, render_differences(found, one, other))
    if options.json:
        print_json(found.to_dict())
    else:
        print(_text(found))
        if page is not None:
            print(f"{options.html}: open it in a browser")
    return 1 if found.any else 0


def _text(found: Differences) -> str:
    from shardwright.display.html import plain
    from shardwright.edit.diff_datasets import CHANGE_KINDS

    both, first, second = found.images
    lines = [f"{counted(both, 'image')} in both, {first} in the first, {second} in the second"]
    for way in CHANGE_KINDS:
        if not found.counts[way]:
            continue
        lines.append(f"{way:<11}{found.counts[way]}")
        rows = [row for row in found.rows if row.way == way][:_ROWS]
        for row in rows:
            what = f"IoU {row.iou:.4f}" if row.iou is not None else " -> ".join(filter(None, (row.before, row.after)))
            lines.append(f"  {plain(row.key)}: {plain(what)}")
        if found.counts[way] > len(rows):
            lines.append("  …")
    if found.iou is not None:
        lines.append(f"masks that differ have a mean IoU of {found.iou:.4f}")
    for which, names in zip(("first", "second"), found.only, strict=True):
        if names:
            lines.append(f"features only in the {which}: {', '.join(map(plain, names))}")
    if any(found.classes):
        one, other = (", ".join(map(plain, names)) or "none" for names in found.classes)
        lines.append(f"classes, whose order gives their numbers: {one} -> {other}")
    if not found.any:
        lines.append("no difference")
    return "\n".join(lines)
