"""Charts as inline SVG: histograms, lines over epochs, two samples of one measure, and bars in table cells.

The title of each chart describes it in words, for screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from shardwright.display.histograms import Histogram, Show, number, number_of
from shardwright.display.html import grid, isolate, join, legend, note, plain, table

_WIDTH, _HEIGHT = 360, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 12, 26
_SPLITS = ("train", "eval", "test")
# Head of a column of bars, for screen readers; the bars repeat the figure in the next column.
BAR = Markup('<span class="vh">Bar</span>')
# The outline of a split with fewer images is noise.
ENOUGH = 20
# Height of the highest line, relative to the highest bar.
_TALLEST = 1.8
_CURVE_WIDTH, _CURVE_HEIGHT = 360, 160
_CURVE_LEFT, _CURVE_RIGHT, _CURVE_TOP, _CURVE_BOTTOM = 44, 12, 12, 24
_STYLES = {"training": "s-train", "evaluation": "s-eval"}
_OTHER = "s-other"
_SIDES_WIDTH, _SIDES_HEIGHT = 420, 170
_SIDES_MARGIN, _SIDES_TOP, _SIDES_BOTTOM = 8, 8, 26
_BINS = 32
Numbers = npt.NDArray[np.float64]


def bar(part: float, *, kind: str = "") -> Markup:
    """Returns a bar that fills a part of its cell, 0 to 1."""
    width = 100 * min(max(part, 0.0), 1.0)
    filled = Markup('<span style="width:{:.2f}%"></span>').format(width)
    return Markup('<span class="bar {}" aria-hidden="true">{}</span>').format(kind, filled)


def split_class(split: str) -> str:
    """Returns the CSS class of a split."""
    return f"s-{split}" if split in _SPLITS else "s-other"


def _svg(ident: str, words: str, size: tuple[int, int], shapes: str, longest: int = 400) -> Markup:
    """Returns a chart, whose title describes it. Only here SVG becomes HTML, so shapes must have escaped their text.

    Args:
        ident: unique on the page.
        words: the title.
        size: width and height.
        shapes: SVG elements, made by the functions of this module.
        longest: longest title.
    """
    opening = f'<svg viewBox="0 0 {size[0]} {size[1]}" role="img" aria-labelledby="{escape(ident)}-t">'
    title = f'<title id="{escape(ident)}-t">{escape(plain(words, longest))}</title>'
    return Markup(f"{opening}{title}{shapes}</svg>")  # noqa: S704


def _text(x: str, y: int, text: str, anchor: str = "") -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y}"{where}>{escape(text)}</text>'


def _axis(left: int, right: int, base: int) -> str:
    return f'<line class="axis" x1="{left}" y1="{base}" x2="{right}" y2="{base}"/>'


def histogram(ident: str, title: str, data: Histogram, show: Show = number) -> Markup:
    """Draws a histogram: all images as bars, each split with enough images as an outline of its shares.

    Args:
        ident: unique on the page.
        title: what is measured.
        data: the counts.
        show: formats a value.
    """
    edges, counts = data.bins()
    if not edges:
        return note("Nothing was measured.")
    if data.least == data.most:
        same = Markup('<p class="same">{}</p><p class="figures">The same for all images.</p>')
        return same.format(show(data.least))
    total = [sum(split[i] for split in counts.values()) for i in range(len(edges) - 1)]
    step, tall = (_WIDTH - _LEFT - _RIGHT) / len(total), _HEIGHT - _TOP - _BOTTOM
    # A split with the shape of all images follows the tops of the bars.
    shapes = {
        split: [count * (sum(total) / sum(own) / max(total)) for count in own]
        for split, own in counts.items()
        if len(counts) > 1 and sum(own) >= ENOUGH
    }
    # Room for lines above the bars, but not so much that a few images in one bin press all bars down.
    top = min(_TALLEST, max([1.0, *(max(shape) for shape in shapes.values())]))
    bars = "".join(_bars(total, [show(edge) for edge in edges], step, tall / top))
    outlines = "".join(_outline(split, shape, step, tall / top) for split, shape in shapes.items())
    least, most, mean = show(data.least), show(data.most), show(data.mean())
    quarter, rest = show(data.quantile(0.25)), show(data.quantile(0.75))
    words = (
        f"{title}: {number_of(data.total, 'image')}, from {least} to {most}, "
        f"mean {mean}, half of them between {quarter} and {rest}."
    )
    # The first and last bin count all values beyond the scale; a value on its edge may differ in the last digit.
    near = 1e-9 * (edges[-1] - edges[0])
    first = f"{show(edges[0])} and less" if data.least < edges[0] - near else show(edges[0])
    last = f"{show(edges[-1])} and more" if data.most > edges[-1] + near else show(edges[-1])
    middle = (edges[(len(edges) - 1) // 2] + edges[len(edges) // 2]) / 2
    center = _LEFT + (_WIDTH - _LEFT - _RIGHT) / 2
    places = ((_LEFT, first, "start"), (center, show(middle), "middle"), (_WIDTH - _RIGHT, last, "end"))
    ticks = "".join(_text(f"{x:.1f}", _HEIGHT - 8, text, anchor) for x, text, anchor in places)
    axis = _axis(_LEFT, _WIDTH - _RIGHT, _TOP + tall)
    chart = _svg(ident, words, (_WIDTH, _HEIGHT), f"{bars}{outlines}{axis}{ticks}")
    figures = Markup('<p class="figures">mean <b>{}</b> · middle half <b>{} – {}</b> · {} to {}</p>')
    return chart + figures.format(mean, quarter, rest, least, most)


def _bars(total: Sequence[int], edges: Sequence[str], step: float, tall: float) -> Iterator[str]:
    most, base = max(total), _HEIGHT - _BOTTOM
    for i, count in enumerate(total):
        if count:
            height = max(1.0, tall * count / most)
            yield (
                f'<rect class="bin" x="{_LEFT + i * step:.1f}" y="{base - height:.1f}" '
                f'width="{max(step - 1, 0.8):.1f}" height="{height:.1f}">'
                f"<title>{escape(f'{edges[i]} to {edges[i + 1]}: {number(count)}')}</title></rect>"
            )


def _outline(split: str, shape: Sequence[float], step: float, tall: float) -> str:
    base = _HEIGHT - _BOTTOM
    points = []
    for i, height in enumerate(shape):
        y = max(_TOP - 4.0, base - tall * height)
        points += [f"{_LEFT + i * step:.1f},{y:.1f}", f"{_LEFT + (i + 1) * step:.1f},{y:.1f}"]
    return f'<polyline class="line {split_class(split)}" points="{" ".join(points)}"/>'


def split_legend(splits: Sequence[str]) -> Markup:
    """Returns the legend of the splits' lines."""
    items = [(split_class(split), "", isolate(split, 60)) for split in splits]
    return legend("Lines in the charts", [("all", "", "all images"), *items])


def curves(ident: str, title: str, lines: Mapping[str, Sequence[float]], best: int) -> Markup:
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
        return note("Nothing was measured.")
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
    words = f"{title} in {epochs} epochs: " + "; ".join(text for text, _ in captions)
    figures = Markup('<p class="figures">{}</p>').format(Markup("<br>").join(rich for _, rich in captions))
    if epochs == 1:
        return figures
    names = legend("Lines of the chart", [(_STYLES.get(name, _OTHER), "", name) for name in there])
    scale = _text(f"{_CURVE_LEFT - 6}", _CURVE_TOP + 4, number(high), "end")
    if high > low:
        scale += _text(f"{_CURVE_LEFT - 6}", base + 4, number(low), "end")
    right = _CURVE_WIDTH - _CURVE_RIGHT
    chart = _svg(
        ident,
        words,
        (_CURVE_WIDTH, _CURVE_HEIGHT),
        f"{_axis(_CURVE_LEFT, right, base)}"
        f'<line class="mark" x1="{x:.1f}" y1="{_CURVE_TOP}" x2="{x:.1f}" y2="{base}"/>{drawn}{scale}'
        f"{_text(f'{_CURVE_LEFT}', _CURVE_HEIGHT - 6, 'epoch 1')}"
        f"{_text(f'{right}', _CURVE_HEIGHT - 6, str(epochs), 'end')}",
    )
    return join([names if len(there) > 1 else "", chart, figures])


def _line(style: str, points: Sequence[tuple[float, float]]) -> str:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return (
        f'<polyline class="line {style}" points="{line}"/>'
        f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>'
    )


def _caption(name: str, found: Sequence[tuple[int, float]], best: int) -> tuple[str, Markup]:
    """Returns the first, last and kept value of a line, as plain text and as HTML."""
    first, last = number(found[0][1]), number(found[-1][1])
    epoch, kept = next(((epoch, value) for epoch, value in found if epoch == best), found[-1])
    rich = Markup("{} {} → <b>{}</b>; kept epoch {}: <b>{}</b>")
    text = f"{name} from {first} to {last}, kept {number(kept)}"
    return text, rich.format(name, first, last, epoch, number(kept))


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


def comparison_chart(ident: str, title: str, sides: Sequence[ChartSample]) -> Markup:
    """Draws samples of one measure in one chart, with a table of their figures; a sentence if a sample is empty.

    Args:
        ident: unique on the page.
        title: what is measured.
        sides: the samples; each is drawn as shares of its size.
    """
    if not all(len(side.values) for side in sides):
        return note("One of the samples has no values.")
    every = np.concatenate([side.values for side in sides])
    low, high = float(every.min()), float(every.max())
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    shares = [np.histogram(side.values, edges)[0] / len(side.values) for side in sides]
    most = max(float(share.max()) for share in shares)
    lines = "".join(_side_outline(side.style, share / most) for side, share in zip(sides, shares, strict=True))
    words = f"{title}: " + "; ".join(
        f"{side.name} {', '.join(f'{what} {value}' for what, value in _figures(side).items())}" for side in sides
    )
    right = _SIDES_WIDTH - _SIDES_MARGIN
    places = (
        (_SIDES_MARGIN, low, "start"),
        (_SIDES_WIDTH / 2, (low + float(edges[-1])) / 2, "middle"),
        (right, float(edges[-1]), "end"),
    )
    ticks = "".join(
        _text(f"{x:.1f}", _SIDES_HEIGHT - 8, number(round(value, 9)), anchor) for x, value, anchor in places
    )
    axis = _axis(_SIDES_MARGIN, right, _SIDES_HEIGHT - _SIDES_BOTTOM)
    chart = _svg(ident, words, (_SIDES_WIDTH, _SIDES_HEIGHT), f"{lines}{axis}{ticks}", 600)
    columns = [_figures(side) for side in sides]
    rows = [(what, *(column[what] for column in columns)) for what in columns[0]]
    head = ("", *(Markup('<span class="{}">{}</span>').format(side.style, isolate(side.name, 40)) for side in sides))
    figures = table(head, rows, caption="Figures of both", numbers=range(1, len(head)))
    return grid(*(Markup("<div>{}</div>").format(part) for part in (chart, figures)), kind="fit sides")


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
