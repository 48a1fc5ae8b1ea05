"""Charts as inline SVG: histograms, lines over epochs, two samples of one measure, and bars in table cells.

The title of each chart describes it in words, for screen readers.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.display.html import escape, escape_attribute, table
from shardwright.display.numbers import Histogram, Show, number

_WIDTH, _HEIGHT = 360, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 12, 26
_SPLITS = ("train", "eval", "test")
# Head of a column of bars, for screen readers; the bars repeat the figure in the next column.
BAR = '<span class="vh">Bar</span>'
# The outline of a split with fewer images is noise.
ENOUGH = 20
# Height of the highest line, relative to the highest bar.
_TALLEST = 1.8


def bar(part: float, *, kind: str = "") -> str:
    """Returns a bar that fills a part of its cell, 0 to 1."""
    width = 100 * min(max(part, 0.0), 1.0)
    return f'<span class="bar {kind}" aria-hidden="true"><span style="width:{width:.2f}%"></span></span>'


def split_class(split: str) -> str:
    """Returns the CSS class of a split."""
    return f"s-{split}" if split in _SPLITS else "s-other"


def histogram(ident: str, title: str, data: Histogram, show: Show = number) -> str:
    """Draws a histogram: all images as bars, each split with enough images as an outline of its shares.

    Args:
        ident: unique on the page.
        title: what is measured.
        data: the counts.
        show: formats a value.
    """
    edges, counts = data.bins()
    if not edges:
        return '<p class="note">Nothing was measured.</p>'
    if data.least == data.most:
        return f'<p class="same">{html.escape(show(data.least))}</p><p class="figures">The same for all images.</p>'
    total = [sum(split[i] for split in counts.values()) for i in range(len(edges) - 1)]
    most = max(total)
    inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    step = inner_width / len(total)
    shapes = {split: _shape(counts[split], total) for split in counts if sum(counts[split]) >= ENOUGH}
    if len(counts) < 2:
        shapes = {}
    # Room for lines above the bars, but not so much that a few images in one bin press all bars down.
    top = min(_TALLEST, max([1.0, *(max(shape) for shape in shapes.values())]))
    bars = []
    for i, count in enumerate(total):
        if count:
            tall = max(1.0, inner_height * count / most / top)
            bars.append(
                f'<rect class="bin" x="{_LEFT + i * step:.1f}" y="{_TOP + inner_height - tall:.1f}" '
                f'width="{max(step - 1, 0.8):.1f}" height="{tall:.1f}"><title>{html.escape(show(edges[i]))} to '
                f"{html.escape(show(edges[i + 1]))}: {number(count)}</title></rect>"
            )
    outlines = "".join(_outline(split, shape, step, inner_height / top) for split, shape in shapes.items())
    words = (
        f"{title}: {number(data.total)} images, from {show(data.least)} to {show(data.most)}, "
        f"mean {show(data.mean())}, half of them between {show(data.quantile(0.25))} and {show(data.quantile(0.75))}."
    )
    base = _TOP + inner_height
    # The first and last bin count all values beyond the scale; a value on its edge may differ in the last digit.
    near = 1e-9 * (edges[-1] - edges[0])
    first = f"{show(edges[0])} and less" if data.least < edges[0] - near else show(edges[0])
    last = f"{show(edges[-1])} and more" if data.most > edges[-1] + near else show(edges[-1])
    ticks = "".join(
        f'<text x="{x:.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{html.escape(text)}</text>'
        for x, text, anchor in (
            (_LEFT, first, "start"),
            (_LEFT + inner_width / 2, show(_middle(edges)), "middle"),
            (_WIDTH - _RIGHT, last, "end"),
        )
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{ident}-t">'
        f'<title id="{ident}-t">{escape_attribute(words, 400)}</title>{"".join(bars)}{outlines}'
        f'<line class="axis" x1="{_LEFT}" y1="{base}" x2="{_WIDTH - _RIGHT}" y2="{base}"/>{ticks}</svg>'
        f'<p class="figures">mean <b>{html.escape(show(data.mean()))}</b> · middle half '
        f"<b>{html.escape(show(data.quantile(0.25)))} – {html.escape(show(data.quantile(0.75)))}</b> · "
        f"{html.escape(show(data.least))} to {html.escape(show(data.most))}</p>"
    )


def _middle(edges: Sequence[float]) -> float:
    count = len(edges) - 1
    return edges[count // 2] if count % 2 == 0 else (edges[count // 2] + edges[count // 2 + 1]) / 2


def _shape(counts: Sequence[int], total: Sequence[int]) -> list[float]:
    """Scales the counts of a split so that a split with the shape of all images follows the tops of the bars."""
    scale = sum(total) / sum(counts) / max(total)
    return [count * scale for count in counts]


def _outline(split: str, shape: Sequence[float], step: float, tall: float) -> str:
    base = _HEIGHT - _BOTTOM
    points = []
    for i, height in enumerate(shape):
        y = max(_TOP - 4.0, base - tall * height)
        points += [f"{_LEFT + i * step:.1f},{y:.1f}", f"{_LEFT + (i + 1) * step:.1f},{y:.1f}"]
    return f'<polyline class="line {split_class(split)}" points="{" ".join(points)}"/>'


def split_legend(splits: Sequence[str]) -> str:
    """Returns the legend of the splits' lines."""
    items = "".join(
        f'<li class="{split_class(split)}"><span class="swatch"></span>{escape(split, 60)}</li>' for split in splits
    )
    return (
        '<ul class="legend" aria-label="Lines in the charts">'
        f'<li class="all"><span class="swatch"></span>all images</li>{items}</ul>'
    )


_CURVE_WIDTH, _CURVE_HEIGHT = 360, 160
_CURVE_LEFT, _CURVE_RIGHT, _CURVE_TOP, _CURVE_BOTTOM = 44, 12, 12, 24
_STYLES = {"training": "s-train", "evaluation": "s-eval"}
_OTHER = "s-other"


def curves(ident: str, title: str, lines: Mapping[str, Sequence[float]], best: int) -> str:
    """Draws lines over epochs on one scale; a single epoch has figures only.

    Args:
        ident: unique on the page.
        title: what they show.
        lines: name -> a value for each epoch; NaN leaves a gap.
        best: the epoch that was kept, from 1; 0 for the last.
    """
    points = {
        name: [(epoch, value) for epoch, value in enumerate(values, 1) if math.isfinite(value)]
        for name, values in lines.items()
    }
    there = {name: found for name, found in points.items() if found}
    if not there:
        return '<p class="note">Nothing was measured.</p>'
    epochs = max(len(values) for values in lines.values())
    low = min(value for found in there.values() for _, value in found)
    high = max(value for found in there.values() for _, value in found)
    step = (_CURVE_WIDTH - _CURVE_LEFT - _CURVE_RIGHT) / max(1, epochs - 1)
    tall = (_CURVE_HEIGHT - _CURVE_TOP - _CURVE_BOTTOM) / ((high - low) or 1)
    base = _CURVE_HEIGHT - _CURVE_BOTTOM
    drawn = "".join(
        _line(
            _STYLES.get(name, _OTHER),
            [(_CURVE_LEFT + (epoch - 1) * step, base - (value - low) * tall) for epoch, value in found],
        )
        for name, found in there.items()
    )
    x = _CURVE_LEFT + ((best or epochs) - 1) * step
    captions = [_caption(name, found, best) for name, found in there.items()]
    words = f"{title} in {epochs} epochs: " + "; ".join(plain for plain, _ in captions)
    legend = ""
    if len(there) > 1:
        items = "".join(
            f'<li class="{_STYLES.get(name, _OTHER)}"><span class="swatch"></span>{html.escape(name)}</li>'
            for name in there
        )
        legend = f'<ul class="legend" aria-label="Lines of the chart">{items}</ul>'
    figures = f'<p class="figures">{"<br>".join(rich for _, rich in captions)}</p>'
    if epochs == 1:
        return figures
    scale = f'<text x="{_CURVE_LEFT - 6}" y="{_CURVE_TOP + 4}" text-anchor="end">{html.escape(number(high))}</text>'
    if high > low:
        scale += f'<text x="{_CURVE_LEFT - 6}" y="{base + 4}" text-anchor="end">{html.escape(number(low))}</text>'
    return (
        f'{legend}<svg viewBox="0 0 {_CURVE_WIDTH} {_CURVE_HEIGHT}" role="img" aria-labelledby="{ident}-t">'
        f'<title id="{ident}-t">{escape_attribute(words, 400)}</title>'
        f'<line class="axis" x1="{_CURVE_LEFT}" y1="{base}" x2="{_CURVE_WIDTH - _CURVE_RIGHT}" y2="{base}"/>'
        f'<line class="mark" x1="{x:.1f}" y1="{_CURVE_TOP}" x2="{x:.1f}" y2="{base}"/>{drawn}{scale}'
        f'<text x="{_CURVE_LEFT}" y="{_CURVE_HEIGHT - 6}">epoch 1</text>'
        f'<text x="{_CURVE_WIDTH - _CURVE_RIGHT}" y="{_CURVE_HEIGHT - 6}" text-anchor="end">{epochs}</text></svg>'
        f"{figures}"
    )


def _line(style: str, points: Sequence[tuple[float, float]]) -> str:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return (
        f'<polyline class="line {style}" points="{line}"/>'
        f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>'
    )


def _caption(name: str, found: Sequence[tuple[int, float]], best: int) -> tuple[str, str]:
    """Returns the first, last and kept value of a line, as plain text and as HTML."""
    first, last = number(found[0][1]), number(found[-1][1])
    epoch, kept = next(((epoch, value) for epoch, value in found if epoch == best), found[-1])
    plain = f"{name} from {first} to {last}, kept {number(kept)}"
    rich = f"{html.escape(name)} {first} → <b>{last}</b>; kept epoch {epoch}: <b>{number(kept)}</b>"
    return plain, rich


_SIDES_WIDTH, _SIDES_HEIGHT = 420, 170
_SIDES_MARGIN, _SIDES_TOP, _SIDES_BOTTOM = 8, 8, 26
_BINS = 32

Numbers = npt.NDArray[np.float64]


class ChartSample(NamedTuple):
    """One of the samples that a chart compares.

    Attributes:
        name: its name, for people.
        style: CSS class of its line.
        values: float64 (n,), finite.
    """

    name: str
    style: str
    values: Numbers


def comparison_chart(ident: str, title: str, sides: Sequence[ChartSample]) -> str:
    """Draws samples of one measure in one chart, with a table of their figures; a sentence if a sample is empty.

    Args:
        ident: unique on the page.
        title: what is measured.
        sides: the samples; each is drawn as shares of its size.
    """
    if not all(len(side.values) for side in sides):
        return '<p class="note">One of the samples has no values.</p>'
    every = np.concatenate([side.values for side in sides])
    low, high = float(every.min()), float(every.max())
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    shares = [np.histogram(side.values, edges)[0] / len(side.values) for side in sides]
    most = max(float(share.max()) for share in shares)
    lines = "".join(_side_outline(side.style, share / most) for side, share in zip(sides, shares, strict=True))
    words = f"{title}: " + "; ".join(
        f"{side.name} {', '.join(f'{what} {value}' for what, value in _figures(side).items())}" for side in sides
    )
    base = _SIDES_HEIGHT - _SIDES_BOTTOM
    places = ((_SIDES_MARGIN, low, "start"), (_SIDES_WIDTH / 2, (low + float(edges[-1])) / 2, "middle"))
    ticks = "".join(
        f'<text x="{x:.1f}" y="{_SIDES_HEIGHT - 8}" text-anchor="{anchor}">'
        f"{html.escape(number(round(value, 9)))}</text>"
        for x, value, anchor in (*places, (_SIDES_WIDTH - _SIDES_MARGIN, float(edges[-1]), "end"))
    )
    chart = (
        f'<svg viewBox="0 0 {_SIDES_WIDTH} {_SIDES_HEIGHT}" role="img" aria-labelledby="{ident}-t">'
        f'<title id="{ident}-t">{escape_attribute(words, 600)}</title>{lines}'
        f'<line class="axis" x1="{_SIDES_MARGIN}" y1="{base}" x2="{_SIDES_WIDTH - _SIDES_MARGIN}" y2="{base}"/>'
        f"{ticks}</svg>"
    )
    columns = [_figures(side) for side in sides]
    rows = [(what, *(column[what] for column in columns)) for what in columns[0]]
    head = ("", *(f'<span class="{side.style}">{escape(side.name, 40)}</span>' for side in sides))
    figures = table(head, rows, caption="Figures of both", numbers=range(1, len(head)))
    return f'<div class="grid fit sides"><div>{chart}</div><div>{figures}</div></div>'


def _figures(side: ChartSample) -> Mapping[str, str]:
    quarter, half, rest = np.quantile(side.values, (0.25, 0.5, 0.75)).tolist()
    least, most = float(side.values.min()), float(side.values.max())
    values = {"mean": float(side.values.mean()), "median": half}
    return {
        **{what: number(round(value, 9)) for what, value in values.items()},
        "middle half": f"{number(round(quarter, 9))} – {number(round(rest, 9))}",
        "least and most": f"{number(round(least, 9))} – {number(round(most, 9))}",
    }


def _side_outline(style: str, heights: Numbers) -> str:
    step = (_SIDES_WIDTH - 2 * _SIDES_MARGIN) / len(heights)
    base, tall = _SIDES_HEIGHT - _SIDES_BOTTOM, _SIDES_HEIGHT - _SIDES_BOTTOM - _SIDES_TOP
    points = [f"{_SIDES_MARGIN:.1f},{base:.1f}"]
    for i, height in enumerate(heights.tolist()):
        y = base - tall * height
        points += [f"{_SIDES_MARGIN + i * step:.1f},{y:.1f}", f"{_SIDES_MARGIN + (i + 1) * step:.1f},{y:.1f}"]
    points.append(f"{_SIDES_WIDTH - _SIDES_MARGIN:.1f},{base:.1f}")
    joined = " ".join(points)
    return f'<polygon class="under {style}" points="{joined}"/><polyline class="line {style}" points="{joined}"/>'
