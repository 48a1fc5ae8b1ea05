"""`shardwright run` on TFRecords that somebody else has written, compressed, with further features and boxes."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from recording import record, write_records
from running import run

from shardwright.tfrecords.records import floats, ints

pytestmark = pytest.mark.slow


def stripes(number: int, name: str) -> bytes:
    """A picture of stripes along or across, of any colour and phase."""
    rng = np.random.default_rng(number)
    wave = np.sin(np.arange(48) / rng.uniform(1.0, 2.0) + rng.uniform(0, 6)) * 80 + 128
    pixels = np.tile(wave, (48, 1)) if name == "along" else np.tile(wave, (48, 1)).T
    noisy = pixels[..., None] * rng.uniform(0.6, 1.0, 3) + rng.normal(0, 10, (48, 48, 3))
    file = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "png")
    return file.getvalue()


def test_a_classifier_learns_from_records_under_other_names(tmp_path: Path) -> None:
    payloads = []
    for i in range(60):
        name = ("along", "across")[i // 2 % 2]
        boxes = np.linspace(0.1, 0.4, i % 3)
        payloads.append(
            record(
                0,
                **{
                    "image/encoded": stripes(i, name),
                    "label": int(name == "across"),
                    "class_name": name.encode(),
                    "filename": b"%03d.png" % i,
                    "depth": i / 7,
                    "image/object/bbox/xmin": floats(boxes),
                    "image/object/class/label": ints([1] * len(boxes)),
                    "site": b"A" if i % 2 else b"B",
                },
            )
        )
    write_records(tmp_path / "records/a.tfrecord.gz", payloads[0::2], "gzip")
    write_records(tmp_path / "records/b.tfrecord", payloads[1::2])
    config = {
        "name": "stripes",
        "task": "classification",
        "input": {"images": "records"},
        "split": {"train": 0.6, "eval": 0.2, "test": 0.2},
        "shards": {"count": 2, "balance": "class", "pattern": "{split}{index:02d}-{count}.tfrec"},
        "transform": {"size": [32, 32], "encoding": "png"},
        "trainer": {"epochs": 8, "batch_size": 8, "width": 8, "learning_rate": 0.003},
        "evaluator": {"min_accuracy": 0.75},
    }
    (tmp_path / "stripes.yaml").write_text(yaml.safe_dump(config))
    done = run(tmp_path, "run", "stripes.yaml")
    assert done.code == 0, done.err
    assert re.search(r"^images +60 in, 60 written, 0 rejected$", done.out, re.MULTILINE)
    assert re.search(r"^classes +along, across$", done.out, re.MULTILINE)
    assert re.search(r"^model +BLESSED and pushed$", done.out, re.MULTILINE)
    shards = list(tmp_path.glob("shardwright-runs/**/ImageExampleGen/examples/*/Split-train/*"))
    assert [re.fullmatch(r"train0\d-\d+\.tfrec", file.name) is not None for file in shards] == [True, True]
