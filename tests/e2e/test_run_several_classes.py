"""`shardwright run` where an image may have several classes: squares in two colours, none, one or both of them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from running import run

pytestmark = pytest.mark.slow


def write_pictures(folder: Path) -> None:
    """Noise with a red square, a blue one, both or neither: 20 of each, and a table that says which."""
    rng = np.random.default_rng(3)
    (folder / "pictures").mkdir()
    rows = ["image,labels"]
    for i in range(80):
        pixels = rng.normal(110, 12, (40, 40, 3))
        present = [name for bit, name in enumerate(("red", "blue")) if i >> bit & 1]
        for name in present:
            top, left = rng.integers(0, 24, 2)
            pixels[top : top + 14, left : left + 14] = (230, 30, 30) if name == "red" else (30, 30, 230)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"pictures/{i:02}.png")
        rows.append(f"{i:02}.png,{'|'.join(present)}")
    (folder / "labels.csv").write_text("\n".join(rows))


def test_a_model_of_several_classes_learns_and_is_blessed(tmp_path: Path) -> None:
    write_pictures(tmp_path)
    config = {
        "name": "squares",
        "task": "classification",
        "input": {"images": "pictures", "labels": {"path": "labels.csv"}},
        "split": {"train": 0.6, "eval": 0.2, "test": 0.2},
        "transform": {"size": [32, 32], "encoding": "png"},
        "loader": {"augment": ["flip_left_right", "rotate90"]},
        "trainer": {"epochs": 10, "batch_size": 8, "width": 8, "learning_rate": 0.003},
        "evaluator": {"min_f1": 0.8},
    }
    (tmp_path / "squares.yaml").write_text(yaml.safe_dump(config))
    done = run(tmp_path, "run", "squares.yaml")
    assert done.code == 0, done.err
    assert "an image may have several classes, since '|' is between classes" in done.out + done.err
    assert re.search(r"^classes +blue, red$", done.out, re.MULTILINE)
    assert re.search(r"^mean_f1 +[01]\.\d{4}", done.out, re.MULTILINE)
    assert re.search(r"^f1/blue +[01]\.\d{4}", done.out, re.MULTILINE)
    assert re.search(r"^model +BLESSED and pushed$", done.out, re.MULTILINE)
    (spec,) = tmp_path.rglob("spec.json")
    assert json.loads(spec.read_text())["multi"] is True

    import tensorflow as tf

    (log,) = spec.parent.glob("logs/pictures/*")
    values = [value for event in tf.compat.v1.train.summary_iterator(str(log)) for value in event.summary.value]
    assert [value.tag for value in values] == [*(f"truth_and_prediction/{i}" for i in range(8)), "classes"]
    assert all(value.image.width >= 240 for value in values)
