"""The forms of a transformed dataset: encodings, masks, presets, kept sizes; each read back, and served alike."""

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import build
import numpy as np
import pytest
import tensorflow as tf
from damage import without_pixels
from killed_transform import killed_transform
from PIL import Image
from transforming import transform_shards

from shardwright.components.image_trainer.export.signatures import FlippedMean, ServedModel
from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.components.image_transform.transform_recipe import manifest_recipe, read_recipe, transform_recipe
from shardwright.components.image_transform.transformed_features import stored_features
from shardwright.config import TransformConfig, parse_config
from shardwright.config.transform import TextConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, ConfigError, DatasetError
from shardwright.images import tf_ops
from shardwright.images.geometry import POLICIES, plan_geometry
from shardwright.loader import load
from shardwright.masks import rle
from shardwright.tfrecords.records import decode_example

pytestmark = pytest.mark.slow

MakeDataset = Callable[..., Path]
SIZE = (20, 30)


def transformed(source, root, **transform):
    size = {} if transform.get("resize") == "keep" else {"size": list(SIZE)}
    document = {"input": {"images": "x"}, "transform": {**size, **transform}, "rejects": {"max_fraction": 0.5}}
    config = parse_config(document, base=".")
    return transform_shards(config, source, root)


def records_of(dataset):
    return [record for _, record in ImageDataset.open(dataset).records("train")]


def examples_of(dataset):
    return [decode_example(record) for record in records_of(dataset)]


def batch(dataset):
    return next(iter(load(dataset, "train", 4, normalize="none").as_numpy_iterator()))


@pytest.fixture(scope="module")
def clouds(small_dataset, tmp_path_factory):
    """Photographs of several sizes, with masks, a text and a number."""
    return small_dataset(
        tmp_path_factory.mktemp("clouds"),
        counts={"train": [4]},
        size=lambda number: (45 + 21 * number, 130 - 13 * number),
        image_format="jpeg",
        change=lambda number, example: {**example, "site/name": b"here", "site/height": number / 4},
    )


@pytest.fixture(scope="module")
def served(clouds):
    """The input of an exported model's layers, by policy: the serving signature of a model that returns its input."""
    encoded = tf.constant([e["image/encoded"][0] for e in examples_of(clouds)])
    config = build.config(loader={"normalize": "none"})

    @cache
    def of(policy: str) -> Any:
        spec: Any = SimpleNamespace(
            height=SIZE[0], width=SIZE[1], resize=policy, mean=None, std=None, multi=False, task="segmentation",
            classes=("red", "green", "blue"), recipe=TrainRecipe.from_config(config), ignore=False, texts=(),
            ingested={},
        )  # fmt: skip
        model = ServedModel(FlippedMean(lambda images, training: images, spec), spec)
        return model.signatures()["serving_default"](encoded)["probabilities"].numpy()

    return of


@pytest.fixture(scope="module")
def flowers(small_dataset, tmp_path_factory):
    classes = ("daisy", "rose", "tulip")
    root = tmp_path_factory.mktemp("flowers")
    return small_dataset(root, task="classification", classes=classes, counts={"train": [4]}, image_format="jpeg")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("encoding", ["jpeg", "png", "tensor", "raw"])
def test_the_loader_gives_what_is_served(clouds, served, tmp_path, encoding, policy):
    """Exact where the encoding is lossless, within one JPEG round trip otherwise; masks are always the same."""
    out = transformed(clouds, tmp_path, encoding=encoding, resize=policy, quality=95, chroma=444)
    images, masks = batch(out)
    expected = served(policy)
    if encoding == "jpeg":
        again = [Image.fromarray(image.astype(np.uint8)) for image in expected]
        files = [io.BytesIO() for _ in again]
        for image, file in zip(again, files, strict=True):
            image.save(file, "jpeg", quality=95, subsampling=0)
        expected = np.stack([tf_ops.decode(file.getvalue()).numpy() for file in files])
    np.testing.assert_array_equal(images, expected)
    for before, example, mask in zip(examples_of(clouds), examples_of(out), masks, strict=True):
        plan = plan_geometry(policy, int(before["image/height"][0]), int(before["image/width"][0]), *SIZE)
        names = [f"image/segmentation/{name}/rle" for name in ("Fish", "Sugar")]
        runs = [rle.from_flat(example[name]) for name in names]
        for name, found in zip(names, runs, strict=True):
            np.testing.assert_array_equal(found, rle.resample(rle.from_flat(before[name]), plan))
        np.testing.assert_array_equal(mask, np.stack([rle.draw(r, *SIZE) for r in runs], axis=-1))
        assert example["image/format"] == [encoding.encode()]


def test_others_parse_tensors_and_raw_bytes(clouds, served, tmp_path):
    expected = served("stretch").astype(np.uint8)
    for encoding in ("tensor", "raw"):
        out = transformed(clouds, tmp_path / encoding, encoding=encoding)
        for record, image in zip(records_of(out), expected, strict=True):
            parsed = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string)})
            data = parsed["image/encoded"]
            raw = encoding == "raw"
            found = (
                tf.reshape(tf.io.decode_raw(data, tf.uint8), [*SIZE, 3]) if raw else tf.io.parse_tensor(data, tf.uint8)
            )
            np.testing.assert_array_equal(found, image)


def test_options_of_jpeg(clouds, tmp_path):
    plain, small, best = (
        transformed(clouds, tmp_path / name, **options)
        for name, options in (
            ("plain", {"chroma": 422}),
            ("small", {"chroma": 422, "optimize": True}),
            ("best", {"chroma": 444, "quality": 98}),
        )
    )
    layers = [Image.open(io.BytesIO(examples_of(out)[0]["image/encoded"][0])).layer[0][1:3] for out in (plain, best)]
    assert layers == [(2, 1), (1, 1)]
    sizes = [sum(len(e["image/encoded"][0]) for e in examples_of(out)) for out in (small, plain, best)]
    assert sizes == sorted(set(sizes))
    np.testing.assert_array_equal(batch(small)[0], batch(plain)[0])


def test_masks_as_png(clouds, tmp_path):
    drawn, runs = (transformed(clouds, tmp_path / masks, masks=masks) for masks in ("png", "rle"))
    for one, other in zip(batch(drawn), batch(runs), strict=True):
        np.testing.assert_array_equal(one, other)
    example = examples_of(drawn)[0]
    assert "image/segmentation/Fish/rle" not in example
    mask = tf.io.decode_png(example["image/segmentation/Fish/png"][0]).numpy()
    assert mask.sum() == example["image/segmentation/Fish/area"][0]


def test_tfds_readers_read_masks(clouds, tmp_path):
    out, plain = (transformed(clouds, tmp_path / preset, preset=preset) for preset in ("tfds", "tf_vision"))
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "labels": tf.io.RaggedFeature(tf.int64),
        "segmentation_mask/Fish": tf.io.FixedLenFeature([], tf.string),
        "site/height": tf.io.FixedLenFeature([], tf.float32),
    }
    for record, ours in zip(records_of(out), examples_of(plain), strict=True):
        found = tf.io.parse_single_example(record, spec)
        assert tf.io.decode_image(found["image"]).shape == (*SIZE, 3)
        mask = tf.io.decode_image(found["segmentation_mask/Fish"], channels=1).numpy()[..., 0]
        np.testing.assert_array_equal(rle.encode(mask).reshape(-1), ours["image/segmentation/Fish/rle"])
        assert found["labels"].numpy().tolist() == ours["image/class/label"].tolist()
        assert found["site/height"] == ours["site/height"][0]
    for one, other in zip(batch(out), batch(plain), strict=True):
        np.testing.assert_array_equal(one, other)


def test_readers_of_model_garden_read_our_own_names(flowers, clouds, tmp_path):
    """The decoders of its classification inputs, of one label and of several (official/vision/dataloaders)."""
    image = {"image/encoded": tf.io.FixedLenFeature((), tf.string, default_value="")}
    one = {**image, "image/class/label": tf.io.FixedLenFeature((), tf.int64, default_value=-1)}
    several = {**image, "image/class/label": tf.io.VarLenFeature(tf.int64)}
    for number, record in enumerate(records_of(transformed(flowers, tmp_path / "flowers"))):
        found = tf.io.parse_single_example(record, one)
        assert tf.io.decode_image(found["image/encoded"], channels=3).shape == (*SIZE, 3)
        assert found["image/class/label"].numpy() == number % 3
    out = transformed(clouds, tmp_path / "clouds")
    for record, ours in zip(records_of(out), examples_of(out), strict=True):
        labels = tf.io.parse_single_example(record, several)["image/class/label"]
        shown = [i for i, name in enumerate(("Fish", "Sugar")) if len(ours[f"image/segmentation/{name}/rle"])]
        assert labels.values.numpy().tolist() == shown


def test_kaggle_readers_read_flowers(flowers, tmp_path):
    out = transformed(flowers, tmp_path, preset="kaggle_flowers", labels="one_hot")
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "class": tf.io.FixedLenFeature([], tf.int64),
        "label": tf.io.FixedLenFeature([], tf.string),
        "size": tf.io.FixedLenFeature([2], tf.int64),
        "one_hot_class": tf.io.VarLenFeature(tf.float32),
        "image/class/one_hot": tf.io.FixedLenFeature([3], tf.float32),
    }
    for number, record in enumerate(records_of(out)):
        found = tf.io.parse_single_example(record, spec)
        assert tf.io.decode_jpeg(found["image"], channels=3).shape == (*SIZE, 3)
        assert found["size"].numpy().tolist() == list(SIZE)
        assert found["label"].numpy() == (b"daisy", b"rose", b"tulip")[number % 3]
        one_hot = tf.sparse.to_dense(found["one_hot_class"]).numpy()
        assert one_hot.argmax() == found["class"].numpy() == number % 3
        np.testing.assert_array_equal(one_hot, found["image/class/one_hot"])
    assert sorted(batch(out)[1].tolist()) == [0, 0, 1, 2]


def test_kagglers_read_run_lengths_as_text_and_our_loader_reports_why_it_does_not(clouds, tmp_path):
    out, plain = (transformed(clouds, tmp_path / preset, preset=preset) for preset in ("rle_text", "tf_vision"))
    name = "image/segmentation/Sugar/rle_text"
    for record, ours in zip(records_of(out), examples_of(plain), strict=True):
        text = tf.io.parse_single_example(record, {name: tf.io.FixedLenFeature([], tf.string)})[name].numpy().decode()
        runs = rle.parse_pairs(text, height=SIZE[0], width=SIZE[1])
        np.testing.assert_array_equal(runs.reshape(-1), ours["image/segmentation/Sugar/rle"])
    with pytest.raises(DatasetError, match="features.preset is rle_text"):
        load(out, "train", 4)


def test_kept_images_keep_their_pixels(clouds, tmp_path):
    out = transformed(clouds, tmp_path, resize="keep", encoding="png")
    for before, after in zip(examples_of(clouds), examples_of(out), strict=True):
        image = tf_ops.decode(before["image/encoded"][0])
        np.testing.assert_array_equal(tf_ops.decode(after["image/encoded"][0]), image)
        assert (int(after["image/height"][0]), int(after["image/width"][0])) == image.shape[:2]
        name = "image/segmentation/Fish/rle"
        np.testing.assert_array_equal(after[name], before[name])


def test_what_cannot_be_decoded_is_rejected_with_a_row(small_dataset, tmp_path):
    def change(number: int, example: dict[str, Any]) -> dict[str, Any]:
        if number == 3:
            return {**example, "image/encoded": b"no image at all"}
        if number == 4:
            return {**example, "image/height": 25}
        return without_pixels({2})(number, example)

    source = small_dataset(tmp_path / "in", counts={"train": [4, 2], "eval": [2]}, change=change)
    out = transformed(source, tmp_path)
    rejected = {row.key: row for row in ImageDataset.open(out).ledger() if row.status == "rejected"}
    assert {key: row.code for key, row in rejected.items()} == {
        "train/0002": "undecodable",
        "train/0003": "not_an_image",
        "train/0004": "size_mismatch",
    }
    assert "24 x 36, but its record has 25 x 36" in rejected["train/0004"].reason
    totals = ImageDataset.open(out).manifest.totals
    assert (totals["inputs"], totals["written"], totals["rejected"]) == (8, 5, 3)
    assert len(examples_of(out)) == totals["records/train"] == 3
    assert next(load(out, "train", 8).as_numpy_iterator())[0].shape[0] == 3


def test_too_many_rejects_stop_it(small_dataset, tmp_path):
    source = small_dataset(tmp_path / "in", counts={"train": [16]}, change=without_pixels(set(range(11))))
    with pytest.raises(CheckFailed, match=r"11 of 16 inputs were rejected, 8 are allowed .*undecodable 11"):
        transformed(source, tmp_path)
    assert not (tmp_path / "out").exists()


def test_presets_that_do_not_fit_are_refused(clouds, flowers, tmp_path):
    with pytest.raises(ConfigError, match=r"transform\.preset: kaggle_flowers stores one class"):
        transformed(clouds, tmp_path, preset="kaggle_flowers")
    with pytest.raises(ConfigError, match=r"transform\.preset: rle_text stores masks"):
        transformed(flowers, tmp_path, preset="rle_text")
    with pytest.raises(ConfigError, match=r"transform\.text\.caption: .*no such texts.*site/name"):
        transformed(clouds, tmp_path, text={"caption": {}})
    with pytest.raises(ConfigError, match=r"transform\.text: two of .* would have one vocabulary"):
        stored_features(
            TransformConfig((8, 8), "stretch", "png", text={"a-b": TextConfig(), "a_b": TextConfig()}),
            {"a-b": "bytes", "a_b": "bytes"}, labels="none", classes=0,
        )  # fmt: skip
    renamed = transformed(flowers, tmp_path, preset="tfds")
    with pytest.raises(DatasetError, match="cannot be transformed: its features have the names"):
        transformed(renamed, tmp_path / "again")


def test_a_recipe_is_read_as_it_was_written():
    options = {"encoding": "png", "optimize": True, "labels": "one_hot", "text": {"a": {"output": "ids", "length": 3}}}
    config = build.config(transform=options)
    assert read_recipe(transform_recipe(config))[0] == config.transform.effective(config.task)
    plain = build.config().transform.effective("segmentation")
    assert set(manifest_recipe(plain)) == {
        "code",
        "size",
        "resize",
        "encoding",
        "quality",
    }


def test_after_a_kill_the_same_bytes(small_dataset, tmp_path):
    source = small_dataset(tmp_path / "in", counts={"train": [1, 2, 2]})
    recipe = transform_recipe(build.config(transform={"size": [20, 30]}))
    killed_transform(str(source), str(tmp_path / "resumed/staging"), recipe)
    assert list((tmp_path / "resumed").rglob("done/*")), "the kill came before any shard was finished"
    with pytest.raises(DatasetError):
        ImageDataset.open(tmp_path / "resumed/out")
    trees = []
    for name in ("resumed", "whole"):
        out = transformed(source, tmp_path / name)
        trees.append({str(f.relative_to(out)): f.read_bytes() for f in sorted(out.rglob("*")) if f.is_file()})
        assert not list((tmp_path / name).rglob("figures"))
    assert trees[0] == trees[1]
