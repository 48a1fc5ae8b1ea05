"""`shardwright drift`: checks whether images have changed, between two datasets or folders, or between splits."""

from __future__ import annotations

from argparse import Namespace

from shardwright.config.evaluation import ALPHA, DriftConfig, SkewConfig
from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.dataset.reader import ImageDataset
from shardwright.display.histograms import plain_number
from shardwright.drift.chapter import file_tiles, record_tiles
from shardwright.drift.compare import LEAST, Comparison
from shardwright.drift.monitor import DriftCheck, check_paths, check_splits, drift_page
from shardwright.errors import UsageError
from shardwright.lineage.ancestry import contains
from shardwright.pipelines.commands.files import new_page
from shardwright.pipelines.commands.results import finish, table
from shardwright.report.contact_sheets import sheets_of
from shardwright.report.page import write_page
from shardwright.running.progress import progress
from shardwright.text.escaping import escape


def run(options: Namespace) -> int:
    """Compares images; returns 1 if they have changed, or cannot be compared."""
    page = None
    if options.html is not None:
        datasets = [path for path in (options.reference, options.current) if path and contains(path, MANIFEST_FILE)]
        page = new_page("--html", options.html, *datasets, force=options.force, title=r"Have the images changed\?")
    checks = _check(options)
    comparisons = [check.comparison for check in checks]
    lines = ["\n\n".join(_text(comparison) for comparison in comparisons)]
    if page is not None:
        # The images of the page come from the current side; if none could be measured, it shows none.
        place = options.reference if options.current is None else options.current
        write_page(
            page, drift_page(checks, record_tiles(sheets_of(place)) if checks[0].current.places else file_tiles())
        )
        lines.append(f"{options.html}: open it in a browser")
    drifted = any(comparison.drifted for comparison in comparisons)
    # Splits may be small. But two named sides with too few images must not pass for unchanged.
    decided = options.current is None or all(comparison.enough for comparison in comparisons)
    unreadable = any(comparison.unreadable for comparison in comparisons)
    row = {"drifted": drifted, "comparisons": [comparison.to_dict() for comparison in comparisons]}
    return finish(options, row, *lines, failed=drifted or not decided or unreadable)


def _check(options: Namespace) -> list[DriftCheck]:
    """Compares two datasets or folders; without a second one the splits of the first."""
    alpha, ignore = ALPHA if options.alpha is None else options.alpha, tuple(options.ignore)
    if options.current is not None:
        config = DriftConfig(options.reference, options.count, alpha, ignore)
        with progress(2 * options.count, "measuring images") as shown:
            return [check_paths(config, options.current, shown)]
    skew = SkewConfig(options.count, alpha, ignore)
    dataset = ImageDataset.open(options.reference)
    if len(dataset.splits) < 2:
        raise UsageError(f"{dataset.root}: has one split only. Give another dataset or a folder to compare with.")
    with progress(len(dataset.splits) * options.count, "measuring images") as shown:
        return check_splits(dataset, skew, shown)


def _text(comparison: Comparison) -> str:
    # The last column is for --ignore, and for gate.drift.ignore.
    rows: list[tuple[str, ...]] = [("measure", "verdict", "difference", "chance", "before", "now", "name")]
    for finding in comparison.findings:
        means = ["-" if mean is None else plain_number(mean) for mean in (finding.reference, finding.current)]
        verdict = "CHANGED" if finding.drifted else "as before"
        rows.append((finding.words, verdict, f"{finding.distance:.3f}", f"{finding.p:.2g}", *means, finding.measure))
    count = len(comparison.drifted)
    verdict = f"{count} of {len(comparison.findings)} measures have changed" if count else "nothing has changed"
    if not comparison.enough:
        verdict = f"too few images to decide, {LEAST} of each are needed"
    head = f"{comparison.current} ({comparison.current_sample}) against {comparison.reference}"
    unread = [escape(text) for text in (comparison.known, *comparison.unreadable) if text]
    return "\n".join([table(rows), *unread, f"{head} ({comparison.reference_sample}): {verdict}"])
