"""Ignored pixels count nowhere: not in the loss, not in Dice and IoU, not in the sums of the exported model."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries
from recipes import train_recipe

from shardwright import loader
from shardwright.components.image_trainer.export.signatures import FlippedMean, ServedModel
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.training.evaluate_split import Counting, evaluate
from shardwright.components.image_trainer.training.losses import build_loss, loss_of
from shardwright.components.image_transform.rewrite import ShardTransform, rewritten
from shardwright.components.image_transform.transformed_features import stored_features
from shardwright.config import TransformConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.evaluation.metrics import MaskSums
from shardwright.images.boxes import Box, box_values
from shardwright.images.geometry import POLICIES, plan_geometry
from shardwright.masks import rle
from shardwright.masks.regions import IGNORE_VALUE
from shardwright.tfrecords.encode import byte_strings, encode_example, floats, ints
from shardwright.tfrecords.records import decode_example

CLASSES, SIZE = ("Fish", "Sugar"), (24, 36)
RECIPE = train_recipe("unet", 8, 2, 4, 1e-3, 1, "eval")
SPEC = TrainSpec(RECIPE, "d", "d", "segmentation", CLASSES, *SIZE, "stretch", None, None, "run", "export", ignore=True)
seeds = st.integers(0, 2**32 - 1)


def drawn(seed, shape=(2, 6, 5, 2)):
    """Truth, scores (probabilities or logits) and what is ignored."""
    random = np.random.default_rng(seed)
    truth = (random.random(shape) < 0.4).astype(np.uint8)
    ignored = random.random((*shape[:3], 1)) < random.choice([0, 0.3, 1])
    return truth, random.uniform(0.01, 0.99, shape).astype(np.float32), ignored


@tries(25)
@given(seeds, st.floats(0.01, 0.99))
def test_the_loss_is_that_of_the_pixels_that_count(seed, other):
    truth, probabilities, ignored = drawn(seed)
    loss = build_loss("segmentation", ignore=True)
    marked = np.where(ignored, np.uint8(IGNORE_VALUE), truth)
    found = float(loss(marked, probabilities))
    assert found == pytest.approx(float(loss(marked, np.where(ignored, np.float32(other), probabilities))), abs=1e-6)
    kept = ~ignored[..., 0]
    if not kept.any():
        assert found == pytest.approx(0, abs=1e-6)
        return
    rest = [part[kept].reshape(1, -1, 1, 2) for part in (truth, probabilities)]
    assert found == pytest.approx(float(build_loss("segmentation")(*rest)), rel=1e-4)


def test_nothing_is_learned_from_what_is_ignored():
    truth, probabilities, _ = drawn(3)
    ignored = np.zeros((2, 6, 5, 1), bool)
    ignored[:, :3] = True
    given = tf.Variable(probabilities)
    with tf.GradientTape() as tape:
        loss = build_loss("segmentation", ignore=True)(np.where(ignored, np.uint8(IGNORE_VALUE), truth), given)
    gradient = tape.gradient(loss, given).numpy()
    assert not gradient[:, :3].any()
    assert gradient[:, 3:].all()


@given(seeds)
def test_dice_and_iou_are_those_of_the_pixels_that_count(seed):
    truth, probabilities, ignored = drawn(seed)
    predicted = probabilities >= 0.5
    found = MaskSums.of_masks(predicted, np.where(ignored, np.uint8(IGNORE_VALUE), truth), ignore=True)
    wanted = MaskSums.of_masks(predicted & ~ignored, truth.astype(bool) & ~ignored)
    assert found.report(CLASSES) == wanted.report(CLASSES)
    assert np.array_equal(found.truth, wanted.truth)


def test_the_report_of_an_epoch_leaves_it_out():
    random = np.random.default_rng(1)
    logits = random.normal(size=(4, *SIZE, 2)).astype(np.float32)
    truth, _, ignored = drawn(7, (4, *SIZE, 2))
    marked = np.where(ignored | (np.arange(36) < 9)[:, None], np.uint8(IGNORE_VALUE), truth)

    def evaluated(spec, logits, targets):
        count, loss = Counting.of(spec), loss_of(spec)

        def launch(images, targets, counted):
            counts = np.asarray(count(keras.ops.sigmoid(images), targets))
            return lambda: (counts, float(loss(targets, images, counted)))

        return evaluate(launch, [(logits, targets)], spec)

    found = evaluated(SPEC, logits, marked)
    assert found == pytest.approx(evaluated(SPEC, np.where(marked == IGNORE_VALUE, np.float32(9), logits), marked))
    plain = evaluated(dataclasses.replace(SPEC, ignore=False), logits, truth)
    assert plain["mean_dice"] != found["mean_dice"]


def ignored_of(number, shape=SIZE):
    return np.kron(np.random.default_rng([2, number]).random((4, 4)) < 0.3, np.ones((shape[0] // 4, shape[1] // 4))) > 0


def with_ignored(number, example):
    runs = rle.encode(ignored_of(number))
    ignored = {
        "image/segmentation/ignore/rle": ints(runs.reshape(-1)),
        "image/segmentation/ignore/area": rle.area(runs),
    }
    boxes = box_values(Box(3, 4, 30, 20), height=SIZE[0], width=SIZE[1], label=1, text="Sugar")
    kinds = {str: lambda v: byte_strings([t.encode() for t in v]), int: ints, float: floats}
    return {**example, **ignored, **{name: kinds[type(v[0])](v) for name, v in boxes.items()}}


@pytest.fixture(scope="module")
def examples(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("ignore"), counts={"train": [3, 2]}, change=with_ignored)


def test_the_loader_marks_it_in_every_class_and_turns_it_with_the_masks(examples):
    batch = next(loader.load(examples, "train", 5).as_numpy_iterator())[1]
    assert (batch.dtype, batch.shape) == (np.uint8, (5, *SIZE, 2))
    flipped = next(loader.load(examples, "train", 5, augment=["flip_up_down"], seed=2).as_numpy_iterator())[1]
    turned = 0
    stored = [decode_example(record) for _, record in ImageDataset.open(examples).records("train")]
    for number in range(5):
        example = next(e for e in stored if e["image/key"][0] == f"train/{number:04d}".encode())
        runs = [rle.from_flat(example[f"image/segmentation/{name}/rle"]) for name in CLASSES]
        masks = np.stack([rle.draw(r, *SIZE) for r in runs], axis=-1)
        wanted = np.where(ignored_of(number)[..., None], np.uint8(IGNORE_VALUE), masks)
        (place,) = [i for i in range(5) if np.array_equal(batch[i], wanted)]
        assert any(np.array_equal(flipped[place], side) for side in (wanted, wanted[::-1]))
        turned += np.array_equal(flipped[place], wanted[::-1])
    assert 0 < turned < 5


def test_a_class_called_ignore_is_a_class(small_dataset, tmp_path):
    dataset = small_dataset(tmp_path, classes=("Fish", "ignore"), counts={"train": [2]})
    assert not ImageDataset.open(dataset).manifest.ignores
    assert next(loader.load(dataset, "train", 2).as_numpy_iterator())[1].max() == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_the_transform_moves_it_with_the_pixels_and_the_boxes_too(examples, policy):
    recipe = TransformConfig((16, 16), policy, "png")
    manifest = ImageDataset.open(examples).manifest
    stored, texts = stored_features(recipe, manifest.features, labels=manifest.labels, classes=len(CLASSES))
    how = ShardTransform(recipe, "segmentation", CLASSES, stored, texts)
    plan = plan_geometry(policy, *SIZE, 16, 16)
    for key, record in ImageDataset.open(examples).records("train"):
        [(outcome, _)] = rewritten([record], how)
        example = decode_example(outcome.payload)
        runs = rle.from_flat(example["image/segmentation/ignore/rle"])
        wanted = rle.resample(rle.encode(ignored_of(int(key[-4:]))), plan)
        assert np.array_equal(runs, wanted)
        assert example["image/segmentation/ignore/area"].tolist() == [rle.area(wanted)]
        assert b"ignore" not in example["image/class/text"]
        edges = np.array([example[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]) * 16
        left, top = (3 - plan.crop_left) / plan.crop_width, (4 - plan.crop_top) / plan.crop_height
        assert edges[0] == pytest.approx(max(left, 0) * plan.resized_width + plan.pad_left, abs=1e-4)
        assert edges[1] == pytest.approx(max(top, 0) * plan.resized_height + plan.pad_top, abs=1e-4)
        assert example["image/object/class/text"] == [b"Sugar"]


def served_model(spec):
    return ServedModel(FlippedMean(lambda images, training: images[..., :2], spec), spec)


def test_the_sums_of_the_exported_model_leave_it_out(examples):
    served = served_model(SPEC)
    sums = served.signatures()["examples"]
    plain = served_model(dataclasses.replace(SPEC, ignore=False))
    stored = [(int(key[-4:]), record) for key, record in ImageDataset.open(examples).records("train")]
    found = {name: v.numpy() for name, v in sums(examples=tf.constant([r for _, r in stored])).items()}
    whole = plain.signatures()["examples"](examples=tf.constant([r for _, r in stored]))
    assert (found["truth"] < whole["truth"].numpy()).any()
    assert (found["prediction"] < whole["prediction"].numpy()).any()
    filled = []
    for number, record in stored:
        # The same image, with all that is ignored in every class.
        example = decode_example(record)
        for name in CLASSES:
            runs = rle.union([rle.from_flat(example[f"image/segmentation/{name}/rle"]), rle.encode(ignored_of(number))])
            example[f"image/segmentation/{name}/rle"] = runs.reshape(-1)
        kinds = {name: byte_strings(v) if isinstance(v, list) else ints(v) for name, v in example.items()}
        filled.append(encode_example({name: kinds[name] for name in kinds if "object" not in name}))
    other = sums(examples=tf.constant(filled))
    for name, values in found.items():
        np.testing.assert_array_equal(values, other[name].numpy())


def test_a_training_without_has_the_fingerprint_it_had():
    without = dataclasses.replace(SPEC, ignore=False)
    assert "ignore" not in without.to_dict()
    assert TrainSpec.from_dict(without.to_dict()) == without
    assert TrainSpec.from_dict(SPEC.to_dict()) == SPEC
    assert SPEC.fingerprint != without.fingerprint
