"""Three months with one configuration: a good delivery, one with damaged labels, a good one again.

The third month's model begins with the one in force, and is first asked for more than it can do.
"""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from any_model import BLESSES_ANY

from shardwright.components.image_trainer.training.history import TrainingSummary, read_summary
from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines.cli import main
from shardwright.sample import write_sample
from shardwright.storage.checksum import checksum_of

pytestmark = pytest.mark.slow
CONFIG = {
    "name": "monthly",
    "reuse_from": "blessed",
    "input": {"images": "data/span-{SPAN}/train_images", "labels": {"path": "data/span-{SPAN}/train.csv"}},
    # A stratified split would divide each delivery afresh: what keeps old images where they were is `previous`.
    "split": {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}, "method": "stratified", "keep_from": "blessed"},
    "gate": {"drift": {"reference": "blessed"}},
    "transform": {"size": [32, 48]},
    "trainer": {
        "model": "own_models:normed",
        "epochs": 2,
        "batch_size": 4,
        "learning_rate": 0.005,
        "warm_start": "blessed",
    },
    "evaluator": BLESSES_ANY,
    "run": {"root": "run"},
}


class Month:
    """The output of a run."""

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
    return {row.key: row.split for row in ImageDataset.open(dataset).ledger()}


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def trainings(folder: Path) -> list[TrainingSummary]:
    """In the order in which they were done."""
    runs = folder.glob("run/artifacts/Trainer/model_run/*")
    return [read_summary(place) for place in sorted(runs, key=lambda place: int(place.name))]


def lineage(capfd: pytest.CaptureFixture[str], path: Path) -> dict[str, Any]:
    capfd.readouterr()
    assert main(["lineage", str(path), "--json"]) == 0
    return dict(json.loads(capfd.readouterr().out))


def test_three_deliveries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)

    def month(**changes: Any) -> Month:
        (tmp_path / "monthly.yaml").write_text(yaml.safe_dump({**CONFIG, **changes}))
        capfd.readouterr()
        code = main(["run", "monthly.yaml"])
        said = capfd.readouterr()
        return Month(code, said.out, said.err)

    deliver(tmp_path, 1, images=40)
    first = month()
    assert first.code == 0, first.err
    assert "split.keep_from: no dataset yet, since no model was ever blessed" in first.out
    pushed = first.place("pushed model")
    in_force = files(tmp_path / "run/pushed")

    damage(deliver(tmp_path, 2, images=40) / "train.csv")
    second = month()
    assert second.code == 1
    assert "The data gate is shut" in second.err
    assert re.search(r"area of (Fish|Flower|Gravel|Sugar) ", second.err)
    report = Path(re.findall(r"See it: (\S+)", second.err)[-1])
    assert "Drift against the reference" in report.read_text(encoding="utf-8")
    assert files(tmp_path / "run/pushed") == in_force

    deliver(tmp_path, 3, images=56)
    refused = month(evaluator={**BLESSES_ANY, "min_dice": 0.999})
    assert refused.code == 1
    assert re.search(r"^model +NOT BLESSED, not pushed$", refused.out, re.MULTILINE)
    assert re.search(r"the model was not blessed: .*mean_dice 0\.\d{4} is less than min_dice 0\.9990", refused.err)
    last = refused.out[refused.out.index("NOT BLESSED") :]
    model = re.search(r"^model +(/\S+/artifacts/Trainer/model/\d+)$", last, re.MULTILINE)
    assert model
    assert Path(model[1], "Format-Serving").is_dir()
    assert re.search(r"^not blessed +mean_dice .*\n", last, re.MULTILINE)
    assert re.search(r"^predict with it +shardwright predict \S+ IMAGES --unblessed --out \S+$", last, re.MULTILINE)
    assert re.search(r"^keys that decide +evaluator.min_dice$", last, re.MULTILINE)
    assert files(tmp_path / "run/pushed") == in_force
    cold, warm = trainings(tmp_path)
    kept = checksum_of((pushed / "assets.extra/model.keras").read_bytes())
    assert (cold.warm_start, warm.warm_start) == ("", kept)
    assert warm.epochs[0]["loss"] < cold.epochs[0]["loss"]

    # Asked for less, the run ends in the same training, which is cached, and pushes it.
    third = month()
    assert third.code == 0, third.err
    cached = set(re.findall(r"^  (\w+) +cached$", third.out, re.MULTILINE))
    assert {"ImageExampleGen", "StatisticsGen", "DataGate", "ImageTransform", "Trainer"} <= cached
    after = files(tmp_path / "run/pushed")
    assert {name: after[name] for name in in_force if name != "BLESSED.json"} == {
        name: data for name, data in in_force.items() if name != "BLESSED.json"
    }
    old, new = splits(first.place("dataset")), splits(third.place("dataset"))
    assert len(new) == 56
    assert {key: new[key] for key in old} == old
    assert re.search(r"^mean_dice +0\.\d{4} .*   last blessed 0\.\d{4}$", third.out, re.MULTILINE)
    assert "BLESSED and pushed" in third.out
    assert third.place("pushed model") != pushed

    report = lineage(capfd, third.place("pushed model"))
    kinds = {row["place"]: row["kind"] for row in report["artifacts"]}
    datasets = {place for place, kind in kinds.items() if kind == "ingest"}
    assert datasets == {str(first.place("dataset")), str(third.place("dataset"))}
    assert str(pushed) in kinds
    assert report["missing"] == report["problems"] == []
    assert report["evaluations"][0]["parents"]["baseline"] == lineage(capfd, pushed)["artifacts"][0]["fingerprint"]
    assert {"ImageExampleGen", "Trainer", "Pusher"} <= {step["component"] for step in report["steps"]}
