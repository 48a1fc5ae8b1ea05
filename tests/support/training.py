"""Shared by the tests of the trainer: trainings in processes of their own, on small images, and what came out."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from recipes import changed, train_recipe

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.training.history import read_summary
from shardwright.config.trainer import CheckpointConfig
from shardwright.dataset.reader import ImageDataset

# The loop is tested here, not a model: most of the time of a short training would go into tracing and compiling a unet.
RECIPE = train_recipe("own_models:normed", 4, 2, 8, 1e-2, 3, "eval", augment=("flip_left_right",))
SIZE = (32, 32)
COUNTS = {"train": 40, "eval": 12, "test": 2}

# A worker that says after each step what its batch looked like, and that ends at a step in a way that it is told.
_PROGRAM = """
import os, signal, sys
from shardwright.components.image_trainer import worker
from shardwright.components.image_trainer.devices import placement

at, number = int(sys.argv.pop(1)), int(sys.argv.pop(1))

def work(spec):
    # As the trainer does, before Keras is imported below.
    trainer = spec.recipe.trainer
    where = placement.choose_placement(trainer.accelerator, trainer.hosts, placement.Machine.look(os.environ))
    os.environ.update(where.to_environment(os.environ))
    from shardwright.components.image_trainer.training import loop
    step = loop.Loop._step

    def counted(self, batch, batches):
        images = batch[0]
        if hasattr(images, "sharding"):
            parts = [list(shard.data.shape) for shard in images.addressable_shards]
            worker.send({"parts": parts, "whole": list(images.shape), "spread": str(images.sharding.spec)})
        found = step(self, batch, batches)
        if self.progress.step + len(self._in_flight) == at:
            os.kill(os.getpid(), number)
        return found

    loop.Loop._step = counted
    worker.train(spec)

worker.main(work)
"""


def spec_of(folder: Path, dataset: Path, recipe=RECIPE, *, every: int = 500, **options) -> TrainSpec:
    """A training of a dataset into a folder; its checkpoints go to `folder/checkpoints`."""
    manifest = ImageDataset.open(dataset).manifest
    folder.mkdir(parents=True, exist_ok=True)
    return TrainSpec(
        recipe=changed(recipe, checkpoint=CheckpointConfig(every), **options),
        dataset=str(dataset),
        dataset_fingerprint=manifest.fingerprint,
        task=manifest.task,
        classes=manifest.classes,
        height=SIZE[0],
        width=SIZE[1],
        resize="stretch",
        mean=None,
        std=None,
        output=str(folder),
        export="",
        checkpoints=str(folder / "checkpoints"),
    )


def start(spec: TrainSpec, *, end_at: int = -1, by: int = signal.SIGKILL, **environment: str) -> subprocess.Popen:
    """Starts a training; when step `end_at` has started, it gets the signal `by`."""
    file = Path(spec.output, "spec.json")
    spec.write(file)
    command = [sys.executable, "-c", _PROGRAM, str(end_at), str(int(by)), "--spec", str(file)]
    paths = os.pathsep.join(path for path in sys.path if path)
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": paths, **environment}
    with Path(spec.output, "said.log").open("w") as log:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=variables, text=True
        )


def ended(process: subprocess.Popen) -> tuple[int, list[dict], str]:
    """Waits for a training: its exit code, its messages, and what it said besides."""
    # Its standard input stays open: its end would mean that whoever started it is gone.
    with process:
        lines = process.stdout.readlines()
        process.wait()
    said = Path(process.args[-1]).with_name("said.log").read_text()
    messages = [json.loads(line) for line in lines if line.startswith("{")]
    return process.returncode, messages, said[-3000:] + str(messages[-1:])


def trained(spec: TrainSpec, **environment: str):
    """The summary of a training that is run to its end."""
    code, _, said = ended(start(spec, **environment))
    assert code == 0, said
    return read_summary(spec.output)
