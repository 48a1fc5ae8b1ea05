"""Lines over epochs as inline SVG; each says in words what it shows."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

from shardwright.report.histograms import number
from shardwright.report.markup import attribute

_WIDTH, _HEIGHT = 360, 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 12, 24
# Lines of other names.
_STYLES = {"training": "s-train", "evaluation": "s-eval"}
_OTHER = "s-other"


def curves(ident: str, title: str, lines: Mapping[str, Sequence[float]], best: int) -> str:
    """Lines over epochs, on one scale; of one epoch the figures alone.

    Args:
        ident: unique on the page.
        title: what they show.
        lines: name -> values, one an epoch; NaN leaves a gap.
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
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, epochs - 1)
    tall = (_HEIGHT - _TOP - _BOTTOM) / ((high - low) or 1)
    base = _HEIGHT - _BOTTOM
    drawn = "".join(
        _line(
            _STYLES.get(name, _OTHER),
            [(_LEFT + (epoch - 1) * step, base - (value - low) * tall) for epoch, value in found],
        )
        for name, found in there.items()
    )
    x = _LEFT + ((best or epochs) - 1) * step
    told = [_told(name, found, best) for name, found in there.items()]
    words = f"{title} in {epochs} epochs: " + "; ".join(plain for plain, _ in told)
    legend = ""
    if len(there) > 1:
        items = "".join(
            f'<li class="{_STYLES.get(name, _OTHER)}"><span class="swatch"></span>{html.escape(name)}</li>'
            for name in there
        )
        legend = f'<ul class="legend" aria-label="Lines of the chart">{items}</ul>'
    figures = f'<p class="figures">{"<br>".join(rich for _, rich in told)}</p>'
    if epochs == 1:
        return figures
    scale = f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{html.escape(number(high))}</text>'
    if high > low:
        scale += f'<text x="{_LEFT - 6}" y="{base + 4}" text-anchor="end">{html.escape(number(low))}</text>'
    return (
        f'{legend}<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{ident}-t">'
        f'<title id="{ident}-t">{attribute(words, 400)}</title>'
        f'<line class="axis" x1="{_LEFT}" y1="{base}" x2="{_WIDTH - _RIGHT}" y2="{base}"/>'
        f'<line class="mark" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{base}"/>{drawn}{scale}'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">epoch 1</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">{epochs}</text></svg>'
        f"{figures}"
    )


def _line(style: str, points: Sequence[tuple[float, float]]) -> str:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return (
        f'<polyline class="line {style}" points="{line}"/>'
        f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>'
    )


def _told(name: str, found: Sequence[tuple[int, float]], best: int) -> tuple[str, str]:
    """What a line shows: as plain text, and as HTML."""
    first, last = number(found[0][1]), number(found[-1][1])
    epoch, kept = next(((epoch, value) for epoch, value in found if epoch == best), found[-1])
    plain = f"{name} from {first} to {last}, kept {number(kept)}"
    rich = f"{html.escape(name)} {first} → <b>{last}</b>; kept epoch {epoch}: <b>{number(kept)}</b>"
    return plain, rich
