"""Pretrained encoders: their shapes, and weights out of files of every kind, or of another architecture."""

import keras
import numpy as np
import pytest

from shardwright.components.image_trainer.models.compact import ModelShape
from shardwright.components.image_trainer.models.encoders import (
    build_encoder,
    classifier,
    load_encoder_weights,
    padded_side,
    segmenter,
)
from shardwright.components.image_trainer.models.text_inputs import Words
from shardwright.errors import UsageError

pytestmark = pytest.mark.slow

NAME = "efficientnetv2-b0"


@pytest.fixture(scope="module")
def encoder():
    return build_encoder(NAME, 64, 64)


def small(channels=(4, 6)):
    """A little model instead of an encoder: messages about files do not depend on its size."""
    inputs = keras.Input((8, 8, 3))
    x = inputs
    for i, count in enumerate(channels):
        x = keras.layers.Conv2D(count, 3, name=f"block{i}_conv")(x)
        x = keras.layers.BatchNormalization(name=f"block{i}_bn")(x)
    return keras.Model(inputs, x)


def test_masks_come_in_the_size_of_the_image(encoder):
    model = segmenter(encoder, ModelShape(50, 40, 3, 4, "sigmoid"))
    images = np.random.default_rng(0).normal(size=(2, 50, 40, 3)).astype(np.float32)
    answer = np.asarray(model(images))
    assert answer.shape == (2, 50, 40, 3)
    assert (answer.dtype, model.outputs[0].dtype) == (np.float32, "float32")
    assert ((answer > 0) & (answer < 1)).all()
    assert (padded_side(50), padded_side(64), padded_side(1)) == (64, 64, 32)


def test_deeplab_and_words_go_with_an_encoder(encoder):
    rng = np.random.default_rng(0)
    image, text = rng.normal(size=(1, 50, 40, 3)).astype(np.float32), np.eye(6, dtype=np.float32)
    for deeplab in (False, True):
        model = segmenter(encoder, ModelShape(50, 40, 3, 4, "sigmoid", Words(6, "words_x")), deeplab=deeplab)
        one, other = (np.asarray(model({"image": image, "text": text[i : i + 1]})) for i in (0, 1))
        assert one.shape == (1, 50, 40, 3)
        assert np.abs(one - other).max() > 1e-6
        assert {id(w) for w in encoder.weights} <= {id(w) for w in model.weights}
    labels = classifier(encoder, ModelShape(50, 40, 3, 4, "softmax", Words(6, "words_x")))
    assert np.asarray(labels({"image": image, "text": text[:1]})).sum() == pytest.approx(1, rel=1e-5)


def test_the_encoder_s_weights_are_the_model_s(encoder, tmp_path):
    model = classifier(encoder, ModelShape(50, 40, 3, 16, "softmax"))
    answer = np.asarray(model(np.zeros((1, 50, 40, 3), np.float32)))
    assert answer.sum() == pytest.approx(1, rel=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(np.asarray(again(np.zeros((1, 50, 40, 3), np.float32))), answer, rtol=1e-5)
    assert {id(w) for w in encoder.weights} <= {id(w) for w in model.weights}


@pytest.mark.parametrize("suffix", [".keras", ".weights.h5", ".h5"])
def test_weights_are_taken_from_files_of_every_kind(tmp_path, suffix):
    source, model = small(), small()
    file = str(tmp_path / f"file{suffix}")
    rng = np.random.default_rng(1)
    source.set_weights([rng.normal(size=w.shape) for w in source.get_weights()])
    source.save_weights(file) if suffix == ".weights.h5" else source.save(file)
    load_encoder_weights(model, file, "small")
    for mine, theirs in zip(model.get_weights(), source.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("suffix", [".keras", ".weights.h5", ".h5"])
def test_weights_of_another_architecture_are_refused_with_the_first_layers_that_differ(tmp_path, suffix):
    source, model = small((4, 7)), small()
    before = model.get_weights()
    file = str(tmp_path / f"file{suffix}")
    source.save_weights(file) if suffix == ".weights.h5" else source.save(file)
    with pytest.raises(
        UsageError,
        match=r"weights: file.* another architecture than small: .*\[3, 3, 4, 6\] here, .*\[3, 3, 4, 7\] there",
    ):
        load_encoder_weights(model, file, "small")
    for mine, theirs in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("suffix", [".keras", ".weights.h5", ".h5"])
def test_a_deeper_model_fits_and_a_shallower_one_does_not(tmp_path, suffix):
    deep, shallow = small((4, 6, 5)), small((4,))
    for name, model in (("deep", deep), ("shallow", shallow)):
        file = str(tmp_path / f"{name}{suffix}")
        model.save_weights(file) if suffix == ".weights.h5" else model.save(file)
    with pytest.raises(UsageError, match="here, nothing there|here,  .* there|another architecture"):
        load_encoder_weights(small(), str(tmp_path / f"shallow{suffix}"), "small")
    if suffix != ".weights.h5":
        load_encoder_weights(small(), str(tmp_path / f"deep{suffix}"), "small")


@pytest.mark.parametrize("suffix", [".keras", ".weights.h5", ".h5"])
def test_what_is_no_file_of_weights_is_refused(tmp_path, suffix):
    file = tmp_path / f"bad{suffix}"
    for content in (None, b"", b"not weights at all"):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(UsageError, match=r"trainer\.weights: .*bad.* cannot be read as weights"):
            load_encoder_weights(small(), str(file), "small")
