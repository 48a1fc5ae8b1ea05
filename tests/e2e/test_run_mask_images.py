"""`shardwright run` over a tree of Pascal VOC: mask images with an ignored region, and boxes, to a blessed model."""

import re
import shutil
from pathlib import Path

import numpy as np
import own_models
import pytest
import yaml
from any_model import BLESSES_ANY
from PIL import Image
from running import run

from shardwright.dataset.reader import ImageDataset
from shardwright.masks import rle
from shardwright.tfrecords.records import decode_example

pytestmark = pytest.mark.slow
IMAGES, SHAPE = 20, (48, 64)


def make(root: Path) -> None:
    """Bright squares, class 1 and 2, with a border of 255 around them and a box over each."""
    for folder in ("JPEGImages", "SegmentationClass", "Annotations"):
        (root / folder).mkdir(parents=True)
    for number in range(IMAGES):
        random = np.random.default_rng(number)
        pixels = random.integers(0, 60, (*SHAPE, 3), dtype=np.uint8)
        mask = np.zeros(SHAPE, np.uint8)
        objects = []
        for label, name in ((1, "nut"), (2, "bolt")):
            top, left = int(random.integers(2, 30)), int(random.integers(2, 14)) + 32 * (label - 1)
            mask[top - 2 : top + 16, left - 2 : left + 16] = 255
            mask[top : top + 14, left : left + 14] = label
            pixels[top : top + 14, left : left + 14, label] += 150
            objects.append(
                f"<object><name>{name}</name><bndbox><xmin>{left + 1}</xmin><ymin>{top + 1}</ymin>"
                f"<xmax>{left + 14}</xmax><ymax>{top + 14}</ymax></bndbox></object>"
            )
        size = f"<size><width>{SHAPE[1]}</width><height>{SHAPE[0]}</height></size>"
        Image.fromarray(pixels).save(root / "JPEGImages" / f"{number:02d}.jpg", quality=95)
        Image.fromarray(mask).save(root / "SegmentationClass" / f"{number:02d}.png")
        (root / "Annotations" / f"{number:02d}.xml").write_text(f"<annotation>{size}{''.join(objects)}</annotation>")


def examples(place: str) -> dict[str, dict]:
    dataset = ImageDataset.open(place)
    return {key: decode_example(record) for split in dataset.splits for key, record in dataset.records(split)}


def test_masks_with_an_ignored_region_end_in_a_blessed_model(tmp_path: Path) -> None:
    make(tmp_path / "voc")
    shutil.copy(own_models.__file__, tmp_path)
    config = {
        "name": "voc",
        "input": {"images": "voc/JPEGImages", "labels": {"path": "voc"}, "classes": ["nut", "bolt"]},
        "split": {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}},
        "transform": {"size": [32, 32], "resize": "letterbox", "encoding": "png"},
        "trainer": {"model": "own_models:normed", "epochs": 1, "batch_size": 4},
        "evaluator": BLESSES_ANY,
        "run": {"root": "root"},
    }
    (tmp_path / "voc.yaml").write_text(yaml.safe_dump(config))
    done = run(tmp_path, "run", "voc.yaml")
    assert done.code == 0, done.err
    assert re.search(r"^images +20 in, 20 written, 0 rejected$", done.out, re.MULTILINE)
    assert re.search(r"^anomalies +none$", done.out, re.MULTILINE)
    assert re.search(r"^model +BLESSED and pushed$", done.out, re.MULTILINE)
    schema = (tmp_path / "voc.schema.pbtxt").read_text()
    assert 'name: "image/segmentation/ignore/rle"' in schema
    assert 'name: "image/object/bbox/xmin"' in schema

    written, moved = (
        examples(re.search(rf"^{what} +(\S+)$", done.out, re.MULTILINE)[1]) for what in ("dataset", "transformed")
    )
    for key, example in written.items():
        truth = np.asarray(Image.open(tmp_path / "voc/SegmentationClass" / f"{key[:2]}.png"))
        ignored = rle.from_flat(example["image/segmentation/ignore/rle"])
        assert np.array_equal(rle.draw(ignored, *SHAPE), truth == 255)
        assert example["image/object/class/text"] == [b"nut", b"bolt"]
        # 48 x 64 becomes 24 x 32 between borders of 4 rows: center, and so every second pixel, of the source.
        small = rle.draw(rle.from_flat(moved[key]["image/segmentation/ignore/rle"]), 32, 32)
        assert np.array_equal(small[4:28], truth[1::2, 1::2] == 255)
        assert not small[:4].any()
        top = example["image/object/bbox/ymin"] * 24 + 4
        np.testing.assert_allclose(moved[key]["image/object/bbox/ymin"] * 32, top, atol=1e-4)
