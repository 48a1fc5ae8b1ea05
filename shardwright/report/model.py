"""A trained model as a chapter of the report: curves, figures against the last blessed model, best and worst images."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from PIL import Image

from shardwright.display.charts import curves
from shardwright.display.html import (
    badge,
    card,
    figure,
    grid,
    isolate,
    join,
    link,
    picture,
    section,
    table,
    with_share,
)
from shardwright.display.numbers import number, percent
from shardwright.report.image_stats import color_legend
from shardwright.report.page import Chapter

_LONGEST = 560
_QUALITY = 78
_SLICES = 40
# A larger confusion matrix is not readable.
_CONFUSED = 24
_PICTURES = {"best": "The best predictions", "worst": "The worst predictions"}
_WORDS = {
    "accuracy": "Accuracy",
    "dice": "Dice",
    "f1": "F1",
    "iou": "IoU",
    "kaggle_dice": "Dice as Kaggle counts it",
    "mean_dice": "Mean Dice",
    "mean_f1": "Mean F1",
    "mean_iou": "Mean IoU",
}


def model_chapter(
    summary: Mapping[str, Any], details: Mapping[str, Any], history: Mapping[str, Any] | None, folder: Path
) -> Chapter:
    """Renders a training and its evaluation.

    Args:
        summary: `metrics`, `baseline`, `blessed`, `reasons`.
        details: `pictures`, `slices`, `classes` and `confusion` of `evaluation.json`; empty if there is none.
        history: `loss`, `evaluation` and `best_epoch` of the training; `None` if it is not known.
        folder: folder of the evaluation, which contains the pictures.
    """
    blessed = bool(summary["blessed"])
    verdict = badge("good", "blessed") if blessed else badge("bad", "not blessed")
    reasons = join(Markup("<li>{}</li>").format(isolate(reason, 400)) for reason in summary["reasons"])
    lead = join([verdict, "" if summary["baseline"] else " No earlier blessed model was compared."])
    cards = [Markup("<ul>{}</ul>").format(reasons) if reasons else "", grid(*_metrics(summary), kind="fit")]
    if history is not None:
        cards.append(grid(*_curves(history)))
    if details.get("slices"):
        cards.append(_slices(details["slices"]))
    if details.get("confusion"):
        cards.append(_confusion(details["confusion"], details["classes"]))
    cards += [_sheet(kind, details, folder) for kind in _PICTURES]
    kind, words = ("good", "blessed") if blessed else ("warn", "not blessed")
    finding = (kind, join(["The model was ", link("model", words), "."]))
    return Chapter("model", "Model", section("model", "Model", *cards, lead=lead), (finding,))


def _metrics(summary: Mapping[str, Any]) -> Iterator[Markup]:
    """Yields the figures of the whole split and those of each class, with their change from the last blessed model."""
    metrics, baseline = summary["metrics"], summary["baseline"]
    rows = []
    for name in sorted(name for name in metrics if "/" not in name):
        before = baseline.get(name)
        earlier = "–" if before is None else f"{before:.4f}"
        rows.append(
            (isolate(_WORDS.get(name, name), 60), f"{metrics[name]:.4f}", earlier, _moved(metrics[name], before))
        )
    head = ("Figure", "This model", "Last blessed", "Moved")
    yield card("Figures", table(head, rows, caption="Figures over the whole split", numbers=(1, 2, 3)))
    kinds = sorted({name.split("/", 1)[0] for name in metrics if "/" in name})
    classes = dict.fromkeys(name.split("/", 1)[1] for name in sorted(metrics) if "/" in name)
    if not classes:
        return
    rows_of = []
    for one in classes:
        cells = []
        for kind in kinds:
            value, before = metrics.get(f"{kind}/{one}"), baseline.get(f"{kind}/{one}")
            shown = "–" if value is None else f"{value:.4f}"
            known = value is not None and before is not None
            cells.append(with_share(shown, _moved(value, before)) if known else shown)
        rows_of.append((isolate(one, 60), *cells))
    caption = "Figures of each class" + ("; in brackets what moved since the last blessed model" if baseline else "")
    body = table(
        ("Class", *(isolate(_WORDS.get(kind, kind), 30) for kind in kinds)),
        rows_of,
        caption=caption,
        numbers=range(1, 9),
    )
    yield card("By class", body)


def _moved(value: float, before: float | None) -> str:
    return "–" if before is None else f"{value - before:+.4f}".replace("-", "−")


def _curves(history: Mapping[str, Any]) -> Iterator[Markup]:
    best = int(history["best_epoch"])
    names = sorted({name for epoch in history["evaluation"] for name in epoch if "/" not in name})
    metrics = {name: [epoch.get(name, math.nan) for epoch in history["evaluation"]] for name in names}
    losses = {"training": history["loss"], **({"evaluation": metrics.pop("loss")} if "loss" in metrics else {})}
    yield card("Loss", curves("c-loss", "Loss", losses, best))
    for place, (name, values) in enumerate(list(metrics.items())[:5]):
        title = _WORDS.get(name, name)
        yield card(isolate(title, 40), curves(f"c-metric-{place}", title, {"evaluation": values}, best))


def _confusion(matrix: Sequence[Sequence[int]], classes: Sequence[str]) -> Markup:
    if len(classes) > _CONFUSED:
        return Markup("")
    rows = []
    for name, counts in zip(classes, matrix, strict=True):
        total = max(1, sum(counts))
        cells = [with_share(number(count), percent(count / total)) if count else "0" for count in counts]
        rows.append((isolate(name, 40), *cells))
    head = ("True class", *(isolate(name, 30) for name in classes))
    caption = "Images of a class (row) by the predicted class (column)"
    body = table(head, rows, caption=caption, numbers=range(1, len(classes) + 1))
    return card("Confusion matrix", body, wide=True)


def _slices(slices: Sequence[Mapping[str, Any]]) -> Markup:
    names = sorted({name for row in slices for name in row["metrics"] if "/" not in name})[:4]
    rows = []
    for row in slices[:_SLICES]:
        figures = [row["metrics"].get(name) for name in names]
        cells = ["–" if value is None else f"{value:.4f}" for value in figures]
        part = join([isolate(str(row["by"]), 30), isolate(str(row["value"]), 60)], ": ")
        rows.append((part, number(row["images"]), *cells))
    head = ("Images of", "Images", *(isolate(_WORDS.get(name, name), 40) for name in names))
    body = table(head, rows, caption="Figures of parts of the split", numbers=range(1, len(names) + 2))
    left = len(slices) - _SLICES
    return card("Parts", body, note=f"{number(left)} more are in evaluation.json." if left > 0 else "", wide=True)


def _sheet(kind: str, details: Mapping[str, Any], folder: Path) -> Markup:
    tiles, masks = [], False
    for row in details.get("pictures", ()):
        url = _picture(folder, str(row["file"])) if row["kind"] == kind else ""
        if url:
            masks = masks or "truth" not in row
            words = f"{row['key']}: the image, the truth, the prediction; score {row['score']:.3f}"
            labels = [join([name, isolate(str(row[name]), 40)], " ") for name in ("truth", "prediction") if name in row]
            below = join([f"score {row['score']:.3f}", *labels], " ")
            tiles.append(figure(picture(url, words), str(row["key"]), below))
    if not tiles:
        return Markup("")
    legend = color_legend(tuple(details.get("classes", ()))) if masks else ""
    note = "Each picture: the image, the truth, the prediction." if masks else ""
    return card(_PICTURES[kind], legend, grid(*tiles), note=note, wide=True)


def _picture(folder: Path, name: str) -> str:
    """Returns a picture of the evaluation, reduced, as a `data:` URL; empty if it is missing or outside the folder."""
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()) or not file.is_file():
        return ""
    with Image.open(file) as opened:
        small = opened.convert("RGB")
    small.thumbnail((_LONGEST, _LONGEST))
    data = io.BytesIO()
    small.save(data, "jpeg", quality=_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode('ascii')}"
