"""Real photographs from the input to what is trained on: steel defects, and flowers in class folders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image
from transforming import transform_shards

from shardwright.config import load_config
from shardwright.dataset.reader import ImageDataset
from shardwright.images.geometry import plan_geometry, source_columns, source_rows
from shardwright.images.tf_ops import decode_resized
from shardwright.loader import load
from shardwright.masks import rle
from shardwright.pipelines.cli import main
from shardwright.tfrecords.records import decode_example

pytestmark = [pytest.mark.slow, pytest.mark.shared_data]
CLASSES = {"Inclusion": 1, "Patches": 2, "Scratches": 3}


def ingest_and_transform(folder: Path, config: dict[str, Any]) -> tuple[ImageDataset, ImageDataset]:
    (folder / "config.yaml").write_text(yaml.safe_dump({"name": "real", **config}))
    assert main(["ingest", str(folder / "config.yaml"), "--out", str(folder / "dataset")]) == 0
    small = transform_shards(load_config(folder / "config.yaml"), folder / "dataset", folder / "small")
    return ImageDataset.open(folder / "dataset"), ImageDataset.open(small)


def stored_masks(data: ImageDataset) -> dict[str, np.ndarray]:
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
    """That the other table gives the same masks, tests/shardwright/ingest/test_ingest.py shows without training."""
    steel = shared_data / "steel_defects"
    labels = {"path": str(steel / "image_class.csv")}
    source = {"images": str(steel / "images"), "labels": labels, "classes": CLASSES}
    size = {"size": [36, 60], "resize": "letterbox", "encoding": "png"}
    ingested, transformed = ingest_and_transform(tmp_path, {"task": "segmentation", "input": source, "transform": size})
    assert (ingested.manifest.totals["written"], transformed.manifest.totals["written"]) == (840, 840)
    masks = stored_masks(ingested)
    assert len(masks) == 840
    for key, ids in masks.items():
        np.testing.assert_array_equal(ids, painted(steel, key), err_msg=key)

    # The training data: the painted masks and the images, sampled by one plan.
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
    ingested, transformed = ingest_and_transform(
        tmp_path,
        {
            "task": "classification",
            "input": {"images": str(shared_data / "flowers")},
            "transform": {"size": [48, 48], "resize": "fill_crop"},
        },
    )
    assert (ingested.manifest.totals["written"], transformed.manifest.totals["written"]) == (300, 300)
    assert list(ingested.manifest.classes) == ["daisy", "dandelion", "rose", "sunflower", "tulip"]
    named = {key: key.partition("/")[0] for split in ingested.splits for key, _ in ingested.records(split)}
    assert len(named) == 300
    for split in transformed.splits:
        for key, record in transformed.records(split):
            example = decode_example(record)
            assert example["image/class/text"] == [named[key].encode()]
            assert (int(example["image/height"][0]), int(example["image/width"][0])) == (48, 48)
