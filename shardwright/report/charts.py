"""Charts as inline SVG and as bars in tables; each says in words what it shows."""

from __future__ import annotations

import html
from collections.abc import Sequence

from shardwright.report.histograms import Histogram, Show, number
from shardwright.report.markup import attribute, shown

_WIDTH, _HEIGHT = 360, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 12, 26
_SPLITS = ("train", "eval", "test")
# Head of a column of bars, for those who hear the page; the bars repeat a figure beside them.
BAR = '<span class="vh">Bar</span>'
# The outline of fewer images is noise.
ENOUGH = 20
# The highest line, by the highest bar.
_TALLEST = 1.8


def bar(part: float, *, kind: str = "") -> str:
    """A bar of a part of its cell, 0 to 1."""
    width = 100 * min(max(part, 0.0), 1.0)
    return f'<span class="bar {kind}" aria-hidden="true"><span style="width:{width:.2f}%"></span></span>'


def split_class(split: str) -> str:
    """The name of the style of a split."""
    return f"s-{split}" if split in _SPLITS else "s-other"


def histogram(ident: str, title: str, data: Histogram, show: Show = number) -> str:
    """A histogram: all images as bars, the outline of every split that has enough of them as a share of its own.

    Args:
        ident: unique on the page.
        title: what is measured.
        data: the counts.
        show: how a value is written.
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
    # What lies beyond the scale counts as its first or last bin; what lies on its edge may miss it by a digit.
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
        f'<title id="{ident}-t">{attribute(words, 400)}</title>{"".join(bars)}{outlines}'
        f'<line class="axis" x1="{_LEFT}" y1="{base}" x2="{_WIDTH - _RIGHT}" y2="{base}"/>{ticks}</svg>'
        f'<p class="figures">mean <b>{html.escape(show(data.mean()))}</b> · middle half '
        f"<b>{html.escape(show(data.quantile(0.25)))} – {html.escape(show(data.quantile(0.75)))}</b> · "
        f"{html.escape(show(data.least))} to {html.escape(show(data.most))}</p>"
    )


def _middle(edges: Sequence[float]) -> float:
    count = len(edges) - 1
    return edges[count // 2] if count % 2 == 0 else (edges[count // 2] + edges[count // 2 + 1]) / 2


def _shape(counts: Sequence[int], total: Sequence[int]) -> list[float]:
    """The shape of one split by the highest bar, scaled so that equal shapes lie on the tops of the bars."""
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
    """Which line is which split."""
    items = "".join(
        f'<li class="{split_class(split)}"><span class="swatch"></span>{shown(split, 60)}</li>' for split in splits
    )
    return (
        '<ul class="legend" aria-label="Lines in the charts">'
        f'<li class="all"><span class="swatch"></span>all images</li>{items}</ul>'
    )
