"""How fast a training goes, fed by the loader and by one batch over and over; `shardwright bench train` runs it.

KERAS_BACKEND=jax python -m shardwright_components.image_trainer.speed_worker --spec FILE
"""

from __future__ import annotations

import os
import time
from statistics import median
from typing import Any

from shardwright_components.image_trainer import worker
from shardwright_components.image_trainer.hosts import HostPlace
from shardwright_components.image_trainer.placement import BACKEND, Placement
from shardwright_components.image_trainer.spec import TrainSpec

# Both ways take turns, so that other work on the machine slows down both.
ROUNDS = 5
_STEPS = 6
_WARM_UP = 3


def measure(spec: TrainSpec) -> None:
    """Sends `constant` and `loaded`, in images/s, `waited`, the share of the latter's time without images, and `cpu`.

    That one is the processor time of the constant batch, in ms an image: unlike the others it hardly depends on what
    else the machine does.
    """
    from shardwright_components.image_trainer.optimizers import build_optimizer
    from shardwright_components.image_trainer.steps import build_steps, connect
    from shardwright_components.image_trainer.training import built_model, work_of

    placement, here = Placement("cpu", os.environ[BACKEND]), HostPlace()
    devices = connect(placement, here)
    model = built_model(spec, spec.recipe.precision)
    work = work_of(spec, here, devices, model)
    optimizer = build_optimizer(spec.recipe, 1000)
    optimizer.build(model.trainable_variables)
    steps = build_steps(placement, here, model, work.loss, optimizer)
    batches = steps.batches(work.data(0))
    constant = next(batches)
    for _ in range(_WARM_UP):
        _train(steps, constant)
        _train(steps, next(batches))
    rates: dict[str, list[float]] = {"constant": [], "loaded": [], "waited": [], "cpu": []}
    for _ in range(ROUNDS):
        begun, used = time.perf_counter(), time.process_time()
        for _ in range(_STEPS):
            _train(steps, constant)
        images = _STEPS * work.batch_size
        rates["constant"].append(images / (time.perf_counter() - begun))
        rates["cpu"].append(1000 * (time.process_time() - used) / images)
        begun, waited = time.perf_counter(), 0.0
        for _ in range(_STEPS):
            asked = time.perf_counter()
            batch = next(batches)
            waited += time.perf_counter() - asked
            _train(steps, batch)
        seconds = time.perf_counter() - begun
        rates["loaded"].append(images / seconds)
        rates["waited"].append(waited / seconds)
    worker.send({name: median(values) for name, values in rates.items()})


def _train(steps: Any, batch: tuple[Any, ...]) -> None:
    float(steps.train(batch[0], batch[1]))


if __name__ == "__main__":
    worker.main(measure)
