"""`examples/detection_keras.py` learns to find boxes that our shards contain."""

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest
from ingesting import run
from PIL import Image
from recording import reading, write_records

from shardwright.dataset.source import source
from shardwright.tfrecords.encode import byte_strings, encode_example, floats, ints

pytestmark = pytest.mark.slow
CLASSES = ["red", "green"]
SIDE, COUNT = 64, 60


def record(number):
    """An image with one or two filled rectangles."""
    drawn = np.random.default_rng(number)
    pixels = np.full((SIDE, SIDE, 3), 40, np.uint8)
    rows = []
    for half in range(1 + number % 2):
        label, left = int(drawn.integers(2)), 2 + 32 * half
        x, y, width, height = left + drawn.integers(8), drawn.integers(2, 30), *drawn.integers(12, 20, 2)
        pixels[y : y + height, x : x + width, label] = 220
        rows.append((label, x / SIDE, y / SIDE, (x + width) / SIDE, (y + height) / SIDE))
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    labels, *edges = zip(*rows, strict=True)
    found = {"image/encoded": file.getvalue(), "image/key": f"{number}.png".encode()}
    found["image/class/text"] = byte_strings([CLASSES[label].encode() for label in sorted(set(labels))])
    for side, values in zip(("xmin", "ymin", "xmax", "ymax"), edges, strict=True):
        found[f"image/object/bbox/{side}"] = floats(list(map(float, values)))
    found["image/object/class/label"] = ints([label + 1 for label in labels])
    found["image/object/class/text"] = byte_strings([CLASSES[label].encode() for label in labels])
    return encode_example(found)


def test_the_example_finds_boxes(tmp_path):
    write_records(tmp_path / "records/a.tfrecord", map(record, range(COUNT)))
    run(reading(tmp_path / "records", classes=CLASSES), tmp_path / "ds", workers=1)
    file = Path(__file__).parents[2] / "examples/detection_keras.py"
    spec = importlib.util.spec_from_file_location("detection_keras", file)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for item in source(str(tmp_path / "ds"), "train"):
        grid = example.to_grid(item["boxes"], item["box_labels"], (SIDE, SIDE), 2)
        found = sorted((label, *box) for _, label, box in example.to_boxes(grid))
        stored = sorted((int(label), *box) for label, box in zip(item["box_labels"], item["boxes"], strict=True))
        np.testing.assert_allclose(found, stored, atol=1e-5)
    example.keras.utils.set_random_seed(1)
    assert example.train(str(tmp_path / "ds"), epochs=25)[1] > 0.6
