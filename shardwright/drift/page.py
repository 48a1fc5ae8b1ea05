"""Comparisons of images as a page of their own, with the images that stand out."""

from __future__ import annotations

import html
from collections.abc import Sequence

from shardwright.drift.show import Tile
from shardwright.drift.watch import Watched
from shardwright.report.markup import finding_list, section, shown
from shardwright.report.page import document


def drift_page(compared: Sequence[Watched], tile: Tile) -> str:
    """Renders comparisons.

    Args:
        compared: what was compared, at least one.
        tile: shows an image (`drift.tiles`).

    Returns:
        HTML of at most 5 MB.

    Raises:
        DatasetError: the dataset has changed since it was measured.
    """
    chapters = [watched.chapter(tile, number) for number, watched in enumerate(compared)]
    findings = [finding for chapter in chapters for finding in chapter.findings]
    findings = findings or [("good", "Nothing has changed beyond what chance does.")]
    links = "".join(f'<li><a href="#{chapter.ident}">{html.escape(chapter.title)}</a></li>' for chapter in chapters)
    body = section("look", "Worth a look", finding_list(findings)) + "".join(chapter.body for chapter in chapters)
    sides = {watched.comparison.current: None for watched in compared}
    lead = f"{', '.join(shown(name, 80) for name in sides)} against {shown(compared[0].comparison.reference, 80)}"
    return document("Have the images changed?", "Comparison of images", lead, "", body, links=links)
