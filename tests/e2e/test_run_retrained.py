"""A month later: `shardwright run` begins with the model that was blessed, and one that is not leaves it in force."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import run

from shardwright.sample import write_sample
from shardwright_components.image_trainer.training_summary import TrainingSummary, read_summary

pytestmark = pytest.mark.slow


def write_config(folder: Path, **changes: Any) -> None:
    config = {
        "name": "small",
        "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
        "split": {"train": 0.7, "eval": 0.15, "test": 0.15},
        "transform": {"size": [32, 48]},
        "trainer": {"epochs": 8, "batch_size": 4, "width": 8, "learning_rate": 0.005, "warm_start": "blessed"},
        "evaluator": {"min_dice": 0.0},
        "run": {"root": "root"},
    }
    (folder / "small.yaml").write_text(yaml.safe_dump({**config, **changes}))


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def trainings(folder: Path) -> list[TrainingSummary]:
    """In the order in which they were done."""
    runs = folder.glob("root/artifacts/Trainer/model_run/*")
    return [read_summary(place) for place in sorted(runs, key=lambda place: int(place.name))]


def test_a_warm_start_and_a_refusal(tmp_path: Path) -> None:
    write_sample(str(tmp_path / "data"), images=24, height=64, width=96, seed=4, quiet=True)
    write_config(tmp_path)
    first = run(tmp_path, "run", "small.yaml")
    assert first.code == 0, first.err
    pushed = tmp_path / "root/pushed"
    before = files(pushed)
    blessed = pushed / json.loads(before["BLESSED.json"])["model"]
    kept = hashlib.sha256((blessed / "assets.extra/model.keras").read_bytes()).hexdigest()

    # The same images and masks, learned on from there; nothing is good enough any more.
    write_config(tmp_path, evaluator={"min_dice": 0.999})
    second = run(tmp_path, "run", "small.yaml")
    assert second.code == 1
    assert re.search(r"^model +NOT BLESSED, not pushed$", second.out, re.MULTILINE)
    assert re.search(r"the model was not blessed: .*mean_dice 0\.\d{4} is less than 0\.9990", second.err)
    assert "ImageTransform" in second.cached
    cold, warm = trainings(tmp_path)
    assert (cold.warm_start, warm.warm_start) == ("", kept)
    assert warm.epochs[0]["loss"] < cold.epochs[0]["loss"]
    assert files(pushed) == before

    # Asked for less again, the run ends in the same training, which is cached, and pushes it.
    write_config(tmp_path, evaluator={"min_dice": 0.0, "min_change": -1.0})
    third = run(tmp_path, "run", "small.yaml")
    assert third.code == 0, third.err
    assert {"ImageExampleGen", "StatisticsGen", "DataGate", "ImageTransform", "Trainer"} <= third.cached
    assert {name: data for name, data in files(pushed).items() if name in before and name != "BLESSED.json"} == {
        name: data for name, data in before.items() if name != "BLESSED.json"
    }
    assert json.loads((pushed / "BLESSED.json").read_text())["model"] != blessed.name
