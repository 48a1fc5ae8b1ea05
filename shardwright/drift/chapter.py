"""Renders a drift comparison as a chapter: a table, charts of both samples, and the images that stand out most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
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
    rows = [_row(finding) for finding in comparison.findings]
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


def _row(finding: DriftFinding) -> tuple[str, ...]:
    verdict = badge("bad", "changed") if finding.drifted else badge("good", "as before")
    means = ["–" if mean is None else number(mean) for mean in (finding.reference, finding.current)]
    chance = "< 0.0001" if finding.p < 0.0001 else f"{finding.p:.4f}"
    return isolate(finding.words, 60), verdict, percent(min(1.0, finding.distance)), chance, *means


def _detail(ident: str, finding: DriftFinding, reference: Sample, current: Sample, tile: Tile) -> Markup:
    parts = []
    if _measured(finding, current) is not None:
        parts.append(_chart(ident, finding, reference, current))
    elif finding.measure == CLASSES:
        parts.append(_classes(reference, current))
    elif finding.measure in current.kinds:
        parts.append(_kinds(finding.measure, reference, current))
    tail = _tail(finding, reference, current)
    if len(tail):
        tiles = [tile(current, row, _note(finding, current, row)) for row in tail.tolist()]
        parts += [note("The images that stand out most:"), sheet(tiles)]
    return card(join([badge("bad", "changed"), isolate(finding.words, 60)], " "), *parts, wide=True)


def _measured(finding: DriftFinding, sample: Sample) -> npt.NDArray[np.float64] | None:
    """Returns a numeric measure of every image, NaN for an image without it; `None` if the measure is not a number."""
    if finding.measure in NUMBERS:
        return sample.numbers[:, list(NUMBERS).index(finding.measure)]
    kind, _, name = finding.measure.partition("/")
    return np.array([areas.get(name, np.nan) for areas in sample.areas]) if kind == AREA else None


def _note(finding: DriftFinding, current: Sample, row: int) -> Markup:
    values = _measured(finding, current)
    if values is None:
        return Markup("")
    return Markup("<div>{} {}</div>").format(isolate(finding.words), number(round(float(values[row]), 6)))


def _chart(ident: str, finding: DriftFinding, reference: Sample, current: Sample) -> Markup:
    samples = [
        ChartSample(sample.name, split_class(style), _finite(_measured(finding, sample)))
        for sample, style in ((reference, _BEFORE), (current, _NOW))
    ]
    return comparison_chart(ident, finding.words, samples)


def _finite(values: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
    return np.empty(0) if values is None else values[np.isfinite(values)]


def _classes(reference: Sample, current: Sample) -> Markup:
    names = sorted({name for sample in (reference, current) for names in sample.labels for name in names})
    shares = {
        name: [sum(name in names for names in sample.labels) / max(1, len(sample)) for sample in (reference, current)]
        for name in names
    }
    order = sorted(names, key=lambda name: -abs(shares[name][0] - shares[name][1]))
    return _shares(
        [(name, shares[name][0], shares[name][1]) for name in order[:20]], "Part of the images that have the class"
    )


def _kinds(measure: str, reference: Sample, current: Sample) -> Markup:
    kinds = sorted({*reference.kinds[measure], *current.kinds[measure]}, key=str)
    rows: list[tuple[str, float, float]] = []
    for kind in kinds:
        name = " × ".join(map(str, kind)) if isinstance(kind, tuple) else str(kind)
        before, now = (sample.kinds[measure].count(kind) / max(1, len(sample)) for sample in (reference, current))
        rows.append((name, before, now))
    rows.sort(key=lambda row: -abs(row[1] - row[2]))
    return _shares(rows[:20], "Part of the images of each kind")


def _shares(rows: list[tuple[str, float, float]], caption: str) -> Markup:
    cells = [(isolate(name, 60), percent(one), percent(other), _moved(other - one)) for name, one, other in rows]
    return table(("Kind", "before", "now", "moved"), cells, caption=caption, numbers=(1, 2, 3))


def _moved(part: float) -> str:
    return f"{100 * part:+.1f} %".replace("-", "−")


def _tail(finding: DriftFinding, reference: Sample, current: Sample) -> npt.NDArray[np.int64]:
    """Returns the rows of the current images that differ most from the reference by a measure, the largest first."""
    values = _measured(finding, current)
    if values is not None:
        middles = [float(np.median(_finite(_measured(finding, sample)))) for sample in (reference, current)]
        scores = np.where(np.isfinite(values), values if middles[1] >= middles[0] else -values, -np.inf)
    elif finding.measure == CLASSES:
        grown = _grown(reference, current)
        scores = np.array([max((grown.get(name, 0.0) for name in names), default=0.0) for names in current.labels])
    elif finding.measure == EMBEDDED:
        spread = reference.embeddings.std(axis=0) + 1e-9
        scores = np.square((current.embeddings - reference.embeddings.mean(axis=0)) / spread).sum(axis=1)
    elif finding.measure in current.kinds:
        scores = np.array(list(_rarity(finding.measure, reference, current)))
    else:
        return np.empty(0, np.int64)
    order = np.argsort(-scores, kind="stable")[:_TAIL]
    return order[scores[order] > -np.inf]


def _grown(reference: Sample, current: Sample) -> dict[str, float]:
    """Returns how much more frequent each class has become, as a part of all images."""
    shares = [Counter(name for names in sample.labels for name in names) for sample in (reference, current)]
    names = {*shares[0], *shares[1]}
    return {name: shares[1][name] / max(1, len(current)) - shares[0][name] / max(1, len(reference)) for name in names}


def _rarity(measure: str, reference: Sample, current: Sample) -> Iterator[float]:
    before = {kind: reference.kinds[measure].count(kind) for kind in set(current.kinds[measure])}
    return (-math.log1p(before[kind]) for kind in current.kinds[measure])


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
        picture = _picture(sample.files[row])
        if picture.bytes > left:
            return figure(left_out(), sample.keys[row], below)
        left -= picture.bytes
        return figure(thumbnail(picture, sample.keys[row]), sample.keys[row], below)

    return tile


def _picture(path: str) -> Picture:
    """Returns the picture of a measured file; if the file is gone or has changed, an empty one."""
    try:
        data, header, _ = prepare(read_bytes(path), _SHOWN_AS)
        return file_picture(data, header)
    except (ImageError, OSError):
        return Picture("", "", 0, 0)
