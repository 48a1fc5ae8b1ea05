"""docs/tutorials/review-labels.md to its end: planted errors are found, corrected, and seen in the difference."""

import csv
import json
import re
import shlex
import textwrap
from pathlib import Path

import pytest

from shardwright.pipelines.cli import main

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs/tutorials/review-labels.md"


def test_the_planted_errors_are_found_and_corrected(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    values = {}
    for block in re.findall(r"^ *```python\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        exec(textwrap.dedent(block), values)  # the page's own program
    commands = [shlex.split(line) for line in re.findall(r"^ *\$ shardwright (.*)$", text, re.MULTILINE)]
    review, relabel, diff, following = commands
    assert main(review) == 0
    with open("review/ranking.csv", encoding="utf-8", newline="") as file:
        ranked = [row["image"] for row in csv.DictReader(file)]
    assert len(ranked) == 80
    found = set(ranked[:20]) & set(values["wrong"])
    assert len(found) >= 3, [ranked.index(key) for key in values["wrong"]]
    assert len(json.loads(Path("review/annotations/annotations.json").read_text())["images"]) == 20
    # What the page saves after 2 was pressed for these images.
    page = Path("review/review.html").read_text(encoding="utf-8")
    data = json.loads(re.search('<script type="application/json" id="data">(.*?)</script>', page)[1])
    rows = [
        row for key, own in zip(data["keys"], data["rows"], strict=True) if key in found for row in own["prediction"]
    ]
    with open("corrections.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([data["header"], *rows])
    assert main(relabel) == 0
    capsys.readouterr()
    assert main([*diff, "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["key"] for row in rows} == found
    assert main(["sample", "--count", "6", "--height", "64", "--width", "96", "--seed", "5", "--out", "more"]) == 0
    following[following.index("new")] = "more/train_images"
    assert main(following) == 0
    assert "What to label next" in Path("next/review.html").read_text(encoding="utf-8")
