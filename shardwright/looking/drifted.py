"""What a comparison of images says, at a glance."""

from __future__ import annotations

from shardwright.drift.compare import LEAST, Comparison
from shardwright.looking.html import box, line, rows
from shardwright.report.histograms import number
from shardwright.report.markup import shown

_SHOWN = 12


def comparison_html(comparison: Comparison) -> str:
    """The verdict and the measures that speak loudest."""
    count, every = len(comparison.drifted), len(comparison.findings)
    verdict = f"{count} of {every} measures have changed" if count else "Nothing has changed"
    if not comparison.enough:
        verdict = f"Too few images to tell: {LEAST} of each are needed"
    sides = (
        f"{number(comparison.current_images)} images of {shown(comparison.current, 60)} against "
        f"{number(comparison.reference_images)} of {shown(comparison.reference, 60)}"
    )
    body = [
        (
            shown(finding.words, 60),
            "<b>changed</b>" if finding.drifted else "as before",
            "&lt; 0.0001" if finding.p < 0.0001 else f"{finding.p:.4f}",
            *("–" if mean is None else number(mean) for mean in (finding.reference, finding.current)),
        )
        for finding in comparison.findings[:_SHOWN]
    ]
    table = rows(("measure", "verdict", "chance", "before", "now"), body)
    left = f"{every - _SHOWN} more measures: `findings` has all." if every > _SHOWN else ""
    return box(verdict, line(sides), table, *([line(left)] if left else []))
