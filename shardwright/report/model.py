"""A trained model as a chapter of the report: curves, figures against the last blessed model, best and worst images."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from shardwright.report.histograms import number
from shardwright.report.markup import attribute, card, section, shown, table
from shardwright.report.page import Chapter

_WIDTH, _HEIGHT, _EDGE = 360, 150, 22
_LONGEST = 560
_QUALITY = 78
_SLICES = 40
_PICTURES = {"best": "The best predictions", "worst": "The worst predictions"}


def model_chapter(
    summary: Mapping[str, Any], details: Mapping[str, Any], history: Mapping[str, Any] | None, folder: Path
) -> Chapter:
    """Renders a training and its evaluation.

    Args:
        summary: `metrics`, `baseline`, `blessed`, `reasons`.
        details: `pictures` and `slices` of `evaluation.json`; empty where there is none.
        history: `loss`, `evaluation` and `best_epoch` of the training; `None` where it is not known.
        folder: of the evaluation, where the pictures lie.
    """
    blessed = bool(summary["blessed"])
    badge = '<span class="badge good">blessed</span>' if blessed else '<span class="badge bad">not blessed</span>'
    reasons = "".join(f"<li>{shown(reason, 400)}</li>" for reason in summary["reasons"])
    verdict = card("Verdict", f"<p>{badge}</p>", f"<ul>{reasons}</ul>" if reasons else "")
    cards = [f'<div class="grid fit">{verdict}{_metrics(summary)}</div>']
    if history is not None:
        cards.append(f'<div class="grid">{"".join(_curves(history))}</div>')
    if details.get("slices"):
        cards.append(_slices(details["slices"]))
    cards += [_sheet(kind, details.get("pictures", ()), folder) for kind in _PICTURES]
    kind, words = ("good", "blessed") if blessed else ("warn", "not blessed")
    finding = (kind, f'The model was <a href="#model">{words}</a>.')
    return Chapter("model", "Model", section("model", "Model", *cards), (finding,))


def _metrics(summary: Mapping[str, Any]) -> str:
    baseline = summary["baseline"]
    rows = []
    for name, value in sorted(summary["metrics"].items(), key=lambda item: ("/" in item[0], item[0])):
        before = baseline.get(name)
        moved = "–" if before is None else f"{value - before:+.4f}".replace("-", "−")
        rows.append((shown(name, 60), f"{value:.4f}", "–" if before is None else f"{before:.4f}", moved))
    head = ("Figure", "This model", "Last blessed", "Moved")
    return card("Figures", table(head, rows, caption="Figures over the whole split", numbers=(1, 2, 3)))


def _curves(history: Mapping[str, Any]) -> Iterator[str]:
    best = int(history["best_epoch"])
    yield card("Loss", curve("c-loss", "Training loss", history["loss"], best))
    names = sorted({name for epoch in history["evaluation"] for name in epoch if "/" not in name})
    for place, name in enumerate(names[:5]):
        values = [epoch.get(name, math.nan) for epoch in history["evaluation"]]
        yield card(shown(name, 40), curve(f"c-metric-{place}", f"{name} by epoch", values, best))


def curve(ident: str, title: str, values: Sequence[float], best: int) -> str:
    """A line over epochs.

    Args:
        ident: unique on the page.
        title: what it shows.
        values: one an epoch; NaN leaves a gap.
        best: the epoch that was kept, from 1.
    """
    there = [(epoch, value) for epoch, value in enumerate(values, 1) if math.isfinite(value)]
    if not there:
        return '<p class="note">Nothing was measured.</p>'
    low, high = min(value for _, value in there), max(value for _, value in there)
    step = (_WIDTH - 2 * _EDGE) / max(1, len(values) - 1)
    tall = (_HEIGHT - 2 * _EDGE) / ((high - low) or 1)
    points = [(_EDGE + (epoch - 1) * step, _HEIGHT - _EDGE - (value - low) * tall) for epoch, value in there]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    kept = next((value for epoch, value in there if epoch == best), there[-1][1])
    words = (
        f"{title}: from {number(there[0][1])} to {number(there[-1][1])} in {len(values)} epochs, kept {number(kept)}"
    )
    x = _EDGE + (best - 1) * step
    mark = f'<line class="mark" x1="{x:.1f}" y1="{_EDGE}" x2="{x:.1f}" y2="{_HEIGHT - _EDGE}"/>' if best else ""
    ends = f'<circle class="s-train" cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="3" fill="currentColor"/>'
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{ident}-t">'
        f'<title id="{ident}-t">{attribute(words, 300)}</title>{mark}'
        f'<polyline class="line s-train" points="{line}"/>{ends}'
        f'<text x="{_EDGE}" y="{_HEIGHT - 4}">epoch 1</text>'
        f'<text x="{_WIDTH - _EDGE}" y="{_HEIGHT - 4}" text-anchor="end">{len(values)}</text></svg>'
        f'<p class="figures">{html.escape(number(there[0][1]))} → <b>{html.escape(number(there[-1][1]))}</b>; '
        f"kept epoch {best or len(values)}: <b>{html.escape(number(kept))}</b></p>"
    )


def _slices(slices: Sequence[Mapping[str, Any]]) -> str:
    names = sorted({name for row in slices for name in row["metrics"] if "/" not in name})[:4]
    rows = []
    for row in slices[:_SLICES]:
        figures = [row["metrics"].get(name) for name in names]
        cells = ["–" if value is None else f"{value:.4f}" for value in figures]
        rows.append((f"{shown(str(row['by']), 30)}: {shown(str(row['value']), 60)}", number(row["images"]), *cells))
    head = ("Images of", "Images", *(shown(name, 40) for name in names))
    body = table(head, rows, caption="Figures of parts of the split", numbers=range(1, len(names) + 2))
    left = len(slices) - _SLICES
    return card("Parts", body, note=f"{number(left)} more are in evaluation.json." if left > 0 else "", wide=True)


def _sheet(kind: str, pictures: Sequence[Mapping[str, Any]], folder: Path) -> str:
    tiles = []
    for row in pictures:
        url = _picture(folder, str(row["file"])) if row["kind"] == kind else ""
        if url:
            words = f"{row['key']}: the image, what is true, what the model says; score {row['score']:.3f}"
            told = "".join(f" {name} {shown(str(row[name]), 40)}" for name in ("truth", "prediction") if name in row)
            tiles.append(
                f'<figure><div class="pic"><img src="{url}" alt="{attribute(words, 240)}"></div>'
                f'<figcaption><span class="k">{shown(str(row["key"]), 80)}</span>score {row["score"]:.3f}{told}'
                "</figcaption></figure>"
            )
    return card(_PICTURES[kind], f'<div class="grid">{"".join(tiles)}</div>', wide=True) if tiles else ""


def _picture(folder: Path, name: str) -> str:
    """A picture of the evaluation, made small; empty where it is not there or lies elsewhere."""
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()) or not file.is_file():
        return ""
    with Image.open(file) as picture:
        small = picture.convert("RGB")
    small.thumbnail((_LONGEST, _LONGEST))
    data = io.BytesIO()
    small.save(data, "jpeg", quality=_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode('ascii')}"
