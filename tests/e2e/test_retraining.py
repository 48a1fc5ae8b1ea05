"""Three months with one configuration: a good delivery, one with damaged labels, a good one again."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardwright.dataset import Dataset
from shardwright.sample import write_sample
from shardwright_pipelines.cli import main

pytestmark = pytest.mark.slow
CONFIG = {
    "name": "monthly",
    "previous": "blessed",
    "input": {"images": "data/span-{SPAN}/train_images", "labels": {"path": "data/span-{SPAN}/train.csv"}},
    # A stratified split would divide each delivery afresh: what keeps old images where they were is `previous`.
    "split": {"train": 0.6, "eval": 0.2, "test": 0.2, "by": "stratified", "previous": "blessed"},
    "gate": {"drift": {"reference": "blessed"}},
    "transform": {"size": [32, 48]},
    "trainer": {"epochs": 1, "batch_size": 8, "width": 8, "warm_start": "blessed"},
    "evaluator": {"min_dice": 0.0, "min_change": -1.0},
    "run": {"root": "run"},
}


class Month:
    """What a run said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def place(self, label: str) -> Path:
        return Path(re.search(rf"^{label} +(\S+)$", self.out, re.MULTILINE)[1])


def deliver(folder: Path, span: int, images: int) -> Path:
    data = folder / "data" / f"span-{span}"
    write_sample(str(data), images=images, height=64, width=96, seed=5, quiet=True)
    return data


def damage(table: Path) -> None:
    """Every mask becomes a few pixels: what a broken export of an annotation tool looks like."""
    with table.open(newline="") as file:
        head, *rows = csv.reader(file)
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([head, *([name, "1 40" if runs else ""] for name, runs in rows)])


def splits(dataset: Path) -> dict[str, str]:
    return {row.key: row.split for row in Dataset.open(dataset).ledger()}


def lineage(capsys: pytest.CaptureFixture[str], path: Path) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["lineage", str(path), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_three_deliveries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "monthly.yaml").write_text(yaml.safe_dump(CONFIG))

    def month() -> Month:
        capsys.readouterr()
        code = main(["run", "monthly.yaml"])
        said = capsys.readouterr()
        return Month(code, said.out, said.err)

    deliver(tmp_path, 1, images=40)
    first = month()
    assert first.code == 0, first.err
    assert "split.previous: no dataset yet, since no model was ever blessed" in first.out
    in_force = (tmp_path / "run/pushed/BLESSED.json").read_bytes()
    pushed = first.place("pushed model")
    files = {file: file.read_bytes() for file in pushed.rglob("*") if file.is_file()}

    damage(deliver(tmp_path, 2, images=40) / "train.csv")
    second = month()
    assert second.code == 1
    assert "The data gate is shut" in second.err
    assert re.search(r"area of (Fish|Flower|Gravel|Sugar) ", second.err)
    report = Path(second.err.rsplit("See it: ", 1)[1].strip())
    assert "Drift against the reference" in report.read_text(encoding="utf-8")
    assert (tmp_path / "run/pushed/BLESSED.json").read_bytes() == in_force
    assert {file: file.read_bytes() for file in pushed.rglob("*") if file.is_file()} == files
    assert [path.name for path in (tmp_path / "run/pushed").iterdir() if path.is_dir()] == [pushed.name]

    deliver(tmp_path, 3, images=56)
    third = month()
    assert third.code == 0, third.err
    old, new = splits(first.place("dataset")), splits(third.place("dataset"))
    assert len(new) == 56
    assert {key: new[key] for key in old} == old
    assert re.search(r"^mean_dice +0\.\d{4}   last blessed 0\.\d{4}$", third.out, re.MULTILINE)
    assert "BLESSED and pushed" in third.out
    assert third.place("pushed model") != pushed

    told = lineage(capsys, third.place("pushed model"))
    kinds = {row["place"]: row["kind"] for row in told["artifacts"]}
    datasets = {place for place, kind in kinds.items() if kind == "ingest"}
    assert datasets == {str(first.place("dataset")), str(third.place("dataset"))}
    assert str(pushed) in kinds
    assert told["missing"] == told["problems"] == []
    assert told["evaluations"][0]["parents"]["baseline"] == lineage(capsys, pushed)["artifacts"][0]["fingerprint"]
    assert {"ImageExampleGen", "Trainer", "Pusher"} <= {step["component"] for step in told["steps"]}
