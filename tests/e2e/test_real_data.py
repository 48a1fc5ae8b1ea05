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
from shardwright.geometry import plan_geometry, source_columns, source_rows
from shardwright.loader import load
from shardwright.masks import rle
from shardwright.pixels import decode_resized
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


def dataset(out: str, row: str) -> Dataset:
    place = re.search(rf"^{row} +(\S+)$", out, re.MULTILINE)
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


def painted(steel: Path, key: str) -> np.ndarray:
    with Image.open(steel / "masks" / Path(key).with_suffix(".png").name) as truth:
        return np.asarray(truth)


def test_steel_defects(shared_data: Path, tmp_path: Path) -> None:
    """That the other table gives the same masks, tests/shardwright/test_ingest.py shows without training."""
    steel = shared_data / "steel_defects"
    labels = {"path": str(steel / "image_class.csv")}
    source = {"images": str(steel / "images"), "labels": labels, "classes": CLASSES}
    size = {"size": [36, 60], "resize": "letterbox", "encoding": "png"}
    out = run(tmp_path, {"task": "segmentation", "input": source, "transform": size})
    assert re.search(r"^images +840 in, 840 written, 0 rejected$", out, re.MULTILINE)
    for name in CLASSES:
        assert re.search(rf"^dice/{name} +0\.\d{{4}}$", out, re.MULTILINE)
    ingested, transformed = (dataset(out, row) for row in ("dataset", "transformed"))
    masks = stored_masks(ingested)
    assert len(masks) == 840
    for key, ids in masks.items():
        np.testing.assert_array_equal(ids, painted(steel, key), err_msg=key)

    # What is trained on: the painted masks and the images, sampled by one plan.
    plan = plan_geometry("letterbox", 200, 200, 36, 60)
    rows, columns = source_rows(plan), source_columns(plan)
    loaded = load(transformed.root, "eval", 1, normalize="none").as_numpy_iterator()
    before, count = dict(ingested.records("eval")), 0
    for (key, _), (images, classes) in zip(transformed.records("eval"), loaded, strict=True):
        sampled = np.where((rows < 0)[:, None] | (columns < 0), 0, painted(steel, key)[np.ix_(rows, columns)])
        np.testing.assert_array_equal(classes[0], sampled[..., None] == [1, 2, 3])
        encoded = decode_example(before[key])["image/encoded"][0]
        np.testing.assert_array_equal(images[0], decode_resized(encoded, 36, 60, "letterbox"))
        count += 1
    assert count > 50


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
