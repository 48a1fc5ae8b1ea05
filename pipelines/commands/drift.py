"""`shardwright drift`: checks whether images have changed, between two datasets or folders, or between splits."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.files import add_force, new_page
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.text.escaping import escape

if TYPE_CHECKING:
    from pathlib import Path

    from shardwright.drift.compare import Comparison
    from shardwright.drift.monitor import DriftCheck


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    drift = commands.add("drift")
    drift.add_argument("reference", metavar="DIR", help="the dataset with the expected images")
    drift.add_argument(
        "current", metavar="DIR", nargs="?", help="a dataset, or a folder of images; without it splits are compared"
    )
    drift.add_argument("--count", type=int, default=2000, metavar="N", help="images of each side (default 2000)")
    drift.add_argument("--alpha", type=float, default=None, metavar="P", help="chance of a false alarm (default 0.006)")
    drift.add_argument("--ignore", nargs="*", default=[], metavar="NAME", help="measures that may change")
    drift.add_argument("--html", metavar="FILE", help="also write a page that shows the images that stand out")
    add_force(drift)
    drift.add_argument("--json", action="store_true", help="print the findings as JSON")
    drift.set_defaults(command=_drift)


def _drift(options: argparse.Namespace) -> int:
    from shardwright.config.evaluation import ALPHA
    from shardwright.dataset.manifest import MANIFEST_FILE
    from shardwright.lineage.ancestry import contains

    page = None
    if options.html is not None:
        datasets = [path for path in (options.reference, options.current) if path and contains(path, MANIFEST_FILE)]
        page = new_page("--html", options.html, *datasets, force=options.force, title=r"Have the images changed\?")
    alpha = ALPHA if options.alpha is None else options.alpha
    checks = _between_splits(options, alpha) if options.current is None else [_between_datasets(options, alpha)]
    found = [one.comparison for one in checks]
    drifted = any(comparison.drifted for comparison in found)
    if page is not None:
        _write_page(page, options, checks)
    if options.json:
        rows = [comparison.to_dict() for comparison in found]
        print_json({"drifted": drifted, "comparisons": rows})
    else:
        print("\n\n".join(_text(comparison) for comparison in found))
        if options.html is not None:
            print(f"{options.html}: open it in a browser")
    # Splits may be small. But two named sides with too few images must not pass for unchanged.
    decided = options.current is None or all(comparison.enough for comparison in found)
    unreadable = any(comparison.unreadable for comparison in found)
    return 1 if drifted or not decided or unreadable else 0


def _write_page(target: Path, options: argparse.Namespace, checks: list[DriftCheck]) -> None:
    """Writes the page; its images come from the dataset or folder on the current side."""
    from shardwright.drift.chapter import file_tiles, record_tiles
    from shardwright.drift.monitor import drift_page
    from shardwright.report.contact_sheets import sheets_of
    from shardwright.report.page import write_page

    place = options.reference if options.current is None else options.current
    # If no image could be measured, the page shows none.
    dataset = place if checks[0].current.places else None
    tile = file_tiles() if dataset is None else record_tiles(sheets_of(dataset))
    write_page(target, drift_page(checks, tile))


def _between_datasets(options: argparse.Namespace, alpha: float) -> DriftCheck:
    from shardwright.config.evaluation import DriftConfig
    from shardwright.drift.monitor import check_paths
    from shardwright.running.progress import progress

    config = DriftConfig(options.reference, options.count, alpha, tuple(options.ignore))
    with progress(2 * options.count, "measuring images", quiet=options.json) as shown:
        return check_paths(config, options.current, shown)


def _between_splits(options: argparse.Namespace, alpha: float) -> list[DriftCheck]:
    from shardwright.config.evaluation import SkewConfig
    from shardwright.dataset.reader import ImageDataset
    from shardwright.drift.monitor import check_splits
    from shardwright.errors import UsageError
    from shardwright.running.progress import progress

    config = SkewConfig(options.count, alpha, tuple(options.ignore))
    dataset = ImageDataset.open(options.reference)
    if len(dataset.splits) < 2:
        raise UsageError(f"{dataset.root}: has one split only. Give another dataset or a folder to compare with.")
    with progress(len(dataset.splits) * options.count, "measuring images", quiet=options.json) as shown:
        return check_splits(dataset, config, shown)


def _text(comparison: Comparison) -> str:
    from shardwright.display.histograms import plain_number
    from shardwright.drift.compare import LEAST

    # The last column is for --ignore, and for gate.drift.ignore.
    rows: list[tuple[str, ...]] = [("measure", "verdict", "difference", "chance", "before", "now", "name")]
    for finding in comparison.findings:
        means = ["-" if mean is None else plain_number(mean) for mean in (finding.reference, finding.current)]
        verdict = "CHANGED" if finding.drifted else "as before"
        rows.append((finding.words, verdict, f"{finding.distance:.3f}", f"{finding.p:.2g}", *means, finding.measure))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    count = len(comparison.drifted)
    verdict = f"{count} of {len(comparison.findings)} measures have changed" if count else "nothing has changed"
    if not comparison.enough:
        verdict = f"too few images to decide, {LEAST} of each are needed"
    head = f"{comparison.current} ({comparison.current_sample}) against {comparison.reference}"
    unread = [escape(text) for text in (comparison.known, *comparison.unreadable) if text]
    return "\n".join([*lines, *unread, f"{head} ({comparison.reference_sample}): {verdict}"])
