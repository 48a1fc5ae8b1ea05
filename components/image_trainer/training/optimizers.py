"""Optimizers, and learning rates over the steps of a training."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from shardwright.components.image_trainer.keras_compat import followed_variables
from shardwright.config import TrainerConfig
from shardwright.config.trainer import LINEAR, NO_SCALING, RATE_BATCH
from shardwright.errors import ConfigError

_FLOOR = 0.01
_MOMENTUM = 0.9
_WEIGHT_DECAY = 1e-3
# The running mean looks back over a tenth of the updates so far, until that is as far as its momentum says.
_RAMP = 10


@dataclass(frozen=True)
class Finetuning:
    """Weights that learn at another rate than the rest.

    Attributes:
        weights: those of an encoder.
        rate: factor of their learning rate.
        first: updates before they learn.
    """

    weights: Sequence[Any] = ()
    rate: float = 1.0
    first: int = 0


def build_optimizer(options: TrainerConfig, steps: int, steps_per_epoch: int = 1, model: Any = None) -> Any:
    """Returns the optimizer of a training, built for the weights of its model.

    The mean gradient of `accumulate` steps makes one update; the gradients of all weights together are clipped to the
    norm `clip_norm`, so that their direction stays. Over the first share `warm_up` of the updates the rate rises
    linearly, from `warm_up` times its value. Then it stays (`constant`), or falls to a hundredth along half a cosine
    (`cosine`) or linearly (`linear`). Weight decay is for the weights whose names match `decayed`.

    With `ema`, a running mean of the weights follows every update, not every step. Its momentum rises as
    (1 + n) / (10 + n) with the number of updates, so that the random beginning is soon forgotten.
    `finalize_variable_values` assigns the mean to the weights.

    Args:
        options: `optimizer`, `learning_rate`, `rate_rule`, `schedule`, `warm_up`, `clip_norm`, `weight_decay`,
            `decayed`, `ema`, `accumulate`, `encoder_rate` and `encoder_trainable_from`.
        steps: steps of the whole training.
        steps_per_epoch: steps of an epoch.
        model: the model; `None`: the optimizer is not built yet.

    Raises:
        ConfigError: there are too few steps for a single update, or no weight has a name that decays.
    """
    if options.accumulate > steps:
        raise ConfigError(
            "trainer.accumulate",
            f"{options.accumulate} batches make one update, and the whole training has {steps}",
            "Lower it, or train on more epochs.",
        )
    common = dict[str, Any](
        name=options.optimizer,  # From our class Keras would make one that TensorFlow refuses as a scope.
        learning_rate=learning_rates(options, steps),
        global_clipnorm=options.clip_norm or None,
        gradient_accumulation_steps=options.accumulate if options.accumulate > 1 else None,
    )
    if options.optimizer == "adamw":
        common["weight_decay"] = _WEIGHT_DECAY if options.weight_decay is None else options.weight_decay
    if options.optimizer == "sgd":
        common |= {"momentum": _MOMENTUM, "nesterov": True}
    kinds: dict[str, type[_Followed]] = {"adamw": _AdamW, "adam": _Adam, "sgd": _SGD}
    optimizer: Any = kinds[options.optimizer](**common)
    if model is None:
        return optimizer
    frozen = (options.encoder_trainable_from - 1) * steps_per_epoch // options.accumulate
    slow = Finetuning()
    if options.encoder_rate != 1 or frozen:
        encoder = next(layer for layer in model.layers if layer.name == "encoder")
        slow = Finetuning(encoder.trainable_variables, options.encoder_rate, frozen)
    optimizer.follow(options.ema, slow)
    weights = model.trainable_variables
    if optimizer.weight_decay:
        optimizer.exclude_from_weight_decay(var_list=_not_decaying(weights, options.decayed))
    optimizer.build(weights)
    return optimizer


def _not_decaying(weights: Sequence[Any], patterns: Sequence[str]) -> list[Any]:
    kept = [w for w in weights if not any(fnmatch.fnmatchcase(w.path, pattern) for pattern in patterns)]
    if patterns and len(kept) == len(weights):
        raise ConfigError(
            "trainer.decayed",
            f"no weight of the model has a name like {', '.join(patterns)}",
            f"Its weights are called {', '.join(w.path for w in weights[:3])} and so on; [] for no decay.",
        )
    return kept


class _Followed(keras.optimizers.Optimizer):
    """What is added to an optimizer of Keras: a running mean of the weights, and weights that learn more slowly.

    Only methods that Keras documents for subclasses; on JAX they run on the state that a step is given.
    """

    momentum_of_mean: float | None = None
    finetuning = Finetuning()
    means: Sequence[Any] = ()

    def follow(self, ema: float | None, finetuning: Finetuning) -> None:
        """Sets what to do beside the updates, before the optimizer is built."""
        self.momentum_of_mean, self.finetuning = ema, finetuning

    def build(self, variables: Sequence[Any]) -> None:
        """Makes the optimizer's variables."""
        super().build(variables)
        if self.momentum_of_mean is not None:
            self.means = [self.add_variable_from_reference(v, name="mean") for v in variables]

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Updates the variables."""
        slow = [(v, ops.copy(v)) for v in self.finetuning.weights]
        before = ops.copy(self.iterations)
        super().apply(grads, trainable_variables)
        if slow:
            factor = ops.where(before < self.finetuning.first, 0.0, self.finetuning.rate)
            for variable, value in slow:
                variable.assign(value + (variable - value) * ops.cast(factor, value.dtype))
        if self.means:
            done = ops.cast(before, "float32")
            momentum = ops.minimum(self.momentum_of_mean, (done + 1.0) / (done + _RAMP))
            momentum = ops.where(before == 0, 0.0, momentum)
            momentum = ops.where(self.iterations > before, momentum, 1.0)
            # Until the first update the mean is what the weights are.
            momentum = ops.where(self.iterations == 0, 0.0, momentum)
            for mean, variable in zip(self.means, followed_variables(self), strict=True):
                share = ops.cast(momentum, mean.dtype)
                mean.assign(share * mean + (1.0 - share) * ops.cast(variable, mean.dtype))

    def finalize_variable_values(self, var_list: Sequence[Any]) -> None:
        """Sets the weights to their running mean; without one they stay."""
        for variable, mean in zip(var_list, self.means, strict=bool(self.means)):
            variable.assign(mean)


class _AdamW(_Followed, keras.optimizers.AdamW):
    pass


class _Adam(_Followed, keras.optimizers.Adam):
    pass


class _SGD(_Followed, keras.optimizers.SGD):
    pass


def learning_rates(options: TrainerConfig, steps: int) -> Any:
    """Returns a function from the number of steps done to the learning rate of the next one.

    Args:
        options: see `build_optimizer`.
        steps: of the whole training.
    """
    warm_up, share = math.ceil(options.warm_up * steps), options.batch_size * options.accumulate / RATE_BATCH
    factor = 1.0 if options.rate_rule == NO_SCALING else share if options.rate_rule == LINEAR else math.sqrt(share)
    rate = options.rate_of() * factor
    last = rate if options.schedule == "constant" else rate * _FLOOR
    return _Rate(rate, rate * options.warm_up, warm_up, steps, last, cosine=options.schedule == "cosine")


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
