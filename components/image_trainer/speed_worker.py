"""How fast a training goes, fed by the loader and by one batch over and over; `shardwright bench train` runs it.

KERAS_BACKEND=jax python -m shardwright_components.image_trainer.speed_worker --spec FILE
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from shardwright_components.image_trainer import worker
from shardwright_components.image_trainer.hosts import HostPlace
from shardwright_components.image_trainer.placement import BACKEND, Placement
from shardwright_components.image_trainer.spec import TrainSpec

# Both ways take turns, so that other work on the machine slows down both.
ROUNDS = 5
_STEPS = 10
# Batches that may lie ready when a turn begins: so many steps do not count.
_READY = 8
# The loader has nothing left to do when the process takes no more than this share of a core.
_IDLE, _LOOK_EVERY, _LOOKS = 0.1, 0.05, 100

Rates = dict[str, float]


def measure(spec: TrainSpec) -> None:
    """Sends what it measured.

    `first` are the seconds to the first batch. All else is [in the first epoch, in a later one]: `constant` and
    `loaded`, in images/s, `waited`, the share of the latter's time without images, and `constant_cpu` and `loaded_cpu`,
    the processor time in ms an image: unlike the others they hardly depend on what else the machine does.
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
    begun = time.perf_counter()
    batches = steps.batches(work.data(0))
    constant = next(batches)
    to_first = time.perf_counter() - begun
    # Compiles the step.
    _train(steps, constant)
    rounds = max(1, min(ROUNDS, (work.steps_per_epoch - 1) // (_READY + _STEPS)))
    early = _turns(steps, batches, constant, work.batch_size, rounds)
    for _ in range(work.steps_per_epoch - 1 - rounds * (_READY + _STEPS)):
        next(batches)
    late = _turns(steps, batches, constant, work.batch_size, ROUNDS)
    worker.send({"first": to_first, **{name: [early[name], late[name]] for name in early}})


def _turns(steps: Any, batches: Iterator[Any], constant: Any, images: int, rounds: int) -> Rates:
    """Medians over turns of one batch over and over, while the loader has nothing to do, and of the loader's."""
    found: list[Rates] = []
    for _ in range(rounds):
        _wait_for_the_loader()
        took, used, _ = _turn(steps, (constant for _ in range(_STEPS)), images)
        rates = {"constant": took, "constant_cpu": used}
        for _ in range(_READY):
            _train(steps, next(batches))
        took, used, waited = _turn(steps, batches, images)
        found.append({**rates, "loaded": took, "loaded_cpu": used, "waited": waited})
    return {name: median(rates[name] for rates in found) for name in found[0]}


def _turn(steps: Any, batches: Iterator[Any], images: int) -> tuple[float, float, float]:
    """Images/s, CPU ms an image, and the share of the time that waited for batches, over some steps."""
    begun, used, waited = time.perf_counter(), time.process_time(), 0.0
    for _ in range(_STEPS):
        asked = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - asked
        _train(steps, batch)
    seconds = time.perf_counter() - begun
    return images * _STEPS / seconds, 1000 * (time.process_time() - used) / (images * _STEPS), waited / seconds


def _wait_for_the_loader() -> None:
    for _ in range(_LOOKS):
        used = time.process_time()
        time.sleep(_LOOK_EVERY)
        if time.process_time() - used < _IDLE * _LOOK_EVERY:
            return


def _train(steps: Any, batch: tuple[Any, ...]) -> None:
    float(steps.train(batch[0], batch[1]))


if __name__ == "__main__":
    worker.main(measure)
