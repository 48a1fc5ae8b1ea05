"""`shardwright run` on TFRecords of another project: compressed, with several classes, boxes and further features."""

import io
import json
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from recording import record, write_records
from running import run

from shardwright.tfrecords.encode import byte_strings, floats, ints

pytestmark = pytest.mark.slow
COLORS = {"red": (230, 30, 30), "blue": (30, 30, 230)}


def picture(number: int, present: list[str]) -> bytes:
    """A PNG file: noise with a square of each color that is present."""
    rng = np.random.default_rng(number)
    pixels = rng.normal(110, 12, (40, 40, 3))
    for name in present:
        top, left = rng.integers(0, 24, 2)
        pixels[top : top + 14, left : left + 14] = COLORS[name]
    file = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "png")
    return file.getvalue()


def damage(data: bytes) -> bytes:
    """A PNG with a sound header and spoiled pixels under a correct checksum: only a decoder can find out."""
    begin = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[begin - 4 : begin])
    body = b"IDAT" + bytes(255 - byte for byte in data[begin + 4 : begin + 4 + length])
    return data[:begin] + body + struct.pack(">I", zlib.crc32(body)) + data[begin + 4 + length + 4 :]


def test_a_model_of_several_classes_learns_from_records_under_other_names(tmp_path: Path) -> None:
    payloads = []
    for i in range(80):
        present = [name for bit, name in enumerate(COLORS) if i >> bit & 1]
        boxes = np.linspace(0.1, 0.4, i % 3)
        payloads.append(
            record(
                0,
                **{
                    "image/encoded": damage(picture(i, present)) if i % 16 == 5 else picture(i, present),
                    "label": ints([list(COLORS).index(name) for name in present]),
                    "class_name": byte_strings([name.encode() for name in present]),
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
        "name": "squares",
        "task": "classification",
        "input": {"images": "records"},
        "split": {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}},
        "rejects": {"max_fraction": 0.1},
        "shards": {"count": 2, "filename_template": "{split}{index:02d}-{count}.tfrec"},
        "transform": {"size": [32, 32], "encoding": "png"},
        "loader": {"augment": ["flip_left_right", "rotate90"]},
        "trainer": {"epochs": 10, "batch_size": 8, "base_filters": 8, "learning_rate": 0.003},
        "evaluator": {"min_f1": 0.8, "min_images": 1, "min_per_class": 1},
    }
    (tmp_path / "squares.yaml").write_text(yaml.safe_dump(config))
    done = run(tmp_path, "run", "squares.yaml")
    assert done.code == 0, done.err
    assert re.search(r"^images +80 in, 80 written, 0 rejected$", done.out, re.MULTILINE)
    # The transform rejects what cannot be decoded; neither the training nor the evaluation ends because of it.
    assert re.search(r"^ +\d images? (was|were) left out as damaged: \S+", done.out, re.MULTILINE)
    assert re.search(r"^classes +red, blue$", done.out, re.MULTILINE)
    assert re.search(r"^mean_f1 +[01]\.\d{4}", done.out, re.MULTILINE)
    assert re.search(r"^f1/blue +[01]\.\d{4}", done.out, re.MULTILINE)
    assert re.search(r"^model +BLESSED and pushed$", done.out, re.MULTILINE)
    files = list(tmp_path.glob("shardwright-runs/**/ImageExampleGen/examples/*/Split-train/*"))
    assert [re.fullmatch(r"train0\d-\d+\.tfrec", file.name) is not None for file in files] == [True, True]
    (spec,) = tmp_path.rglob("spec.json")
    assert json.loads(spec.read_text())["multi"] is True

    import tensorflow as tf

    (log,) = spec.parent.glob("logs/pictures/*")
    values = [value for event in tf.compat.v1.train.summary_iterator(str(log)) for value in event.summary.value]
    assert [value.tag for value in values] == [*(f"truth_and_prediction/{i}" for i in range(8)), "classes"]
    assert all(value.image.width >= 240 for value in values)
