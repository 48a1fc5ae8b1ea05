"""Batches for JAX's devices are read ahead by a thread, in their order, and errors come in the place of their batch."""

from itertools import count, islice
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import tensorflow as tf

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.training.learner import Learner
from shardwright.components.image_trainer.training.steps_jax import JaxSteps, read_ahead


def test_items_keep_their_order_and_an_error_its_place():
    def items():
        yield from range(3)
        raise ValueError("the fourth")

    found = read_ahead(items(), 2)
    assert list(islice(found, 3)) == [0, 1, 2]
    with pytest.raises(ValueError, match="the fourth"):
        next(found)
    assert list(read_ahead(range(5), 2)) == [0, 1, 2, 3, 4]
    assert list(read_ahead([], 2)) == []


def test_no_more_items_are_read_ahead_than_asked_for():
    made = []
    found = read_ahead(map(made.append, count()), 2)
    next(found)
    found.close()
    assert len(made) <= 3


@pytest.mark.parametrize("ahead", [False, True])
def test_batches_are_the_same_with_a_thread_and_without(ahead, monkeypatch):
    model = SimpleNamespace(trainable_variables=[], non_trainable_variables=[])
    steps = JaxSteps(HostPlace(), Learner(model, None, SimpleNamespace(variables=[]), None, None))
    assert not steps._ahead  # A CPU needs no thread.
    monkeypatch.setattr(steps, "_ahead", ahead)
    images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    data = tf.data.Dataset.from_tensor_slices((images, images[:, :, 0], np.arange(4))).batch(2)
    found = list(steps.batches(data))
    assert np.concatenate([np.asarray(batch[0]) for batch in found]).tolist() == images.tolist()
    assert np.concatenate([np.asarray(batch[1]) for batch in found]).tolist() == images[:, :, 0].tolist()
    assert all(isinstance(part, jax.Array) for batch in found for part in batch[:2])
    assert [batch[2].tolist() for batch in found] == [[0, 1], [2, 3]]
