"""Renders a drift comparison as a chapter: a table, charts of both samples, and the images that stand out most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from shardwright.config.images import ImagesConfig
from shardwright.dataset.stored_image import prepare
from shardwright.display.charts import ChartSample, comparison_chart, split_class
from shardwright.display.histograms import number, percent
from shardwright.display.html import (
    badge,
    card,
    figure,
    isolate,
    join,
    left_out,
    link,
    note,
    section,
    sheet,
    table,
    thumbnail,
)
from shardwright.display.thumbnails import Picture, file_picture
from shardwright.drift.compare import AREA, CLASSES, EMBEDDED, LEAST, Comparison, DriftFinding
from shardwright.drift.measures import NUMBERS
from shardwright.drift.sampling import Sample
from shardwright.images.header import MOST_PIXELS, ImageError
from shardwright.report.contact_sheets import BUDGET, Sheets
from shardwright.report.page import Chapter
from shardwright.storage import read_bytes

# The lines of the two samples have the colors of these splits.
_BEFORE, _NOW = "train", "eval"
_TAIL = 12
# Measures that a finding names.
_NAMED = 5
# Other formats than JPEG and PNG are shown, too.
_SHOWN_AS = ImagesConfig(max_pixels=MOST_PIXELS, unsupported_formats="png")

# Renders an image of a sample, given its row, with a line below it.
Tile = Callable[[Sample, int, str], Markup]


class Heading(NamedTuple):
    """Anchor and headings of a comparison.

    Attributes:
        ident: its anchor.
        name: its name in the navigation.
        title: its heading.
    """

    ident: str
    name: str
    title: str


def drift_chapter(comparison: Comparison, reference: Sample, current: Sample, tile: Tile, heading: Heading) -> Chapter:
    """Renders a comparison.

    Args:
        comparison: the comparison of the two samples.
        reference: the reference sample.
        current: the current sample, whose images are shown.
        tile: renders one of its images.
        heading: the heading of the chapter.
    """
    drifted = comparison.drifted
    rows = [
        (
            isolate(finding.words, 60),
            badge("bad", "changed") if finding.drifted else badge("good", "as before"),
            percent(min(1.0, finding.distance)),
            finding.chance,
            *("–" if mean is None else number(mean) for mean in (finding.reference, finding.current)),
        )
        for finding in comparison.findings
    ]
    names = (isolate(name[:40]) for name in (comparison.reference, comparison.current))
    body = table(
        ("Measure", "Verdict", "Difference", "Chance", *names),
        rows,
        caption="Every measure; difference from 0 to 1, and its chance if nothing has changed",
        numbers=(2, 3, 4, 5),
    )
    cards = [card("Measures", body, wide=True)]
    cards += [
        _detail(f"c-{heading.ident}-{place}", finding, reference, current, tile)
        for place, finding in enumerate(drifted)
    ]
    lead = Markup("{}: {}; compared with {}: {}.").format(
        isolate(comparison.current),
        comparison.current_sample,
        isolate(comparison.reference),
        comparison.reference_sample,
    )
    if not comparison.enough:
        lead += Markup(" <b>Too few images: at least {} of each are needed.</b>").format(LEAST)
    chapter = link(heading.ident, heading.title)
    if comparison.known:
        lead += Markup(" {}.").format(isolate(comparison.known))
    for text in comparison.unreadable:
        lead += Markup(" <b>{}.</b>").format(isolate(text))
    findings = [] if comparison.enough else [("warn", join([chapter, ": too few images for a verdict."]))]
    findings += [("warn", join([chapter, ": ", isolate(text), "."])) for text in comparison.unreadable]
    if drifted:
        more = [f"{len(drifted) - _NAMED} more"] if len(drifted) > _NAMED else []
        changed = join([*(isolate(finding.words) for finding in drifted[:_NAMED]), *more], ", ")
        verb = "has" if len(drifted) == 1 else "have"
        findings.append(("bad", Markup("{}: {} {} changed.").format(chapter, changed, verb)))
    return Chapter(
        heading.ident, heading.name, section(heading.ident, heading.title, *cards, lead=lead), tuple(findings)
    )


def _detail(ident: str, finding: DriftFinding, reference: Sample, current: Sample, tile: Tile) -> Markup:
    parts = []
    values = _measured(finding, current)
    if values is not None:
        samples = [
            ChartSample(sample.name, split_class(style), _finite(_measured(finding, sample)))
            for sample, style in ((reference, _BEFORE), (current, _NOW))
        ]
        parts.append(comparison_chart(ident, finding.words, samples))
    elif finding.measure == CLASSES or finding.measure in current.kinds:
        parts.append(_kinds(finding.measure, reference, current))
    tiles = []
    for row in _tail(finding, reference, current).tolist():
        below = Markup("")
        if values is not None:
            value = number(round(float(values[row]), 6))
            below = Markup("<div>{} {}</div>").format(isolate(finding.words), value)
        tiles.append(tile(current, row, below))
    if tiles:
        parts += [note("The images that stand out most:"), sheet(tiles)]
    return card(join([badge("bad", "changed"), isolate(finding.words, 60)], " "), *parts, wide=True)


def _measured(finding: DriftFinding, sample: Sample) -> npt.NDArray[np.float64] | None:
    """Returns a numeric measure of every image, NaN for an image without it; `None` if the measure is not a number."""
    if finding.measure in NUMBERS:
        return sample.numbers[:, list(NUMBERS).index(finding.measure)]
    kind, _, name = finding.measure.partition("/")
    return np.array([areas.get(name, np.nan) for areas in sample.areas]) if kind == AREA else None


def _finite(values: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
    return np.empty(0) if values is None else values[np.isfinite(values)]


def _shares(measure: str, sample: Sample) -> dict[Hashable, float]:
    """Returns the part of the images that is of each class or kind."""
    images = sample.labels if measure == CLASSES else [(kind,) for kind in sample.kinds[measure]]
    counts = Counter[Hashable](kind for kinds in images for kind in kinds)
    return {kind: count / len(sample) for kind, count in counts.items()}


def _kinds(measure: str, reference: Sample, current: Sample) -> Markup:
    """Returns the table of the classes or kinds that have changed most."""
    before, now = (_shares(measure, sample) for sample in (reference, current))
    rows = []
    for kind in sorted({*before, *now}, key=str):
        name = " × ".join(map(str, kind)) if isinstance(kind, tuple) else str(kind)
        rows.append((name, before.get(kind, 0.0), now.get(kind, 0.0)))
    rows.sort(key=lambda row: -abs(row[1] - row[2]))
    cells = [
        (isolate(name, 60), percent(one), percent(other), f"{100 * (other - one):+.1f} %".replace("-", "−"))
        for name, one, other in rows[:20]
    ]
    caption = f"Part of the images {'that have the class' if measure == CLASSES else 'of each kind'}"
    return table(("Kind", "before", "now", "moved"), cells, caption=caption, numbers=(1, 2, 3))


def _tail(finding: DriftFinding, reference: Sample, current: Sample) -> npt.NDArray[np.int64]:
    """Returns the rows of the current images that differ most from the reference by a measure, the largest first."""
    values = _measured(finding, current)
    if values is not None:
        middles = [float(np.median(_finite(_measured(finding, sample)))) for sample in (reference, current)]
        scores = np.where(np.isfinite(values), values if middles[1] >= middles[0] else -values, -np.inf)
    elif finding.measure == CLASSES:
        before, now = (_shares(CLASSES, sample) for sample in (reference, current))
        grown = {name: share - before.get(name, 0.0) for name, share in now.items()}
        scores = np.array([max((grown[name] for name in names), default=0.0) for names in current.labels])
    elif finding.measure == EMBEDDED:
        spread = reference.embeddings.std(axis=0) + 1e-9
        scores = np.square((current.embeddings - reference.embeddings.mean(axis=0)) / spread).sum(axis=1)
    elif finding.measure in current.kinds:
        known = _shares(finding.measure, reference)
        scores = np.array([-known.get(kind, 0.0) for kind in current.kinds[finding.measure]])
    else:
        return np.empty(0, np.int64)
    order = np.argsort(-scores, kind="stable")[:_TAIL]
    return order[scores[order] > -np.inf]


def record_tiles(sheets: Sheets) -> Tile:
    """Returns tiles of the records of a dataset."""
    return lambda sample, row, note: sheets.tile(sample.places[row], note=note)


def file_tiles(budget: int = BUDGET) -> Tile:
    """Returns tiles of image files.

    Args:
        budget: bytes that all pictures may take; tiles of further ones state that the picture is left out.
    """
    left = budget

    def tile(sample: Sample, row: int, below: str) -> Markup:
        nonlocal left
        picture = Picture("", "", 0, 0)
        with suppress(ImageError, OSError):  # The file is gone, or has changed since it was measured.
            data, header, _ = prepare(read_bytes(sample.files[row]), _SHOWN_AS)
            picture = file_picture(data, header)
        if picture.bytes > left:
            return figure(left_out(), sample.keys[row], below)
        left -= picture.bytes
        return figure(thumbnail(picture, sample.keys[row]), sample.keys[row], below)

    return tile
