"""Optimizers, and learning rates over the steps of a training."""

from __future__ import annotations

import math
from typing import Any

import keras

from shardwright.config import TrainerConfig
from shardwright.errors import ConfigError

_FLOOR = 0.01
_CLIP = 1.0
_MOMENTUM = 0.9
_WEIGHT_DECAY = 1e-3


def build_optimizer(options: TrainerConfig, steps: int) -> keras.optimizers.Optimizer:
    """Returns the optimizer of a options.

    The gradient of each variable is clipped to a norm of 1. Over the first share `warm_up` of the steps the rate rises
    linearly, from `warm_up` times its value. Then it stays (`constant`), or falls to a hundredth along half a cosine
    (`cosine`) or linearly (`linear`). With `accumulate` the mean gradient of so many steps makes one update. With `ema`
    the optimizer keeps a running mean of the weights, which `finalize_variable_values` assigns to them.

    Args:
        options: `optimizer`, `learning_rate`, `schedule`, `warm_up`, `weight_decay`, `ema` and `accumulate`.
        steps: steps of the whole training.

    Raises:
        ConfigError: there are too few steps for a single update.
    """
    if options.accumulate > steps:
        raise ConfigError(
            "trainer.accumulate",
            f"{options.accumulate} batches make one update, and the whole training has {steps}",
            "Lower it, or train on more epochs.",
        )
    rate, common = _rate(options, steps), dict[str, Any](clipnorm=_CLIP)
    if options.ema is not None:
        common |= {"use_ema": True, "ema_momentum": options.ema, "ema_overwrite_frequency": None}
    if options.accumulate > 1:
        common["gradient_accumulation_steps"] = options.accumulate
    if options.optimizer == "adamw":
        return keras.optimizers.AdamW(
            rate, weight_decay=_WEIGHT_DECAY if options.weight_decay is None else options.weight_decay, **common
        )
    if options.optimizer == "adam":
        return keras.optimizers.Adam(rate, **common)
    return keras.optimizers.SGD(rate, momentum=_MOMENTUM, nesterov=True, **common)


def _rate(options: TrainerConfig, steps: int) -> Any:
    warm_up = math.ceil(options.warm_up * steps)
    rate, first = options.learning_rate, options.learning_rate * options.warm_up
    last = rate if options.schedule == "constant" else rate * _FLOOR
    return _Rate(rate, first, warm_up, steps, last, cosine=options.schedule == "cosine")


class _Rate(keras.optimizers.schedules.LearningRateSchedule):
    """Goes linearly from `first` to `rate` over the warm-up, then to `last`, linearly or along half a cosine.

    Keras' own cosine has a branch. For TensorFlow, Keras asks for the rate once for every variable whose weights decay,
    and tracing a branch takes as long as tracing the rest of its update.
    """

    def __init__(self, rate: float, first: float, warm_up: int, steps: int, last: float, *, cosine: bool) -> None:
        super().__init__()
        self._rate, self._first, self._warm_up, self._steps, self._last = rate, first, warm_up, steps, last
        self._cosine = cosine

    def __call__(self, step: Any) -> Any:
        step = keras.ops.cast(step, "float32")
        rising = self._first + (self._rate - self._first) * step / max(self._warm_up, 1)
        done = keras.ops.clip((step - self._warm_up) / max(self._steps - self._warm_up, 1), 0.0, 1.0)
        if self._cosine:
            done = 0.5 - 0.5 * keras.ops.cos(math.pi * done)
        return keras.ops.where(step < self._warm_up, rising, self._rate + (self._last - self._rate) * done)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {
            "rate": self._rate,
            "first": self._first,
            "warm_up": self._warm_up,
            "steps": self._steps,
            "last": self._last,
            "cosine": self._cosine,
        }
