"""Datasets of every preset, read as those who know the preset read them, and by our own loader."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from ingesting import config, examples, run
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, DatasetError
from shardwright.loader import load
from shardwright.masks import rle


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """An input of images of one size with masks of two classes, and its dataset by our own names."""
    root = tmp_path_factory.mktemp("masked")
    rows = ["Image_Label,EncodedPixels"]
    (root / "images").mkdir()
    for number in range(12):
        random = np.random.default_rng(number)
        Image.fromarray(random.integers(0, 256, (16, 20, 3), dtype=np.uint8)).save(root / f"images/{number:02d}.png")
        for name in ("Fish", "Sugar"):
            mask = random.random((16, 20)) < 0.3
            text = rle.to_pairs(rle.encode(mask)) if (number + len(name)) % 3 else ""
            rows.append(f"{number:02d}.png_{name},{text}")
    (root / "labels.csv").write_text("\n".join(rows))
    raw = {
        "task": "segmentation",
        "input": {"images": str(root / "images"), "labels": {"path": str(root / "labels.csv")}},
    }
    run(raw, root / "plain")
    return raw, root / "plain"


@pytest.fixture(scope="module")
def labeled(tmp_path_factory):
    """An input of images of one size in class folders, and its dataset by our own names."""
    root = tmp_path_factory.mktemp("labeled")
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 256, (16, 20, 3), dtype=np.uint8)
        file = root / "images" / ["daisy", "rose", "tulip"][number % 3] / f"{number:02d}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
    raw = {"task": "classification", "input": {"images": str(root / "images")}}
    run(raw, root / "plain")
    return raw, root / "plain"


def parsed(out, spec):
    """The records of the train split by key, parsed by TensorFlow."""
    dataset = ImageDataset.open(out)
    return {key: tf.io.parse_single_example(data, spec) for key, data in dataset.records("train")}


def batches(out):
    return [(image.numpy(), target.numpy()) for image, target in load(out, "train", 4, normalize="none")]


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a, b) for pair in zip(one, other, strict=True) for a, b in zip(*pair, strict=True)
    )


def test_tfds_readers_read_the_masks(masked, tmp_path):
    raw, plain = masked
    run({**raw, "features": {"preset": "tfds"}}, tmp_path / "out")
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
        "labels": tf.io.RaggedFeature(tf.int64),
        "segmentation_mask/Fish": tf.io.FixedLenFeature([], tf.string),
    }
    ours = examples(plain)
    for key, found in parsed(tmp_path / "out", spec).items():
        assert tf.io.decode_image(found["image"]).shape == (16, 20, 3)
        mask = tf.io.decode_image(found["segmentation_mask/Fish"], channels=1).numpy()
        runs = ours[key]["image/segmentation/Fish/rle"].reshape(-1, 2)
        assert np.array_equal(mask[..., 0], rle.draw(runs, 16, 20))
        assert found["labels"].numpy().tolist() == ours[key]["image/class/label"].tolist()
        assert found["image/filename"].numpy() == Path(key).name.encode()
    assert same(batches(tmp_path / "out"), batches(plain))


def test_tfds_readers_read_the_label(labeled, tmp_path):
    raw, plain = labeled
    run({**raw, "features": {"preset": "tfds"}}, tmp_path / "out")
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    for key, found in parsed(tmp_path / "out", spec).items():
        assert ["daisy", "rose", "tulip"][found["label"].numpy()] == key.split("/")[0]
    assert same(batches(tmp_path / "out"), batches(plain))


def test_kaggle_readers_read_flowers(labeled, tmp_path):
    raw, plain = labeled
    run({**raw, "features": {"preset": "kaggle_flowers"}}, tmp_path / "out")
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "class": tf.io.FixedLenFeature([], tf.int64),
        "label": tf.io.FixedLenFeature([], tf.string),
        "size": tf.io.FixedLenFeature([2], tf.int64),
        "one_hot_class": tf.io.VarLenFeature(tf.float32),
    }
    for key, found in parsed(tmp_path / "out", spec).items():
        assert tf.io.decode_jpeg(found["image"], channels=3).shape == (*found["size"].numpy(), 3)
        assert found["label"].numpy().decode() == key.split("/")[0]
        assert tf.sparse.to_dense(found["one_hot_class"]).numpy().argmax() == found["class"].numpy()
    assert same(batches(tmp_path / "out"), batches(plain))


def test_kagglers_read_run_lengths_as_text(masked, tmp_path):
    raw, plain = masked
    run({**raw, "features": {"preset": "rle_text"}}, tmp_path / "out")
    name = "image/segmentation/Sugar/rle_text"
    spec = {"image/encoded": tf.io.FixedLenFeature([], tf.string), name: tf.io.FixedLenFeature([], tf.string)}
    ours = examples(plain)
    for key, found in parsed(tmp_path / "out", spec).items():
        numbers = [int(number) for number in found[name].numpy().decode().split()]
        flat = np.zeros(16 * 20, np.uint8)
        for start, length in zip(numbers[0::2], numbers[1::2], strict=True):
            flat[start - 1 : start - 1 + length] = 1
        runs = ours[key]["image/segmentation/Sugar/rle"].reshape(-1, 2)
        assert np.array_equal(flat.reshape(20, 16).T, rle.draw(runs, 16, 20))
    with pytest.raises(DatasetError, match="features.preset is rle_text"):
        load(tmp_path / "out", "train", 4)


def test_our_loader_reads_renamed_features(masked, tmp_path):
    raw, plain = masked
    renamed = {"image/encoded": "jpeg", "image/key": "k", "image/segmentation/Fish/rle": "fish", "image/height": "h"}
    run({**raw, "features": {"map": renamed}}, tmp_path / "out")
    assert same(batches(tmp_path / "out"), batches(plain))


def test_raw_pixels_are_for_our_own_names():
    with pytest.raises(ConfigError, match="decode JPEG and PNG"):
        config(
            {
                "input": {"images": "x"},
                "images": {"encoding": "raw", "resize": "stretch", "size": [8, 8]},
                "features": {"preset": "tfds"},
            }
        )
