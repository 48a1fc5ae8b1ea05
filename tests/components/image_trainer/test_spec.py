"""The specification for the Trainer's workers, and its cache key."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from evaluations import trained
from hypothesis import given
from hypothesis import strategies as st
from recipes import changed, train_recipe

from shardwright.components.image_trainer.devices.placement import Machine
from shardwright.components.image_trainer.run_fn import run_fn, spec_of
from shardwright.components.image_trainer.spec import TrainRecipe, TrainSpec
from shardwright.components.image_trainer.training.history import HISTORY_FILE, read_history
from shardwright.components.runtime.artifacts import write_record
from shardwright.config import EvaluatorConfig, LoaderConfig, TrainerConfig, parse_config
from shardwright.errors import ConfigError, DatasetError, UsageError

RECIPE = train_recipe("unet", 8, 2, 4, 1e-3, 1, "eval", augment=("flip_left_right",))
SPEC = TrainSpec(RECIPE, "data", "d" * 64, "segmentation", ("a", "b"), 24, 40, "stretch", None, None, "run", "export")

trainers = st.builds(
    TrainerConfig,
    model=st.sampled_from(["unet", "cnn"]),
    base_filters=st.integers(4, 64),
    epochs=st.integers(1, 100),
    batch_size=st.integers(1, 64),
    learning_rate=st.floats(1e-6, 1),
    seed=st.integers(0, 2**31),
    weight_decay=st.none() | st.floats(0, 1),
    patience=st.none() | st.integers(1, 9),
    ema=st.none() | st.floats(0.5, 0.99),
)
loaders = st.builds(
    LoaderConfig,
    normalize=st.sampled_from(["unit", "dataset"]),
    augment=st.lists(st.sampled_from(["flip_left_right", "rotate90"]), unique=True).map(tuple),
    shuffle_buffer=st.integers(1, 1000),
    order=st.sampled_from(["fast", "exact"]),
)
evaluators = st.builds(EvaluatorConfig, threshold=st.just("tuned") | st.floats(0, 1), flips=st.just(("up_down",)))
recipes = st.builds(
    TrainRecipe,
    trainers,
    loaders,
    evaluators,
    eval_split=st.sampled_from(["", "eval"]),
    submission=st.sampled_from(["", "rows"]),
)
colors = st.none() | st.tuples(*[st.floats(0, 255)] * 3)


@given(recipes, colors, st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_a_specification_survives_its_file(tmp_path_factory, recipe, color, classes):
    spec = dataclasses.replace(SPEC, recipe=recipe, classes=tuple(classes), mean=color, std=color)
    file = tmp_path_factory.mktemp("spec") / "spec.json"
    spec.write(file)
    assert TrainSpec.read(file) == spec
    assert TrainRecipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_the_fingerprint_sees_recipe_and_data_but_no_place():
    moved = dataclasses.replace(SPEC, dataset="/elsewhere", output="x", export="y")
    assert moved.fingerprint == SPEC.fingerprint
    for change in ({"dataset_fingerprint": "e" * 64}, {"recipe": changed(RECIPE, seed=2)}, {"height": 25}):
        assert dataclasses.replace(SPEC, **change).fingerprint != SPEC.fingerprint


def test_options_that_do_not_shape_the_model_are_not_in_its_recipe():
    def recipe(**sections):
        return TrainRecipe.from_config(parse_config({"input": {"images": "x"}, **sections}, base="/"))

    machine = {"accelerator": "cpu", "hosts": 2, "checkpoint": {"every": 7}}
    judged = {"split": "train", "min_dice": 0.9, "min_improvement": 0.1}
    made = recipe(trainer=machine, evaluator=judged)
    assert made.to_dict() == recipe().to_dict()
    assert (made.running, recipe().running) == ({"accelerator": "cpu", "hosts": 2, "checkpoint": {"every": 7}}, {})
    assert TrainRecipe.from_dict(made.to_dict(), made.running) == made
    assert recipe().to_dict() == {"version": 6, "trainer": {"model": "unet"}, "eval_split": "eval"}


def test_a_recipe_of_another_version_or_shape_is_refused():
    good = RECIPE.to_dict()
    unknown = {**good, "trainer": {**good["trainer"], "extra": 1}}
    for bad in ({**good, "version": 0}, {**good, "extra": 1}, unknown, {k: good[k] for k in good if k != "version"}):
        with pytest.raises(UsageError, match="compile the pipeline again"):
            TrainRecipe.from_dict(bad)


@pytest.mark.parametrize(("task", "model"), [("segmentation", "unet"), ("classification", "cnn")])
def test_the_configuration_decides_the_recipe(task, model):
    config = parse_config(
        {
            "task": task,
            "input": {"images": "x"},
            "trainer": {"epochs": 3, "base_filters": 12},
            "evaluator": {"threshold": 0.4},
        },
        base="/",
    )
    recipe = TrainRecipe.from_config(config)
    assert (recipe.trainer.model, recipe.trainer.epochs, recipe.trainer.base_filters, recipe.threshold) == (
        model,
        3,
        12,
        0.4,
    )
    assert recipe.eval_split == "eval"


def test_without_an_eval_split_none_is_named():
    config = parse_config({"input": {"images": "x"}, "split": {"ratios": {"train": 0.8, "test": 0.2}}}, base="/")
    assert TrainRecipe.from_config(config).eval_split == ""


def test_a_history_is_read_as_it_was_written(tmp_path):
    history = trained([0.5, 0.25], [{"mean_dice": 0.1}, {"mean_dice": 0.2}], 2)
    write_record(tmp_path / HISTORY_FILE, history)
    assert read_history(tmp_path) == history
    with pytest.raises(DatasetError, match="Trainer"):
        read_history(tmp_path / "elsewhere")


def test_the_figures_of_the_transform_weigh_the_classes_of_the_loss(tmp_path, write_shapes):
    from shardwright.components.image_trainer.training.losses import loss_of

    data = write_shapes(tmp_path / "data")
    figures = {"mean": [1, 2, 3], "std": [1, 1, 1], "pixel_frequency": {"Disc": 0.25, "Bar": 0.01}}
    (data / "statistics.json").write_text(json.dumps(figures))

    def spec(**options):
        return spec_of(changed(RECIPE, **options), data, tmp_path / "run", tmp_path / "export")

    assert spec(class_weights="none").class_weights is None
    # One class is 25 times as frequent as the other.
    assert spec(class_weights="auto").class_weights == pytest.approx((2 / 6, 10 / 6))
    weighted = spec(class_weights="balanced", loss="bce", normalize="dataset")
    assert weighted.class_weights == pytest.approx((2 / 6, 10 / 6))
    assert (weighted.mean, weighted.std) == ((1, 2, 3), (1, 1, 1))
    assert weighted.fingerprint != spec(class_weights="none", loss="bce", normalize="dataset").fingerprint
    truth, found = np.zeros((1, 2, 2, 2), np.uint8), np.full((1, 2, 2, 2), 0.1, np.float32)
    for rare, weight in ((0, 2 / 6), (1, 10 / 6)):
        # All of the loss is that of one class.
        answer = np.where(np.arange(2) == rare, 0.0, -20.0).astype(np.float32) * np.ones_like(found)
        assert float(loss_of(weighted)(truth, answer)) == pytest.approx(weight * np.log(2) / 2, rel=1e-4)
    (data / "statistics.json").unlink()
    with pytest.raises(DatasetError, match="statistics.json"):
        spec(class_weights="balanced")


def test_examples_of_another_kind_or_task_are_refused(tmp_path, write_shapes):
    def refused(recipe, match, **written):
        data = write_shapes(tmp_path / "-".join(written.values()), counts={"train": 1}, **written)
        with pytest.raises(UsageError, match=match):
            spec_of(recipe, data, tmp_path / "run", tmp_path / "export")

    refused(RECIPE, r'not transformed\. Give .*transform\.outputs\["transformed_examples"\]', kind="ingest")
    wrong = r"task: 'segmentation' \(the default .*\), but the examples are for 'classification'\. Write task='class"
    refused(RECIPE, wrong, task="classification")
    refused(changed(RECIPE, model="mine:build", loss="dice"), wrong, task="classification")
    refused(changed(RECIPE, model="cnn"), "task: 'classification' .* are for 'segmentation'", task="segmentation")


def test_16_bits_are_computed_with_where_they_are_asked_for():
    import keras

    from shardwright.components.image_trainer.training.train import built_model

    spec = dataclasses.replace(SPEC, recipe=changed(RECIPE, base_filters=4))
    before = keras.config.dtype_policy()
    try:
        for precision, computed in (("bfloat16", "bfloat16"), ("float32", "float32")):
            model = built_model(spec, precision)
            kinds = {layer.compute_dtype for layer in model.layers if type(layer).__name__ == "Conv2D"}
            assert kinds == {computed, "float32"}
            assert {weight.dtype for weight in model.weights} == {"float32"}
    finally:
        keras.config.set_dtype_policy(before)


def test_a_machine_that_cannot_train_is_refused_before_anything_is_read(monkeypatch):
    """TFX's arguments name the files that would be read: asking for any of them fails this test."""
    monkeypatch.setattr(Machine, "look", staticmethod(lambda environment: Machine(idle_tpu=True)))
    with pytest.raises(ConfigError, match="libtpu is not installed"):
        run_fn(SimpleNamespace(custom_config={}))
