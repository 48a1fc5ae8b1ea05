"""Every figure says what it is of: the page, the table, the cards and the JSON of a run are walked."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from descent import Months
from evaluations import EPOCHS, MEASURED, evaluated, trained
from PIL import Image

from shardwright.components.evaluator.result_files import write_details, write_evaluation
from shardwright.components.image_trainer.training.history import HISTORY_FILE
from shardwright.components.runtime.artifacts import write_record
from shardwright.evaluation.figures import KAGGLE, TITLES
from shardwright.pipelines.cli import main
from shardwright.pipelines.runs import summary as run_summary
from shardwright.pipelines.runs.summary import model_chapter_of

METRIC = re.compile("|".join((*TITLES, r"(dice|iou|f1)/.+")))
WORDS = MEASURED.words()
# Each figure has its own value, so that two that are shown under one name are found.
METRICS = {
    "mean_dice": 0.811, "mean_iou": 0.712, "mean_f1": 0.613, KAGGLE: 0.914,
    "dice/Fish": 0.815, "iou/Fish": 0.716, "f1/Fish": 0.617, "dice/Sugar": 0.818, "iou/Sugar": 0.719, "f1/Sugar": 0.62,
}  # fmt: skip
EVALUATION = [{"mean_dice": 0.321, "mean_iou": 0.222, "mean_f1": 0.123, KAGGLE: 0.424, "loss": 0.925}]
SLICES = [
    {"by": by, "value": value, "images": 7, "metrics": {"mean_dice": 0.131 + place / 100, KAGGLE: 0.532 + place / 100}}
    for place, (by, value) in enumerate((("class", "Fish"), ("folder", "a"), ("brightness", "dark")))
]


@pytest.fixture
def evaluation(tmp_path):
    """An evaluation, and the training before it."""
    folder = tmp_path / "evaluation"
    (folder / "pictures").mkdir(parents=True)
    Image.fromarray(np.zeros((20, 60, 3), np.uint8)).save(folder / "pictures/best-00.png")
    summary = evaluated(METRICS, baseline={name: value / 2 for name, value in METRICS.items()})
    write_evaluation(folder, summary)
    picture = {"file": "pictures/best-00.png", "kind": "best", "key": "a", "score": 0.99}
    details = {"slices": SLICES, "pictures": [picture], "classes": ["Fish", "Sugar"], "confusion": [[3, 1], [0, 4]]}
    write_details(folder, {**vars(summary), **details, "scored": 20})
    write_record(tmp_path / HISTORY_FILE, trained([1.5], EVALUATION))
    return folder


class Tables(HTMLParser):
    """Collects the label and the rows of every table."""

    def __init__(self, text):
        super().__init__()
        self.tables, self._in = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self._in.append(tag)
        if tag == "table":
            self.tables.append((dict(attributes)["aria-label"], []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][1][-1].append("")
        elif tag in ("br", "img", "meta", "link", "hr", "input", "path", "line", "rect", "circle", "use"):
            self._in.pop()

    def handle_endtag(self, tag):
        if tag in self._in:
            while self._in.pop() != tag:
                pass

    def handle_data(self, data):
        if "table" not in self._in:
            return
        _, rows = self.tables[-1]
        if rows and rows[-1] and not {"small"} & set(self._in):
            rows[-1][-1] += data


def test_the_page_shows_no_figure_without_what_it_is_of(evaluation, tmp_path):
    text = str(model_chapter_of(evaluation, tmp_path).body)
    titles = {title for title, _ in TITLES.values()}
    found = {}
    for caption, (head, *rows) in Tables(text).tables:
        assert WORDS in caption, caption
        for row in rows:
            for name, cell in zip(head[1:], row[1:], strict=True):
                label = name if set(name.split(" of ")) & titles else row[0]
                if re.fullmatch(r"[01]\.\d{4}", cell.strip()):
                    part = row[0] if label is name else name
                    found.setdefault((label.strip(), part.strip()), set()).add(cell.strip())
    assert len(found) >= len(METRICS) + len(SLICES)
    # One name, one value: what is of a part, or of one class, says so in its name.
    assert {label: values for label, values in found.items() if len(values) > 1} == {}
    # Each curve names the split that chose the best epoch, and what was not tuned then.
    drawn = re.findall(r"<figure.*?</figure>|<svg.*?</svg>", text, re.DOTALL)
    assert drawn
    assert text.count(f"{EPOCHS.words()}.") >= len(EVALUATION[0])
    assert TITLES[KAGGLE][1] in text
    assert "of 20 images that were chosen by a hash" in text


def test_the_table_of_a_run_shows_no_figure_without_what_it_is_of():
    found = evaluated(METRICS, baseline=METRICS, change={"value": 0.01, "low": -0.02, "high": 0.04})
    rows = run_summary._metric_rows(found, first="mean_dice")
    assert rows[0] == ("figures", f"of {WORDS}")
    shown = dict(rows[1:])
    assert len(shown) == len(rows) - 1
    assert {name for name in shown if METRIC.fullmatch(name)} == set(METRICS)
    assert "with 95 % confidence 0.5000 to 0.5000" in shown["mean_dice"]
    assert shown[KAGGLE].endswith(TITLES[KAGGLE][1])
    assert shown["mean_dice change"].endswith("on the same images")


def unmeasured(value, known=frozenset(), path=""):
    """Yields paths of metrics of which no object around them says what they are of."""
    if isinstance(value, dict):
        known = known | {key for key in ("measured", "split") if value.get(key)}
        for name, inner in value.items():
            here = f"{path}/{name}"
            if METRIC.fullmatch(name) and isinstance(inner, float) and not known:
                yield here
            yield from unmeasured(inner, known, here)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from unmeasured(inner, known, f"{path}/{place}")


def test_no_file_of_a_model_has_a_metric_without_what_it_is_of(evaluation, tmp_path):
    assert list(unmeasured({"a": [{"mean_dice": 0.5}]})) == ["/a/0/mean_dice"]
    files = [*evaluation.glob("*.json"), tmp_path / "history.json"]
    assert {file.name for file in files} == {"summary.json", "evaluation.json", "history.json"}
    for file in files:
        # The loss on `train` is named so by the file: it is no metric of a split.
        assert list(unmeasured(json.loads(file.read_text()))) == [], file


def test_a_card_says_what_its_figures_are_of(small_dataset, tmp_path, capsys):
    made = Months(tmp_path / "run", small_dataset)
    write_record(made.evaluation / "summary.json", evaluated(METRICS))
    assert main(["card", str(made.root), "--search", str(made.root / "artifacts")]) == 0
    card = capsys.readouterr().out
    assert f"Measured on {WORDS}" in card
    assert f"- {KAGGLE}: {TITLES[KAGGLE][1]}" in card
