"""Models of the user's and pretrained encoders, from the recipe to an export that answers."""

import json

import numpy as np
import pytest
from recipes import changed, train_recipe

from shardwright.components.image_trainer import run_fn
from shardwright.components.image_trainer.run_fn import train_and_export
from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.components.image_trainer.training.history import read_history
from shardwright.config import parse_config
from shardwright.errors import ConfigError, ShardwrightError, UsageError
from shardwright.storage.checksum import checksum_file

RECIPE = train_recipe("unet", 4, 1, 4, 1e-2, 3, "eval")
B0 = "efficientnetv2-b0"


@pytest.fixture(scope="module")
def data(tmp_path_factory, write_shapes):
    return write_shapes(tmp_path_factory.mktemp("models") / "data", counts={"train": 4, "eval": 2, "test": 2})


def trained(recipe, data, folder, **files):
    train_and_export(recipe, dataset=data, run_folder=folder / "run", export_folder=folder / "export", **files)
    return read_history(folder / "run")


def answer(folder):
    """Answers of an exported model for an image of another size."""
    import tensorflow as tf

    model = tf.saved_model.load(str(folder / "export"))
    image = tf.io.encode_png(np.zeros((7, 9, 3), np.uint8))
    return model.signatures["serving_default"](image_bytes=image[tf.newaxis])


@pytest.mark.slow
def test_a_model_of_the_user_s_is_trained_and_exported(data, tmp_path):
    history = trained(changed(RECIPE, model="own_models:right", code={"own_models": "c" * 64}), data, tmp_path)
    assert history.parameters < 200
    assert answer(tmp_path)["masks"].shape == (1, 24, 40, 2)
    assert (
        json.loads((tmp_path / "export/assets/training.json").read_text())["recipe"]["trainer"]["model"]
        == "own_models:right"
    )


@pytest.mark.slow
def test_deeplab_learns_and_its_export_answers(data, tmp_path):
    recipe = changed(RECIPE, model="deeplab", epochs=6)
    history = trained(recipe, data, tmp_path)
    assert history.loss[-1] < history.loss[0]
    answered = answer(tmp_path)
    assert answered["masks"].shape == (1, 24, 40, 2)
    assert answered["probabilities"].shape == (1, 24, 40, 2)
    assert 0 < float(np.min(answered["probabilities"])) < float(np.max(answered["probabilities"])) < 1


@pytest.mark.slow
def test_a_model_that_does_not_meet_the_requirements_ends_the_training_before_it_begins(data, tmp_path):
    with pytest.raises(ShardwrightError, match=r"trainer\.model: own_models:half: gives \[batch, 12, 20, 2\], not "):
        trained(changed(RECIPE, model="own_models:half"), data, tmp_path)
    assert not (tmp_path / "export").exists()


@pytest.mark.slow
def test_an_encoder_begins_with_the_weights_of_its_file(data, tmp_path, monkeypatch):
    from shardwright.components.image_trainer.models.encoders import build_encoder
    from shardwright.components.image_trainer.training.train import built_model

    source = build_encoder(B0, 32, 64)
    file = tmp_path / "b0.weights.h5"
    source.set_weights([np.full(w.shape, 0.01, np.float32) for w in source.get_weights()])
    source.save_weights(file)
    # The workers would trace the whole encoder; what they are given is enough.
    monkeypatch.setattr(run_fn, "_train", lambda spec, *others: None)
    monkeypatch.setattr(run_fn, "_export", lambda spec, *others, **options: None)
    recipe = changed(RECIPE, encoder=B0, weights="blake3:" + checksum_file(file))
    spec = train_and_export(
        recipe, dataset=data, run_folder=tmp_path / "run", export_folder=tmp_path / "x", weights_from=str(file)
    )
    encoder = built_model(spec, "float32").get_layer("encoder")
    kernels = [w for w in encoder.trainable_weights if "kernel" in w.name]
    assert len(kernels) > 50
    for kernel in kernels:
        np.testing.assert_array_equal(np.asarray(kernel), np.float32(0.01))


def config(**trainer):
    return parse_config({"input": {"images": "x"}, "trainer": trainer}, base="/nowhere")


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        ({"model": "mine.models"}, "trainer.model: 'mine.models' is not an import path. Write package.module:function"),
        ({"model": "mine:a:b"}, "is not an import path"),
        ({"model": "resnet"}, "trainer.model: 'resnet' is not known. Use one of: auto, unet, deeplab, cnn"),
        ({"model": "cnn"}, "trainer.model: 'cnn' does not solve segmentation"),
        ({"encoder": "resnet50"}, "trainer.encoder: 'resnet50' is not known. Use one of: compact, efficientnetv2-b0"),
        ({"model": "mine:build", "encoder": B0}, "trainer.encoder: 'efficientnetv2-b0', but the model is your own"),
        ({"weights": "a.h5"}, "trainer.weights: 'a.h5' are weights of an encoder, and trainer.encoder is compact"),
        ({"encoder": B0, "weights": "a.ckpt"}, "trainer.weights: 'a.ckpt' is not a file of weights"),
        (
            {"loss": "cross_entropy"},
            "trainer.loss: 'cross_entropy' is not for segmentation. Use one of: auto, bce_dice",
        ),
        ({"loss": "hinge"}, "trainer.loss: 'hinge' is not known"),
        ({"class_weights": "rare"}, "trainer.class_weights: 'rare' is not known. Use one of: auto, none, balanced"),
    ],
)
def test_wrong_options_are_refused(trainer, message):
    with pytest.raises(ConfigError) as caught:
        config(**trainer)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("evaluator", "threshold", "min_area", "tuned"),
    [
        ({}, 0.5, 0, ("threshold", "min_area")),
        ({"threshold": "tuned", "min_area": 7}, 0.5, 7, ("threshold",)),
        ({"threshold": 0.25}, 0.25, 0, ("min_area",)),
        ({"threshold": 1, "min_area": 0}, 1.0, 0, ()),
    ],
)
def test_options_without_a_value_are_tuned(evaluator, threshold, min_area, tuned):
    recipe = TrainRecipe.from_config(parse_config({"input": {"images": "x"}, "evaluator": evaluator}, base="/"))
    assert (recipe.threshold, recipe.min_area, recipe.evaluator.tuned) == (threshold, min_area, tuned)


@pytest.mark.parametrize(
    ("evaluator", "message"),
    [
        ({"threshold": "best"}, "evaluator.threshold: 'best' is not a number. Write a number, or tuned"),
        ({"threshold": 1.5}, "evaluator.threshold: 1.5 is out of range"),
        ({"min_area": -1}, "evaluator.min_area: -1 is out of range"),
        ({"min_area": 1.5}, "evaluator.min_area: 1.5 is not a whole number"),
        ({"threshold": None}, "evaluator.threshold"),
    ],
)
def test_wrong_thresholds_are_refused(evaluator, message):
    with pytest.raises(ConfigError) as caught:
        parse_config({"input": {"images": "x"}, "evaluator": evaluator}, base="/")
    assert message in str(caught.value)


def test_a_recipe_holds_what_files_are_and_not_where(tmp_path):
    (tmp_path / "w.keras").write_bytes(b"weights")
    (tmp_path / "own_code.py").write_text("x = 1\n")
    first = TrainRecipe.from_config(
        parse_config({"input": {"images": "x"}, "trainer": {"encoder": B0, "weights": "w.keras"}}, base=str(tmp_path))
    )
    assert first.trainer.weights == "blake3:" + checksum_file(tmp_path / "w.keras")
    own = parse_config({"input": {"images": "x"}, "trainer": {"model": "own_code:build"}}, base=str(tmp_path))
    assert TrainRecipe.from_config(own).code == {"own_code": checksum_file(tmp_path / "own_code.py")}
    assert str(tmp_path) not in json.dumps([first.to_dict(), TrainRecipe.from_config(own).to_dict()])
    with pytest.raises(UsageError, match=r"trainer\.weights: /nowhere/w\.keras cannot be read"):
        TrainRecipe.from_config(config(encoder=B0, weights="w.keras"))
    with pytest.raises(UsageError, match=r"trainer\.model: the source of module 'no_such_module' was not found"):
        TrainRecipe.from_config(config(model="no_such_module:build"))
