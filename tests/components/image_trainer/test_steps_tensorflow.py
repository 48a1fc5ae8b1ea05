"""Steps on TensorFlow are deterministic, and batches are read ahead all the same, to train and to evaluate."""

import os
import subprocess
import sys

import pytest

# In a separate process: the setting stays on.
_PROGRAM = """
import os, tempfile, threading
import keras, numpy as np, tensorflow as tf
from recipes import train_recipe

from shardwright.components.image_trainer.training.checkpoints import CheckpointFolder
from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.training.loop import Loop, TrainState
from shardwright.components.image_trainer.devices.placement import Placement
from shardwright.components.image_trainer.training.device_input import DeviceInput
from shardwright.components.image_trainer.training.evaluate_split import Counting
from shardwright.components.image_trainer.training.losses import build_loss
from shardwright.components.image_trainer.training.optimizers import build_optimizer
from shardwright.components.image_trainer.training.training_progress import Preemption
from shardwright.components.image_trainer.spec import TrainRecipe, TrainSpec
from shardwright.components.image_trainer.training.learner import Learner
from shardwright.components.image_trainer.training.train import build_steps, connect

placement = Placement("cpu", "tensorflow")
assert connect(placement, HostPlace()) == 1
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, activation="softmax")])
recipe = train_recipe("cnn", 4, 2, 4, 1e-2, 3, "eval")
spec = TrainSpec(recipe, "", "d", "classification", ("a", "b"), 1, 1, "stretch", None, None, "", "")
optimizer = build_optimizer(recipe.trainer, 6, model=model)
prepare = DeviceInput("none", None, None, 2, False)
learner = Learner(model, build_loss("classification"), optimizer, prepare, Counting.of(spec))
steps = build_steps(placement, HostPlace(), learner)

def batches(count):
    # Two images must be decoded concurrently, or none passes.
    both = threading.Barrier(2, timeout=30)

    def met(number):
        both.wait()
        return np.full((4, 2), number, np.float32), np.ones(4, np.int32)

    def made(number):
        image, target = tf.numpy_function(met, [number], (tf.float32, tf.int32))
        return tf.ensure_shape(image, [4, 2]), tf.ensure_shape(target, [4]), number

    return tf.data.Dataset.range(count).map(made, num_parallel_calls=2).prefetch(2)

work = TrainState(
    spec=spec,
    place=HostPlace(),
    batch_size=4,
    steps_per_epoch=3,
    data=lambda step: batches(8),
    # As `training.work_of` gives it; of a batch the third part are weights.
    evaluation=lambda: batches(4).map(lambda *batch: (*batch[:2], tf.ones(4))).repeat(),
    evaluation_steps=4,
    evaluation_images=4,
    memory=0,
)
with tempfile.TemporaryDirectory() as folder:
    loop = Loop(work, steps, CheckpointFolder(folder), Preemption(), lambda message: None)
    loop.run()
assert steps.traces == 1
assert [round(found["loss"], 9) > 0 for found in loop.progress.evaluations] == [True, True]
try:
    tf.random.uniform([1])
except RuntimeError as error:
    print("deterministic" if "determinism" in str(error) else error, flush=True)
# Not by the interpreter's regular end, as a worker.
os._exit(0)
"""


@pytest.mark.slow
def test_batches_are_made_at_the_same_time_and_steps_are_deterministic(tmp_path):
    variables = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    variables["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, env=variables, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1:] == ["deterministic"]
