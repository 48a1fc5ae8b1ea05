"""`shardwright run` over real photographs: steel defects, and flowers in class folders."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from shardwright.dataset import Dataset
from shardwright.masks import rle
from shardwright.tfrecords.records import decode_example

pytestmark = [pytest.mark.slow, pytest.mark.shared_data]
SHARDWRIGHT = str(Path(sys.executable).with_name("shardwright"))
CLASSES = {"Inclusion": 1, "Patches": 2, "Scratches": 3}


def run(folder: Path, config: dict[str, Any]) -> str:
    quick = {"trainer": {"epochs": 1, "width": 8}, "evaluator": {"min_dice": 0.0, "min_accuracy": 0.0}}
    (folder / "config.yaml").write_text(yaml.safe_dump({"name": "real", **quick, **config}))
    command = [SHARDWRIGHT, "run", "config.yaml", "--root", "root"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dataset(out: str) -> Dataset:
    place = re.search(r"^dataset +(\S+)$", out, re.MULTILINE)
    assert place
    return Dataset.open(place[1])


def stored_masks(data: Dataset) -> dict[str, np.ndarray]:
    """Key -> class ids drawn from the stored runs, 0 where there is none."""
    drawn = {}
    for split in data.splits:
        for key, record in data.records(split):
            example = decode_example(record)
            height, width = int(example["image/height"][0]), int(example["image/width"][0])
            ids = np.zeros((height, width), np.uint8)
            for name, number in CLASSES.items():
                runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
                ids[rle.draw(runs, height, width) == 1] = number
            drawn[key] = ids
    return drawn


def test_steel_defects(shared_data: Path, tmp_path: Path) -> None:
    """That the other table gives the same masks, tests/shardwright/test_ingest.py shows without training."""
    steel = shared_data / "steel_defects"
    labels = {"path": str(steel / "image_class.csv")}
    source = {"images": str(steel / "images"), "labels": labels, "classes": CLASSES}
    out = run(tmp_path, {"task": "segmentation", "input": source, "transform": {"size": [48, 48]}})
    assert re.search(r"^images +840 in, 840 written, 0 rejected$", out, re.MULTILINE)
    for name in CLASSES:
        assert re.search(rf"^dice/{name} +0\.\d{{4}}$", out, re.MULTILINE)
    masks = stored_masks(dataset(out))
    assert len(masks) == 840
    for key, ids in masks.items():
        with Image.open(steel / "masks" / Path(key).with_suffix(".png").name) as truth:
            np.testing.assert_array_equal(ids, np.asarray(truth), err_msg=key)


def test_flowers(shared_data: Path, tmp_path: Path) -> None:
    out = run(
        tmp_path,
        {
            "task": "classification",
            "input": {"images": str(shared_data / "flowers")},
            "transform": {"size": [48, 48], "resize": "fill_crop"},
        },
    )
    assert re.search(r"^images +300 in, 300 written, 0 rejected$", out, re.MULTILINE)
    assert re.search(r"^classes +daisy, dandelion, rose, sunflower, tulip$", out, re.MULTILINE)
    assert re.search(r"^accuracy +0\.\d{4}$", out, re.MULTILINE)
