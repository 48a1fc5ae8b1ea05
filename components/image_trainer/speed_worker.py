"""How fast a training goes, fed by the loader, by batches in memory and by one over and over; `bench train` runs it.

KERAS_BACKEND=jax SHARDWRIGHT_BENCH_ROUNDS=5 python -m shardwright.components.image_trainer.speed_worker --spec FILE
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import median, quantiles
from typing import Any

from shardwright.components.image_trainer import worker
from shardwright.components.image_trainer.hosts import HostPlace
from shardwright.components.image_trainer.placement import BACKEND, Placement
from shardwright.components.image_trainer.spec import TrainSpec

# The variable that says how many rounds are measured: in one all ways take turns.
ROUNDS = "SHARDWRIGHT_BENCH_ROUNDS"
# Steps of a turn; of a round it has two of each way, one before the loader's and one after it, so that a machine that
# becomes slower or quicker all the while favours none.
_STEPS = 5
# Batches that are held in memory and given in turns.
_HELD = 10
# Batches that may lie ready when the loader's turn begins: so many steps do not count.
_READY = 8
# The loader has nothing left to do when the process takes no more than this share of a core.
_IDLE, _LOOK_EVERY, _LOOKS = 0.1, 0.05, 100

CONSTANT, HELD, LOADED = "constant", "held", "loaded"


@dataclass(frozen=True)
class Turn:
    """What some steps took.

    Attributes:
        seconds: of the clock.
        used: of the processors.
        waited: of the clock, without a batch.
    """

    seconds: float
    used: float
    waited: float

    def __add__(self, other: Turn) -> Turn:
        return Turn(self.seconds + other.seconds, self.used + other.used, self.waited + other.waited)


Round = dict[str, Turn]


def measure(spec: TrainSpec) -> None:
    """Sends what it measured.

    `first` are the seconds to the first batch; all else is that of `told`, as [in the first epoch, in later ones].
    """
    from shardwright.components.image_trainer.optimizers import build_optimizer
    from shardwright.components.image_trainer.steps import build_steps, connect
    from shardwright.components.image_trainer.training import built_model, work_of

    placement, here = Placement("cpu", os.environ[BACKEND]), HostPlace()
    devices = connect(placement, here)
    model = built_model(spec, spec.recipe.precision)
    work = work_of(spec, here, devices, model)
    optimizer = build_optimizer(spec.recipe, 1000)
    optimizer.build(model.trainable_variables)
    steps = build_steps(placement, here, model, work.loss, optimizer)
    begun = time.perf_counter()
    next(steps.batches(work.data(0)))
    to_first = time.perf_counter() - begun
    held = list(islice(steps.batches(work.data(0)), _HELD))
    # Begun before the first step, as in a training.
    batches = steps.batches(work.data(0))
    _train(steps, next(batches))
    ways = {CONSTANT: cycle(held[:1]), HELD: cycle(held), LOADED: batches}
    a_round = _READY + 2 * _STEPS
    in_first = max(1, (work.steps_per_epoch - 1) // a_round)
    early = [_round(steps, ways) for _ in range(in_first)]
    for _ in range(work.steps_per_epoch - 1 - in_first * a_round):
        next(batches)
    late = [_round(steps, ways) for _ in range(int(os.environ[ROUNDS]))]
    both = [told(rounds, work.batch_size) for rounds in (early, late)]
    worker.send({"first": to_first, **{name: [one[name] for one in both] for name in both[0]}})


def told(rounds: list[Round], images: int) -> dict[str, float]:
    """Medians over rounds of turns that take as many steps each.

    What else a machine does comes and goes within seconds, and costs more than the loader: so ways are compared within
    a round.

    Args:
        rounds: what each way took in each.
        images: images of a step.

    Returns:
        `constant`, `held` and `loaded`, in images/s, and with `_cpu` behind it the processor time in ms an image;
        `by_constant` and `by_held`: how fast the loader's turn was beside the other of its round, by time, and
        `by_constant_cpu`, by processor time; `low` and `high`: the quartiles of `by_constant`; `waited`: the share of
        the time of the loader's turn without a batch.
    """
    counted = 2 * _STEPS * images
    found: dict[str, list[float]] = {
        "waited": [one[LOADED].waited / one[LOADED].seconds for one in rounds],
        "by_constant": [one[CONSTANT].seconds / one[LOADED].seconds for one in rounds],
        "by_held": [one[HELD].seconds / one[LOADED].seconds for one in rounds],
        "by_constant_cpu": [one[CONSTANT].used / one[LOADED].used for one in rounds],
    }
    for way in (CONSTANT, HELD, LOADED):
        found[way] = [counted / one[way].seconds for one in rounds]
        found[f"{way}_cpu"] = [1000 * one[way].used / counted for one in rounds]
    beside = found["by_constant"]
    low, _, high = quantiles(beside, n=4, method="inclusive") if len(beside) > 1 else beside * 3
    return {"low": low, "high": high, **{name: median(values) for name, values in found.items()}}


def _round(steps: Any, ways: dict[str, Iterator[Any]]) -> Round:
    """Every way's turns, as many steps of each: the loader's between the others'."""
    before = {way: _turn(steps, ways[way], _STEPS, idle=True) for way in (CONSTANT, HELD)}
    for batch in islice(ways[LOADED], _READY):
        _train(steps, batch)
    found = {LOADED: _turn(steps, ways[LOADED], 2 * _STEPS)}
    for way in (HELD, CONSTANT):
        found[way] = before[way] + _turn(steps, ways[way], _STEPS, idle=True)
    return found


def _turn(steps: Any, batches: Iterable[Any], count: int, *, idle: bool = False) -> Turn:
    """Some steps; `idle`: when the loader has nothing left to do, and a step that does not count was made."""
    batches = iter(batches)
    if idle:
        _wait_for_the_loader()
        _train(steps, next(batches))
    begun, used, waited = time.perf_counter(), time.process_time(), 0.0
    for _ in range(count):
        asked = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - asked
        _train(steps, batch)
    return Turn(time.perf_counter() - begun, time.process_time() - used, waited)


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
