"""`trainer`: what runs how, good values and bad ones."""

import build
import pytest

from shardwright.errors import ConfigError


def trainer(**options):
    return build.config(trainer=options).trainer


def test_the_defaults():
    found = trainer()
    assert (found.accelerator, found.hosts, found.checkpoint.every, found.checkpoint.keep) == ("auto", 1, 500, 2)
    assert (found.optimizer, found.schedule, found.warm_up, found.weight_decay) == ("adamw", "cosine", 0.05, None)
    assert (found.patience, found.precision, found.warm_start) == (None, "float32", "none")
    assert (found.text, found.ema, found.accumulate) == ((), None, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"accelerator": "tpu", "hosts": 4, "batch_size": 64},
        {"checkpoint": {"every": 1, "keep": 10}},
        {"optimizer": "sgd", "schedule": "linear", "warm_up": 0},
        {"weight_decay": 0, "schedule": "constant"},
        {"patience": 3, "precision": "bfloat16"},
        {"patience": False},
        {"warm_start": "blessed"},
        {"ema": 0.999, "accumulate": 4, "model": "deeplab"},
        {"warm_start": "models/unet.keras"},
    ],
)
def test_what_is_taken(options):
    trainer(**options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"accelerator": "tpus"}, "trainer.accelerator: 'tpus' is not known. Use one of: auto, cpu, gpu, tpu."),
        ({"hosts": 0}, "trainer.hosts: 0 is too small"),
        ({"hosts": 3}, "trainer.batch_size: 16 images cannot be split over 3 hosts equally. Use 18."),
        ({"checkpoint": {"every": 0}}, "trainer.checkpoint.every: 0 is too small"),
        ({"checkpoint": {"keep": 0}}, "trainer.checkpoint.keep: 0 is too small"),
        ({"checkpoint": {"evry": 5}}, "trainer.checkpoint.evry: unknown key. Did you mean trainer.checkpoint.every?"),
        ({"optimizer": "lion"}, "trainer.optimizer: 'lion' is not known"),
        ({"schedule": "steps"}, "trainer.schedule: 'steps' is not known"),
        ({"warm_up": 0.95}, "trainer.warm_up: 0.95 is out of range"),
        ({"weight_decay": 2}, "trainer.weight_decay: 2.0 is out of range"),
        (
            {"optimizer": "adam", "weight_decay": 0.1},
            "trainer.weight_decay: adam has none. Remove trainer.weight_decay, or use optimizer: adamw.",
        ),
        ({"patience": 0}, "trainer.patience: 0 is too small"),
        ({"precision": "float16"}, "trainer.precision: 'float16' is not known. Use one of: float32, bfloat16."),
        ({"ema": 1.0}, "trainer.ema: 1.0 is out of range"),
        ({"ema": 0}, "trainer.ema: 0.0 is out of range"),
        ({"accumulate": 0}, "trainer.accumulate: 0 is out of range"),
        ({"steps_per_launch": 0}, "trainer.steps_per_launch: 0 is out of range"),
        ({"shard_weights": 0}, "trainer.shard_weights: 0 is too small"),
        (
            {"compilation_cache": "cache"},
            "trainer.compilation_cache: 'cache' is neither an absolute path nor a URL. Write /… or gs://….",
        ),
        ({"model": "deeplab3"}, "trainer.model: 'deeplab3' is not known. Use one of: auto, unet, deeplab, cnn"),
        ({"warm_start": " "}, "trainer.warm_start: ' ' names nothing"),
    ],
)
def test_what_is_refused(options, problem):
    with pytest.raises(ConfigError) as caught:
        trainer(**options)
    assert str(caught.value).startswith(problem)
