"""A Keras model object in `shardwright.train`: what it may be, what its digest says, and that it is trained."""

import re
from pathlib import Path
from typing import Any

import build
import keras
import numpy as np
import pytest
from keras import layers

import shardwright
from shardwright.components.image_trainer.models.given_model import GivenModel
from shardwright.components.model_files.keras_file import load_keras_model
from shardwright.errors import ConfigError, UsageError

COUNTS = {"train": [5, 4], "eval": [4], "test": [5]}
TRAINER = {"epochs": 1, "batch_size": 3}
CLASSES = 2


def network(
    *,
    classes: int = CLASSES,
    size: tuple[int | None, int | None] = (16, 24),
    last: str | None = None,
    seed: int = 7,
    width: int = 4,
) -> Any:
    keras.utils.set_random_seed(seed)
    inputs = keras.Input((*size, 3))
    x = layers.BatchNormalization()(layers.Conv2D(width, 3, padding="same", activation="relu")(inputs))
    x = layers.Dropout(0.1)(x)
    return keras.Model(inputs, layers.Conv2D(classes, 1, activation=last)(x + x))


def shrinking() -> Any:
    """A network that takes images of any size, and gives masks that are smaller."""
    return keras.Sequential([keras.Input((None, None, 3)), layers.Conv2D(CLASSES, 3)])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return build.dataset(tmp_path / "source", counts=COUNTS)


def test_the_digest_is_of_layers_and_weights_not_of_names_or_of_the_compilation() -> None:
    first = GivenModel.of(network())
    compiled = network()
    compiled.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    assert GivenModel.of(compiled).name == first.name  # Its layers are called conv2d_2, …
    others = [network(last="sigmoid"), network(width=5), network(seed=8)]
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        others.append(network())
    finally:
        keras.config.set_dtype_policy("float32")
    names = [GivenModel.of(model).name for model in others]
    assert len({first.name, *names}) == 5
    assert [first.has_other_weights(name) for name in (first.name, *names)] == [False, False, False, True, False]


def test_the_file_has_the_weights_and_nothing_of_the_compilation(tmp_path: Path) -> None:
    inner = network()
    inner.compile("adam", "binary_crossentropy")
    outer = keras.Sequential([keras.Input((16, 24, 3)), inner])
    outer.compile("sgd", "mse")
    file = GivenModel.of(outer).write(tmp_path / "training")
    loaded = load_keras_model(file)
    batch = np.ones((1, 16, 24, 3), np.float32)
    assert np.array_equal(loaded(batch, training=False), outer(batch, training=False))
    assert not loaded.compiled
    assert not loaded.layers[0].compiled


@keras.saving.register_keras_serializable(package="given")
class Own(layers.Layer):
    """A layer that only this process knows."""

    def call(self, x: Any) -> Any:
        return x


class Subclassed(keras.Model):
    """A model without a graph."""

    def call(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("my_models:build", "is of the type str, not keras.Model"),
        (Subclassed(), "has no shapes yet"),
        (lambda: keras.Sequential([keras.Input((16, 24, 3)), layers.Lambda(lambda x: x)]), r"keras\.layers\.Lambda"),
        (lambda: keras.Sequential([keras.Input((16, 24, 3)), Own()]), "Own, and the process that trains has"),
        (
            lambda: network(classes=3),
            re.escape("gives [batch, 16, 24, 3], not [batch, 16, 24, 2]: the last number is that of the classes, 2 ("),
        ),
    ],
)
def test_other_models_are_refused_before_anything_is_written(
    source: Path, tmp_path: Path, model: Any, problem: str
) -> None:
    given = model() if callable(model) and not isinstance(model, keras.Model) else model
    with pytest.raises(UsageError, match=problem):
        shardwright.train(source, tmp_path / "out", model=given, trainer=TRAINER)
    assert not (tmp_path / "out").exists()


def test_the_options_that_a_model_decides_are_refused(source: Path, tmp_path: Path) -> None:
    def train(**options: Any) -> None:
        shardwright.train(source, tmp_path / "out", model=network(), **options)

    with pytest.raises(UsageError, match=r"trainer\.model is 'unet', too"):
        train(trainer={"model": "unet"})
    with pytest.raises(UsageError, match=r"trainer\.precision: bfloat16, but the layers"):
        train(trainer={"precision": "bfloat16"})
    with pytest.raises(ConfigError, match=r"trainer\.encoder.*the model is your own"):
        train(trainer={"encoder": "efficientnetv2-b0"})
    with pytest.raises(
        UsageError, match=re.escape("takes [batch, 16, 24, 3]; it is given [batch, 8, 8, 3]: the images' height")
    ):
        train(transform={"size": (8, 8)})
    with pytest.raises(UsageError, match=re.escape("gives [batch, 22, 34, 2], not [batch, 24, 36, 2]: ")):
        shardwright.train(source, tmp_path / "out", model=shrinking(), transform={"size": (24, 36)})
    # The digest names no file.
    with pytest.raises(ConfigError, match=r"trainer\.model: 'blake3:.*names no model"):
        shardwright.train(source, tmp_path / "out", trainer={"model": GivenModel.of(network()).name})
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.two_stacks
def test_it_is_trained_found_again_and_named_when_its_weights_differ(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = network()
    given.compile("adam", "binary_crossentropy")
    before = [np.array(weight) for weight in given.weights]
    trained = shardwright.train(source, tmp_path / "out", model=given, trainer=TRAINER, workers=1)
    assert all(np.array_equal(one, weight) for one, weight in zip(before, given.weights, strict=True))
    assert trained.figures is not None
    # Its logits end in a sigmoid now; the weights were learned.
    learned = load_keras_model(trained.keras_file)
    assert [weight.shape for weight in learned.weights] == [weight.shape for weight in given.weights]
    assert not np.array_equal(learned.weights[0], before[0])
    answer = np.asarray(learned(np.zeros((1, 16, 24, 3), np.float32), training=False))
    assert 0 <= answer.min() <= answer.max() <= 1
    trained.predict(source, tmp_path / "predicted.csv", dialect="clouds")
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 18 * CLASSES + 1
    capsys.readouterr()
    assert shardwright.train(source, tmp_path / "out", model=network(), trainer=TRAINER, workers=1) == trained
    with pytest.raises(UsageError, match="has the model of another training"):
        shardwright.train(source, tmp_path / "out", model=network(seed=8), trainer=TRAINER, workers=1)
    assert "has other initial weights" in capsys.readouterr().out


@pytest.mark.slow
def test_a_network_for_any_size_gets_that_of_the_images(source: Path, tmp_path: Path) -> None:
    given = network(size=(None, None))
    trained = shardwright.train(source, tmp_path / "out", model=given, trainer=TRAINER, workers=1)
    assert trained.figures is not None
    # The images are 24x36.
    assert trained.figures.measured.size == (32, 32)
    assert trained.predict(source, tmp_path / "predicted.csv").images == sum(map(sum, COUNTS.values()))
