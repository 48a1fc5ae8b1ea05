"""`shardwright diff`: compares two datasets."""

from __future__ import annotations

import shlex
from argparse import Namespace

from shardwright.dataset.reader import ImageDataset
from shardwright.display.html import plain
from shardwright.edit.diff_datasets import CHANGE_KINDS, Differences, find_differences, render_differences
from shardwright.pipelines.commands.files import new_page
from shardwright.pipelines.commands.results import finish, reading
from shardwright.report.page import write_page
from shardwright.running.progress import counted

_ROWS = 20


def run(options: Namespace) -> int:
    """Compares two datasets; returns 1 if they differ."""
    one, other = ImageDataset.open(options.one), ImageDataset.open(options.other)
    page = None
    if options.html is not None:
        title = "Differences of two datasets"
        page = new_page("--html", options.html, one.root, other.root, force=options.force, title=title)
    with reading(other, "comparing records") as shown:
        differences = find_differences(one, other, shown)
    lines = [_text(differences)]
    if page is not None:
        write_page(page, render_differences(differences, one, other))
        lines.append(f"{options.html}: open it in a browser")
    html = shlex.join(["shardwright", "diff", options.one, options.other, "--html", "changes.html"])
    following = html if differences.any and page is None else ""
    return finish(options, differences.to_dict(), *lines, failed=differences.any, following=following)


def _text(differences: Differences) -> str:
    both, first, second = differences.images
    lines = [f"{counted(both, 'image')} in both, {first} in the first, {second} in the second"]
    for way in CHANGE_KINDS:
        if not differences.counts[way]:
            continue
        lines.append(f"{way:<11}{differences.counts[way]}")
        rows = [row for row in differences.rows if row.way == way][:_ROWS]
        for row in rows:
            what = (
                f"{row.after}: IoU {row.iou:.4f}"
                if row.iou is not None
                else " -> ".join(filter(None, (row.before, row.after)))
            )
            lines.append(f"  {plain(row.key)}: {plain(what)}")
        if differences.counts[way] > len(rows):
            lines.append("  …")
    if differences.iou is not None:
        lines.append(f"masks that differ have a mean IoU of {differences.iou:.4f}")
    for which, names in zip(("first", "second"), differences.only, strict=True):
        if names:
            lines.append(f"features only in the {which}: {', '.join(map(plain, names))}")
    if any(differences.classes):
        one, other = (", ".join(map(plain, names)) or "none" for names in differences.classes)
        lines.append(f"classes, whose order gives their numbers: {one} -> {other}")
    if not differences.any:
        lines.append("no difference")
    return "\n".join(lines)
