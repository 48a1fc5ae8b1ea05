"""The strides that the preflight knows are those of the models."""

from shardwright.components.image_trainer.models import compact
from shardwright.pipelines.preflight.tensor_rules import STRIDES


def test_strides_are_those_of_the_models():
    ours = {"unet": 2**compact._UNET_LEVELS, "deeplab": compact._DEEPLAB_STRIDE, "cnn": 2 ** (compact._CNN_STAGES + 1)}
    assert ours == STRIDES
