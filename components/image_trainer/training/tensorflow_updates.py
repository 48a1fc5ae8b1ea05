"""The updates of Adam in fewer operations of TensorFlow.

Keras writes the update of each variable as some thirty operations of TensorFlow, and reads the rate for each.
For a small model, tracing them takes longer than tracing the model, and calling them a part of every step that counts.
TensorFlow has one operation for the same formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from shardwright.components.image_trainer.keras_compat import moments, replaced_updates


@contextmanager
def quick_updates(optimizer: Any) -> Iterator[None]:
    """Lets an optimizer of Keras use the operations of this module, if it is a plain Adam or AdamW.

    Args:
        optimizer: a built optimizer; it is called within the context, in one trace.
    """
    if type(optimizer) not in (keras.optimizers.Adam, keras.optimizers.AdamW) or optimizer.amsgrad:
        yield
        return
    with replaced_updates(optimizer, clip=_clipped, decay=_decay, update=_update):
        yield


def _clipped(optimizer: Any, gradients: Sequence[Any]) -> list[Any]:
    return [_with_norm(tf.convert_to_tensor(gradient), optimizer.clipnorm) for gradient in gradients]


def _with_norm(gradient: Any, most: float) -> Any:
    """Returns a gradient with a norm of at most `most`."""
    # The loss is half of the square of the norm; a norm of 0 makes the quotient infinite.
    quotient = tf.math.rsqrt(tf.nn.l2_loss(gradient) * (2.0 / most**2))
    return gradient * tf.minimum(quotient, 1.0)


def _decay(optimizer: Any, weights: Sequence[Any]) -> None:
    if optimizer.weight_decay is None:
        return
    share = tf.cast(optimizer.learning_rate, tf.float32) * optimizer.weight_decay
    for weight in weights:
        variable = weight.value
        tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=share, delta=variable)


def _update(optimizer: Any, gradients: Sequence[Any], weights: Sequence[Any], rate: Any) -> None:
    step = tf.cast(optimizer.iterations + 1, tf.float32)
    powers = tf.pow(optimizer.beta_1, step), tf.pow(optimizer.beta_2, step)
    for gradient, weight in zip(gradients, weights, strict=True):
        first, second = moments(optimizer, weight)
        tf.raw_ops.ResourceApplyAdam(
            var=weight.value.handle,
            m=first.value.handle,
            v=second.value.handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=rate,
            beta1=optimizer.beta_1,
            beta2=optimizer.beta_2,
            epsilon=optimizer.epsilon,
            grad=gradient,
        )
