"""Augmentations as they are written: names, strengths, and what is refused, in a call and in a configuration."""

import pytest

from shardwright.config import LoaderConfig
from shardwright.config.loader import AUGMENTATIONS, Augmentation, read_augmentations
from shardwright.errors import ConfigError, UsageError


def test_each_may_stand_alone():
    assert tuple(read_augmentations(AUGMENTATIONS)) == AUGMENTATIONS
    assert read_augmentations(["flip_up_down"]) == {"flip_up_down": Augmentation("flip_up_down", 0.0)}


def test_a_strength_may_be_given():
    assert read_augmentations(["crop=0.5", "hue"]) == {
        "crop": Augmentation("crop", 0.5),
        "hue": Augmentation("hue", 0.05),
    }
    assert LoaderConfig(augment=("crop=0.5", "rotate90")).augment == ("crop=0.5", "rotate90")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (["spin"], "'spin' is not known.*flip_left_right"),
        (["crop", "crop=0.5"], "'crop' is there twice"),
        (["crop=2"], "'crop=2': its strength is a number from 0.05 to 1. crop alone means crop=0.7"),
        (["crop=small"], "'crop=small': its strength is a number"),
        (["hue="], "'hue=': its strength is a number"),
        (["mixup=nan"], "'mixup=nan': its strength is a number"),
        (["rotate90=1"], "'rotate90=1': it has no strength"),
    ],
)
def test_invalid_augmentations_are_refused(written, message):
    with pytest.raises(UsageError, match=f"augment: {message}"):
        read_augmentations(written)
    with pytest.raises(ConfigError, match=r"^loader\.augment: '"):
        LoaderConfig(augment=tuple(written))
