"""Two samples of one measure in one chart, each as a share of its own, with the figures of both beside it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.report.histograms import number
from shardwright.report.markup import attribute, shown, table

_WIDTH, _HEIGHT = 420, 170
_SIDE, _TOP, _BOTTOM = 8, 8, 26
_BINS = 32

Numbers = npt.NDArray[np.float64]


class Side(NamedTuple):
    """One of the samples.

    Attributes:
        name: of it, for people.
        style: of its line.
        values: float64 (n,), finite.
    """

    name: str
    style: str
    values: Numbers


def both_sides(ident: str, title: str, sides: Sequence[Side]) -> str:
    """The chart and the table; a sentence where a sample is empty.

    Args:
        ident: unique on the page.
        title: what is measured.
        sides: the samples, those with fewer values are scaled up.
    """
    if not all(len(side.values) for side in sides):
        return '<p class="note">One side has no values.</p>'
    every = np.concatenate([side.values for side in sides])
    low, high = float(every.min()), float(every.max())
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    shares = [np.histogram(side.values, edges)[0] / len(side.values) for side in sides]
    most = max(float(share.max()) for share in shares)
    lines = "".join(_outline(side.style, share / most) for side, share in zip(sides, shares, strict=True))
    words = f"{title}: " + "; ".join(
        f"{side.name} {', '.join(f'{what} {value}' for what, value in _figures(side).items())}" for side in sides
    )
    base = _HEIGHT - _BOTTOM
    places = ((_SIDE, low, "start"), (_WIDTH / 2, (low + float(edges[-1])) / 2, "middle"))
    ticks = "".join(
        f'<text x="{x:.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{html.escape(number(round(value, 9)))}</text>'
        for x, value, anchor in (*places, (_WIDTH - _SIDE, float(edges[-1]), "end"))
    )
    chart = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{ident}-t">'
        f'<title id="{ident}-t">{attribute(words, 600)}</title>{lines}'
        f'<line class="axis" x1="{_SIDE}" y1="{base}" x2="{_WIDTH - _SIDE}" y2="{base}"/>{ticks}</svg>'
    )
    columns = [_figures(side) for side in sides]
    rows = [(what, *(column[what] for column in columns)) for what in columns[0]]
    head = ("", *(f'<span class="{side.style}">{shown(side.name, 40)}</span>' for side in sides))
    figures = table(head, rows, caption="Figures of both", numbers=range(1, len(head)))
    return f'<div class="grid fit sides"><div>{chart}</div><div>{figures}</div></div>'


def _figures(side: Side) -> Mapping[str, str]:
    quarter, half, rest = np.quantile(side.values, (0.25, 0.5, 0.75)).tolist()
    least, most = float(side.values.min()), float(side.values.max())
    told = {"mean": float(side.values.mean()), "median": half}
    return {
        **{what: number(round(value, 9)) for what, value in told.items()},
        "middle half": f"{number(round(quarter, 9))} – {number(round(rest, 9))}",
        "least and most": f"{number(round(least, 9))} – {number(round(most, 9))}",
    }


def _outline(style: str, heights: Numbers) -> str:
    step = (_WIDTH - 2 * _SIDE) / len(heights)
    base, tall = _HEIGHT - _BOTTOM, _HEIGHT - _BOTTOM - _TOP
    points = [f"{_SIDE:.1f},{base:.1f}"]
    for i, height in enumerate(heights.tolist()):
        y = base - tall * height
        points += [f"{_SIDE + i * step:.1f},{y:.1f}", f"{_SIDE + (i + 1) * step:.1f},{y:.1f}"]
    points.append(f"{_WIDTH - _SIDE:.1f},{base:.1f}")
    joined = " ".join(points)
    return f'<polygon class="under {style}" points="{joined}"/><polyline class="line {style}" points="{joined}"/>'
