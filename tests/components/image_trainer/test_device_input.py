"""Batches travel to the device as bytes and bits; a step makes of them what the loader would have made."""

import json
import os
import subprocess
import sys
from pathlib import Path

import device_inputs
import pytest
import tensorflow as tf
from recipes import train_recipe

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.training import train
from shardwright.config.loader import NORMALIZATIONS
from shardwright.dataset.reader import ImageDataset

CLASSES = ("Fish", "Flower", "Sugar")
# Ignored pixels are in the masks, which no normalization changes.
ONE = ("none",)


@pytest.fixture(scope="module")
def masks(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("masks"), classes=CLASSES, counts={"train": [6], "eval": [4]})


@pytest.fixture(scope="module")
def ignoring(small_dataset, tmp_path_factory):
    """Returns a dataset whose last class marks pixels to be ignored."""
    root = small_dataset(tmp_path_factory.mktemp("ignoring"), classes=("Fish", "ignore"), counts={"train": [6]})
    manifest = ImageDataset.open(root).manifest
    changed = manifest.__class__(**{**vars(manifest), "classes": ("Fish",)}).with_digest()
    (root / "manifest.json").write_text(changed.to_json())
    return root


def on_jax(dataset, methods, classes, ignore):
    """Returns the comparison by a process whose Keras runs on JAX."""
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    call = [sys.executable, str(Path(device_inputs.__file__)), str(dataset), str(classes), "ignore" if ignore else ""]
    call += methods
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check(found, methods, ignore, most):
    assert found.keys() == set(methods)
    for method, one in found.items():
        assert one["pixels"] <= most, method
        assert (one["masks"], one["texts"], one["type"]) == (True, True, "float32"), method
        assert (one["ignored"] > 0) == ignore


def test_tensorflow_computes_the_same_bits_as_the_loader(masks, ignoring):
    assert len(NORMALIZATIONS) == 5
    found = device_inputs.compare(str(masks), tf.function, NORMALIZATIONS, classes=3, ignore=False)
    check(found, NORMALIZATIONS, False, 0)
    check(device_inputs.compare(str(ignoring), tf.function, ONE, classes=1, ignore=True), ONE, True, 0)


@pytest.mark.slow
def test_jax_computes_the_same_but_for_rounding(masks, ignoring):
    check(on_jax(masks, NORMALIZATIONS, 3, False), NORMALIZATIONS, False, 1e-6)
    check(on_jax(ignoring, ONE, 1, True), ONE, True, 1e-6)


def spec_of(dataset, task="segmentation", augment=()):
    recipe = train_recipe("unet", 8, 1, 4, 1e-2, 3, "eval", augment=augment)
    return TrainSpec(recipe, str(dataset), "", task, CLASSES, 24, 36, "stretch", None, None, "", "")


def kinds(batches):
    return [part.dtype.name for part in tf.nest.flatten(batches.element_spec)]


def test_the_trainer_asks_for_bytes_and_bits(masks, small_dataset, tmp_path):
    place = HostPlace()
    batches = train._train_batches(spec_of(masks), place, 4, False, 0)
    assert kinds(batches) == ["uint8", "uint8", "int64"]
    assert batches.element_spec[1].shape.as_list() == [4, 24, 36, 1]
    assert kinds(train._evaluation_batches(spec_of(masks), place, 4)) == ["uint8", "uint8", "float32"]
    labels = small_dataset(tmp_path, task="classification", classes=CLASSES, counts={"train": [6]})
    assert kinds(train._train_batches(spec_of(labels, "classification"), place, 4, False, 0)) == [
        *("uint8", "int32", "int64")
    ]


def test_mixed_images_come_as_floats(masks):
    batches = train._train_batches(spec_of(masks, augment=("mixup",)), HostPlace(), 4, False, 0)
    assert kinds(batches) == ["float32", "float32", "int64"]
    assert float(tf.reduce_max(next(iter(batches))[0])) <= 1
