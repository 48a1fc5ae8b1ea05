"""A trained model as a chapter of the report: curves, figures against the last blessed model, best and worst images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup
from PIL import Image

from shardwright.display.charts import curves
from shardwright.display.histograms import number, percent
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
from shardwright.display.thumbnails import data_url
from shardwright.evaluation.figures import TITLES, Figures, Measured, title_of
from shardwright.evaluation.metrics import TUNED
from shardwright.report.image_stats import color_legend
from shardwright.report.page import Chapter

_LONGEST = 560
_QUALITY = 78
_SLICES = 40
# A larger confusion matrix is not readable.
_CONFUSED = 24
_PICTURES = {"best": "The best predictions", "worst": "The worst predictions"}
_SCORES = "the probability of its true class, or with several classes their F1"


def model_chapter(
    summary: Mapping[str, Any], details: Mapping[str, Any], history: Mapping[str, Any] | None, folder: Path
) -> Chapter:
    """Renders a training and its evaluation.

    Args:
        summary: `metrics`, `measured`, `interval`, `baseline`, `change`, `blessed`, `reasons`.
        details: `pictures`, `scored`, `slices`, `classes` and `confusion` of `evaluation.json`; empty if there is none.
        history: `loss`, `evaluation`, `measured` and `best_epoch` of the training; `None` if it is not known.
        folder: folder of the evaluation, which contains the pictures.
    """
    figures = Figures(summary["metrics"], Measured.from_dict(summary["measured"]))
    blessed = bool(summary["blessed"])
    verdict = badge("good", "blessed") if blessed else badge("bad", "not blessed")
    reasons = join(Markup("<li>{}</li>").format(isolate(reason, 400)) for reason in summary["reasons"])
    lead = join([verdict, "" if summary["baseline"] else " No earlier blessed model was compared."])
    cards = [Markup("<ul>{}</ul>").format(reasons) if reasons else "", grid(*_metrics(figures, summary), kind="fit")]
    if history is not None:
        cards.append(grid(*_curves(history)))
    if details.get("slices"):
        cards.append(_slices(details["slices"], figures.measured))
    if details.get("confusion"):
        cards.append(_confusion(details["confusion"], details["classes"], figures.measured))
    cards += [_sheet(kind, details, folder, figures.measured) for kind in _PICTURES]
    kind, words = ("good", "blessed") if blessed else ("warn", "not blessed")
    finding = (kind, join(["The model was ", link("model", words), "."]))
    return Chapter("model", "Model", section("model", "Model", *cards, lead=lead), (finding,))


def _metrics(figures: Figures, summary: Mapping[str, Any]) -> Iterator[Markup]:
    """Yields the figures of the whole split and those of each class, with their change from the last blessed model."""
    baseline, words = summary["baseline"], figures.measured.words()
    rows = []
    for name, value in figures.means():
        before = baseline.get(name)
        earlier = "–" if before is None else f"{before:.4f}"
        title, definition = TITLES.get(name, (name, ""))
        shown = join([isolate(title, 60), Markup("<br><small>{}</small>").format(definition) if definition else ""])
        rows.append((shown, f"{value:.4f}", earlier, _moved(value, before)))
    head = ("Figure", "This model", "Last blessed", "Moved")
    body = table(head, rows, caption=f"Figures of {words}", numbers=(1, 2, 3))
    spreads = []
    if summary["interval"]:
        spreads.append("{value:.4f} is, with 95 % confidence, {low:.4f} to {high:.4f}.".format(**summary["interval"]))
    if summary["change"]:
        spreads.append(
            "The last blessed model was measured on the same images, with its own thresholds; the change of "
            "{value:+.4f} is, with 95 % confidence, {low:+.4f} to {high:+.4f}.".format(**summary["change"])
        )
    yield card("Figures", body, note=" ".join(spreads))
    classes = figures.of_classes()
    if not classes:
        return
    kinds = sorted({kind for values in classes.values() for kind in values})
    rows_of = []
    for one, values in classes.items():
        cells = []
        for kind in kinds:
            now, before = values.get(kind), baseline.get(f"{kind}/{one}")
            cell = "–" if now is None else f"{now:.4f}"
            known = now is not None and before is not None
            cells.append(with_share(cell, _moved(now, before)) if known else cell)
        rows_of.append((isolate(one, 60), *cells))
    caption = f"Figures of each class: {words}" + (
        "; in brackets what moved since the last blessed model" if baseline else ""
    )
    titles = ("Class", *(isolate(title_of(kind), 30) for kind in kinds))
    yield card("By class", table(titles, rows_of, caption=caption, numbers=range(1, 9)))


def _moved(value: float | None, before: float | None) -> str:
    return "–" if before is None or value is None else f"{value - before:+.4f}".replace("-", "−")


def _curves(history: Mapping[str, Any]) -> Iterator[Markup]:
    best = int(history["best_epoch"])
    names = sorted({name for epoch in history["evaluation"] for name in epoch if "/" not in name})
    metrics = {name: [epoch.get(name, math.nan) for epoch in history["evaluation"]] for name in names}
    losses = {"training": history["loss"], **({"evaluation": metrics.pop("loss")} if "loss" in metrics else {})}
    measured = Measured.from_dict(history["measured"]) if history["evaluation"] else None
    words = measured.words() if measured else ""
    note = f"Evaluation: {words}." if words else ""
    yield card("Loss by epoch", curves("c-loss", "Loss by epoch", losses, best), note=note)
    for place, (name, values) in enumerate(list(metrics.items())[:5]):
        title = f"{title_of(name)} by epoch"
        # Its title says what its thresholds are.
        words = replace(measured, thresholds=()).words() if measured and name.startswith(TUNED) else words
        drawn = curves(f"c-metric-{place}", f"{title}, {words}", {"evaluation": values}, best)
        yield card(isolate(title, 60), drawn, note=f"{words}.")


def _confusion(matrix: Sequence[Sequence[int]], classes: Sequence[str], measured: Measured) -> Markup:
    if len(classes) > _CONFUSED:
        return Markup("")
    rows = []
    for name, counts in zip(classes, matrix, strict=True):
        total = max(1, sum(counts))
        cells = [with_share(number(count), percent(count / total)) if count else "0" for count in counts]
        rows.append((isolate(name, 40), *cells))
    head = ("True class", *(isolate(name, 30) for name in classes))
    caption = f"Images of a class (row) by the predicted class (column): {measured.words()}"
    body = table(head, rows, caption=caption, numbers=range(1, len(classes) + 1))
    return card("Confusion matrix", body, wide=True)


def _slices(slices: Sequence[Mapping[str, Any]], measured: Measured) -> Markup:
    names = sorted({name for row in slices for name in row["metrics"] if "/" not in name})[:4]
    rows = []
    for row in slices[:_SLICES]:
        figures = [row["metrics"].get(name) for name in names]
        cells = ["–" if value is None else f"{value:.4f}" for value in figures]
        # The class `a` has a Dice of its own: here are the images that show it, with all their classes.
        kind = "images with" if row["by"] == "class" else f"images of {row['by']}"
        rows.append((join([isolate(kind, 40), isolate(str(row["value"]), 60)], " "), number(row["images"]), *cells))
    head = ("Part", "Images", *(isolate(f"{title_of(name)} of the part", 60) for name in names))
    caption = f"All classes together, on parts of the {measured.words()}"
    body = table(head, rows, caption=caption, numbers=range(1, len(names) + 2))
    left = len(slices) - _SLICES
    return card("Parts", body, note=f"{number(left)} more are in evaluation.json." if left > 0 else "", wide=True)


def _sheet(kind: str, details: Mapping[str, Any], folder: Path, measured: Measured) -> Markup:
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
    scored = int(details.get("scored", measured.images))
    chosen = "" if scored == measured.images else f", of {scored:,} images that were chosen by a hash"
    meaning = "the mean Dice of its classes, 1 where neither truth nor prediction has any pixel" if masks else _SCORES
    note = f"Of {measured.words()}{chosen}. The score of an image is {meaning}."
    if masks:
        note = f"Each picture: the image, the truth, the prediction. {note}"
    return card(_PICTURES[kind], legend, grid(*tiles), note=note, wide=True)


def _picture(folder: Path, name: str) -> str:
    """Returns a picture of the evaluation, reduced, as a `data:` URL; empty if it is missing or outside the folder."""
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()) or not file.is_file():
        return ""
    with Image.open(file) as opened:
        small = opened.convert("RGB")
    small.thumbnail((_LONGEST, _LONGEST))
    return data_url("jpeg", small, quality=_QUALITY)
