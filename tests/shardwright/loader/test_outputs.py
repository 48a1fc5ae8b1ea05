"""The outputs of the loader besides normalized images and masks as bytes."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.images import tf_ops
from shardwright.loader import load, unpack_masks
from shardwright.masks.regions import IGNORE_VALUE
from shardwright.tfrecords.records import decode_example

CLASSES = ("Fish", "Flower", "Sugar")
PLAIN = {"normalize": "none", "dtype": "uint8"}


@pytest.fixture(scope="module")
def clouds(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("clouds"), classes=CLASSES, counts={"train": [6, 5]})


@pytest.fixture(scope="module")
def flowers(small_dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("flowers")
    return small_dataset(folder, task="classification", classes=CLASSES, counts={"train": [6]})


def first(root, batch_size=4, **options):
    return next(iter(load(root, "train", batch_size, **{**PLAIN, **options}).as_numpy_iterator()))


def test_pixels_of_every_type_are_the_same_pixels(clouds):
    plain = first(clouds)[0]
    assert plain.dtype == np.uint8
    unit = first(clouds, normalize="unit", dtype="float32")[0]
    np.testing.assert_array_equal(unit, tf_ops.normalize(plain, "unit"))
    half = first(clouds, normalize="unit", dtype="bfloat16")[0]
    assert half.dtype == tf.bfloat16.as_numpy_dtype
    np.testing.assert_array_equal(half, tf.cast(unit, tf.bfloat16))


def test_targets_are_masks_or_labels_or_both(clouds):
    masks, labels, both = (first(clouds, targets=targets)[1] for targets in ("masks", "labels", "both"))
    assert (masks.shape, masks.dtype) == ((4, 24, 36, 3), np.uint8)
    assert (labels.shape, labels.dtype) == ((4, 3), np.float32)
    np.testing.assert_array_equal(labels, masks.any(axis=(1, 2)))
    np.testing.assert_array_equal(both["masks"], masks)
    np.testing.assert_array_equal(both["labels"], labels)


def test_bits_hold_what_bytes_hold(clouds):
    augment = ["flip_left_right", "crop=0.5", "cutout"]
    masks, bits = (first(clouds, masks=kind, augment=augment, seed=3)[1] for kind in ("bytes", "bits"))
    assert (bits.shape, bits.dtype) == ((4, 24, 36, 1), np.uint8)
    np.testing.assert_array_equal(np.asarray(unpack_masks(bits, 3, ops)), masks)


def test_ignored_pixels_come_through_bits(small_dataset, tmp_path):
    root = small_dataset(tmp_path, classes=("Fish", "ignore"), counts={"train": [4]})
    manifest = ImageDataset.open(root).manifest
    changed = manifest.__class__(**{**vars(manifest), "classes": ("Fish",)}).with_digest()
    assert changed.ignores
    (root / "manifest.json").write_text(changed.to_json())
    masks, bits = (first(root, masks=kind)[1] for kind in ("bytes", "bits"))
    assert set(np.unique(masks)) >= {0, IGNORE_VALUE}
    np.testing.assert_array_equal(np.asarray(unpack_masks(bits, 1, ops, ignores=True)), masks)


@pytest.mark.parametrize("order", ["fast", "exact"])
def test_ids_are_positions_in_the_split(clouds, order):
    records = [decode_example(record) for _, record in ImageDataset.open(clouds).records("train")]
    seen = []
    for batch in load(clouds, "train", 4, ids=True, shuffle=True, seed=2, order=order, **PLAIN).as_numpy_iterator():
        for image, place in zip(batch[0], batch[-1], strict=True):
            stored = tf_ops.decode(records[place]["image/encoded"][0]).numpy()
            np.testing.assert_array_equal(image, stored)
        counted = batch[2] > 0 if order == "exact" else np.ones(len(batch[0]), bool)
        seen += batch[-1][counted].tolist()
    assert sorted(seen) == list(range(11))


def test_mixup_is_the_same_for_a_seed_a_step_and_a_number_of_hosts(clouds):
    options = {"order": "exact", "shuffle": True, "repeat": True, "augment": ["mixup"], "host": 1, "hosts": 2}
    whole = [image.numpy() for image, _ in load(clouds, "train", 2, seed=5, **options).take(6)]
    resumed = [image.numpy() for image, _ in load(clouds, "train", 2, seed=5, start_step=3, **options).take(3)]
    assert np.array_equal(whole[3:], resumed)
    other = [image.numpy() for image, _ in load(clouds, "train", 2, seed=6, **options).take(6)]
    assert not np.array_equal(whole, other)


def test_mixup_makes_soft_targets(clouds, flowers):
    _, masks = first(clouds, normalize="unit", dtype="float32", augment=["mixup=1"], seed=1)
    assert (masks.shape, masks.dtype) == ((4, 24, 36, 3), np.float32)
    assert len(np.unique(masks.round(4))) > 2
    _, labels = first(flowers, normalize="unit", dtype="float32", augment=["mixup=1"], seed=1)
    assert (labels.shape, labels.dtype) == ((4, 3), np.float32)
    np.testing.assert_allclose(labels.sum(-1), 1, atol=1e-6)
    assert ((labels > 0) & (labels < 1)).any()


@pytest.mark.parametrize(
    "options",
    [
        {"drop_remainder": True},
        {"repeat": True},
        {"order": "exact"},
        {"order": "exact", "repeat": True},
        {"repeat": True, "masks": "bits"},
        {"repeat": True, "targets": "both", "ids": True},
        {"repeat": True, "augment": ["crop", "hue", "cutout", "flip_up_down"]},
        {"repeat": True, "dtype": "float32", "augment": ["mixup"]},
    ],
)
def test_every_shape_is_known_and_nothing_is_text(clouds, options):
    for spec in tf.nest.flatten(load(clouds, "train", 4, **{**PLAIN, **options}).element_spec):
        assert spec.shape.is_fully_defined()
        assert spec.shape[0] == 4
        assert spec.dtype != tf.string


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float16"}, "dtype: 'float16' is not known"),
        ({"dtype": "uint8", "normalize": "unit"}, "dtype: 'uint8' keeps the pixels"),
        ({"targets": "boxes"}, "targets: 'boxes' is not known"),
        ({"masks": "runs"}, "masks: 'runs' is not known"),
        ({"masks": "bits", "targets": "labels"}, "masks: 'bits' needs masks"),
        ({"augment": ["mixup"]}, "'mixup' makes fractions"),
        ({"augment": ["mixup"], "dtype": "float32", "masks": "bits"}, "'mixup' makes fractions"),
        ({"cache": "memory", "order": "exact"}, "cache: needs order='fast'"),
        ({"shuffle_buffer": 0}, "shuffle_buffer: 0 is too small"),
    ],
)
def test_options_that_do_not_fit_are_refused(clouds, options, message):
    with pytest.raises(UsageError, match=message):
        load(clouds, "train", 4, **{**PLAIN, **options})


def test_masks_of_images_without_any_are_refused(flowers):
    for targets in ("masks", "both"):
        with pytest.raises(UsageError, match=f"targets: {targets!r} needs masks, and .* has none"):
            load(flowers, "train", 4, targets=targets)
