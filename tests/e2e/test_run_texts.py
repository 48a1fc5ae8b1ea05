"""`shardwright run` for images with texts: pictures that are all alike, whose captions alone tell what they are."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image, PngImagePlugin
from running import run

from shardwright.pipelines.cli import main

pytestmark = pytest.mark.slow

WORDS = {"land": ("field", "meadow"), "water": ("lake", "River!"), "sky": ("cloud", "SKY,")}


def write_pictures(folder: Path, count: int = 60) -> None:
    """The same pixels in files of different bytes: copies on two sides of a split would stop the run."""
    rng = np.random.default_rng(7)
    (folder / "images").mkdir(parents=True)
    with (folder / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "label", "caption", "place"])
        for number in range(count):
            label = sorted(WORDS)[number % len(WORDS)]
            words = [str(rng.choice(["a", "the", "old", "view"])), str(rng.choice(WORDS[label])), "near here"]
            name = f"{number:03}.png"
            mark = PngImagePlugin.PngInfo()
            mark.add_text("number", name)
            Image.new("RGB", (16, 16), "gray").save(folder / "images" / name, pnginfo=mark)
            table.writerow([name, label, " ".join(words), str(rng.choice(["north", "south"]))])


def test_what_the_pixels_do_not_tell_the_texts_do_from_training_to_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pictures(tmp_path)
    config = {
        "name": "texts",
        "task": "classification",
        "input": {"images": "images", "labels": {"path": "labels.csv", "features": ["caption", "place"]}},
        "split": {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}},
        "transform": {
            "size": [16, 16],
            "encoding": "png",
            "text": {
                "caption": {"vocabulary": 40, "output": "ids", "length": 6},
                "place": {"vocabulary": 5, "output": "counts"},
            },
        },
        "trainer": {
            "text": ["caption", "place"],
            "epochs": 20,
            "batch_size": 8,
            "base_filters": 4,
            "learning_rate": 0.02,
        },
        "evaluator": {"min_accuracy": 0.9, "min_images": 1, "min_per_class": 1},
    }
    (tmp_path / "texts.yaml").write_text(yaml.safe_dump(config))
    done = run(tmp_path, "run", "texts.yaml")
    assert done.code == 0, done.err
    assert re.search(r"^model +BLESSED and pushed$", done.out, re.MULTILINE)
    pushed = tmp_path / "shardwright-runs/texts/pushed"
    model = pushed / json.loads((pushed / "BLESSED.json").read_text())["model"]
    columns = json.loads((model / "assets/preparation.json").read_text())["texts"]
    assert [column["column"] for column in columns] == ["caption", "place"]

    # In this process: TensorFlow is loaded once.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("image,place,caption\n000.png,south,the lake\n001.png,,an old CLOUD\n")
    call = ["predict", str(pushed), "images", "--out"]
    assert main([*call, "with.csv", "--texts", "new.csv"]) == 0
    with (tmp_path / "with.csv").open(newline="") as file:
        rows = {row["image"]: row for row in csv.DictReader(file)}
    assert (rows["000.png"]["label"], rows["001.png"]["label"]) == ("water", "sky")
    assert main([*call, "without.csv"]) == 0
    (tmp_path / "bad.csv").write_text("image,caption\n")
    capsys.readouterr()
    assert main([*call, "bad_out.csv", "--texts", "bad.csv"]) == 2
    assert "--texts bad.csv: no column 'place', which the model reads" in capsys.readouterr().err
