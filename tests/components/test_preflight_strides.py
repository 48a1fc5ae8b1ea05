"""The strides that the preflight knows are those of the models."""

from shardwright.components.image_trainer import deeplab, models
from shardwright.preflight.tensors import STRIDES


def test_strides_are_those_of_the_models():
    ours = {"unet": 2**models._UNET_LEVELS, "deeplab": deeplab._STRIDE, "cnn": 2 ** (models._CNN_STAGES + 1)}
    assert ours == STRIDES
