"""Steps on TensorFlow are deterministic, and their batches are read ahead all the same."""

import os
import subprocess
import sys

import pytest

# In a process of its own: what is switched on stays on.
_PROGRAM = """
import threading
import keras, numpy as np, tensorflow as tf
from shardwright_components.image_trainer.hosts import HostPlace
from shardwright_components.image_trainer.placement import Placement
from shardwright_components.image_trainer.steps import build_steps, connect

placement = Placement("cpu", "tensorflow")
assert connect(placement, HostPlace()) == 1
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.1)
optimizer.build(model.trainable_variables)
steps = build_steps(placement, HostPlace(), model, keras.losses.MeanSquaredError(), optimizer)

# Nobody passes alone: two are made at a time, or none is.
both = threading.Barrier(2, timeout=60)

def met(number):
    both.wait()
    return np.full((4, 2), number, np.float32), np.ones((4, 1), np.float32)

def made(number):
    image, target = tf.numpy_function(met, [number], (tf.float32, tf.float32))
    return tf.ensure_shape(image, [4, 2]), tf.ensure_shape(target, [4, 1])

batches = steps.batches(tf.data.Dataset.range(4).map(made, num_parallel_calls=2).prefetch(2))
for _ in range(4):
    images, targets = next(batches)
    assert np.isfinite(float(steps.train(images, targets)))
assert steps.traces == 1
try:
    tf.random.uniform([1])
except RuntimeError as error:
    print("deterministic" if "determinism" in str(error) else error)
"""


@pytest.mark.slow
def test_batches_are_made_at_the_same_time_and_steps_are_deterministic(tmp_path):
    variables = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, env=variables, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1:] == ["deterministic"]
