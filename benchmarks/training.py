"""Measures how fast a training is on each backend: with the loader, with batches in memory, and with a single batch.

`python -m benchmarks train DATASET` runs it, and starts a worker for each backend. On a machine with a GPU or a TPU, it
measures the backend that trains there:

    KERAS_BACKEND=jax SHARDWRIGHT_BENCH_ROUNDS=5 python -m benchmarks.training --spec FILE
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice, repeat
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from benchmarks.figures import AT_LEAST, AT_MOST, Figure
from shardwright.components.image_trainer import worker
from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.devices.placement import BACKEND, Machine, Placement, choose_placement
from shardwright.components.image_trainer.run_fn import spec_of
from shardwright.components.image_trainer.spec import SPEC_FILE, TrainRecipe, TrainSpec
from shardwright.components.image_trainer.worker import run_worker
from shardwright.config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError

# The environment variable with the number of rounds; in a round all ways take turns.
ROUNDS = "SHARDWRIGHT_BENCH_ROUNDS"
# Steps of a turn. A round has two turns of each other way, one before the loader's and one after it, so that a machine
# that becomes slower or faster favours none.
_STEPS = 5
# Batches that are held in memory and given in turns.
_HELD = 10
# Batches that may be ready when the loader's turn begins: these steps do not count.
_READY = 8
# The loader has nothing left to do when the process takes no more than this share of a core.
_IDLE, _LOOK_EVERY, _LOOKS = 0.1, 0.05, 100

# Passes over the held batches, of which the quickest counts.
_PASSES = 5

CONSTANT, HELD, LOADED = "constant", "held", "loaded"


@dataclass(frozen=True)
class Turn:
    """The time of some steps.

    Attributes:
        seconds: wall time.
        used: processor time.
        waited: wall time without a batch.
    """

    seconds: float
    used: float
    waited: float

    def __add__(self, other: Turn) -> Turn:
        return Turn(self.seconds + other.seconds, self.used + other.used, self.waited + other.waited)


Round = dict[str, Turn]


def measure(spec: TrainSpec) -> None:
    """Measures in a worker and sends the result.

    `first` is the seconds to the first batch, `together` the steps of a launch, `evaluation` and `forward` are images/s
    of an evaluation and of a forward pass whose mean goes to the host; the rest is from `medians`, as [in the first
    epoch, in later ones].
    """
    from shardwright.components.image_trainer.training.device_input import DeviceInput
    from shardwright.components.image_trainer.training.evaluate_split import Counting
    from shardwright.components.image_trainer.training.learner import Learner
    from shardwright.components.image_trainer.training.loop import steps_per_launch
    from shardwright.components.image_trainer.training.losses import loss_of
    from shardwright.components.image_trainer.training.optimizers import build_optimizer
    from shardwright.components.image_trainer.training.train import build_steps, built_model, connect, work_of

    placement, here = Placement(_chosen().accelerator, os.environ[BACKEND]), HostPlace()
    devices = connect(placement, here)
    model = built_model(spec, spec.recipe.trainer.precision)
    work = work_of(spec, here, devices, model)
    optimizer = build_optimizer(spec.recipe.trainer, 1000, model=model)
    parts = (model, loss_of(spec), optimizer, DeviceInput.of(spec))
    steps = build_steps(placement, here, Learner(*parts, Counting.of(spec)))
    together = steps_per_launch(work, steps)
    begun = time.perf_counter()
    next(steps.batches(work.data(0)))
    to_first = time.perf_counter() - begun
    plain = list(islice(steps.batches(work.data(0)), _HELD))
    held = list(islice(steps.batches(work.data(0), repeat(together)), _HELD))
    # Begun before the first step, as in a training.
    batches = steps.batches(work.data(0), repeat(together))
    _train(steps, next(batches))
    ways = {CONSTANT: cycle(held[:1]), HELD: cycle(held), LOADED: batches}
    a_round, launches = _READY + 2 * _STEPS + 1, work.steps_per_epoch // together
    in_first = max(1, (launches - 1) // a_round)
    early = [_round(steps, ways) for _ in range(in_first)]
    for _ in range(launches - 1 - in_first * a_round):
        next(batches)
    late = [_round(steps, ways) for _ in range(int(os.environ[ROUNDS]))]
    both = [medians(rounds, work.batch_size * together) for rounds in (early, late)]
    passes = {
        "evaluation": _evaluated(steps, plain, work.batch_size),
        "forward": _evaluated(build_steps(placement, here, _forward(*parts)), plain, work.batch_size),
    }
    speeds = {name: [turn[name] for turn in both] for name in both[0]}
    worker.send({"first": to_first, "together": together, **passes, **speeds})


def _forward(model: Any, loss: Any, optimizer: Any, prepare: Any) -> Any:
    """Returns a learner whose evaluation is a forward pass."""
    from keras import ops

    from shardwright.components.image_trainer.training.learner import Learner

    class Forward(Learner):
        def evaluation_of(self, outputs: Any, targets: Any, counted: Any) -> tuple[Any, Any]:
            answers = ops.reshape(self.logit_model.probabilities(outputs), (len(counted), -1))
            return ops.mean(answers, axis=-1), ops.mean(answers)

    return Forward(model, loss, optimizer, prepare, lambda *values: values)


def _evaluated(steps: Any, batches: list[tuple[Any, ...]], images: int) -> float:
    """Returns images/s of passes over held batches, each waited for when the next one has been started."""
    counted, seconds = np.ones(images, bool), []
    for _ in range(_PASSES + 1):
        begun, waiting = time.perf_counter(), None
        for batch in batches:
            started = steps.evaluate(batch[0], batch[1], counted)
            if waiting:
                waiting()
            waiting = started
        if waiting:
            waiting()
        seconds.append(time.perf_counter() - begun)
    # The first one compiled.
    return len(batches) * images / min(seconds[1:])


def medians(rounds: list[Round], images: int) -> dict[str, float]:
    """Returns medians over rounds, whose turns have the same number of steps.

    Other work on the machine lasts for seconds and costs more than the loader, so ways are compared within a round.

    Args:
        rounds: the time of each way in each round.
        images: images per step.

    Returns:
        `constant`, `held` and `loaded`, in images/s; with the suffix `_cpu`, the processor time in ms per image;
        `by_constant` and `by_held`: speed of the loader's turn relative to the other turn of its round, by time, and
        `by_constant_cpu`, by processor time; `low` and `high`: the quartiles of `by_constant`; `waited`: the share of
        the time of the loader's turn without a batch.
    """
    counted = 2 * _STEPS * images
    figures: dict[str, list[float]] = {
        "waited": [turn[LOADED].waited / turn[LOADED].seconds for turn in rounds],
        "by_constant": [turn[CONSTANT].seconds / turn[LOADED].seconds for turn in rounds],
        "by_held": [turn[HELD].seconds / turn[LOADED].seconds for turn in rounds],
        "by_constant_cpu": [turn[CONSTANT].used / turn[LOADED].used for turn in rounds],
    }
    for way in (CONSTANT, HELD, LOADED):
        figures[way] = [counted / turn[way].seconds for turn in rounds]
        figures[f"{way}_cpu"] = [1000 * turn[way].used / counted for turn in rounds]
    relative = figures["by_constant"]
    low, _, high = quantiles(relative, n=4, method="inclusive") if len(relative) > 1 else relative * 3
    return {"low": low, "high": high, **{name: median(values) for name, values in figures.items()}}


def _round(steps: Any, ways: dict[str, Iterator[Any]]) -> Round:
    """Runs every way's turns with the same number of steps, the loader's between the others'."""
    before = {way: _turn(steps, ways[way], _STEPS, idle=True) for way in (CONSTANT, HELD)}
    for batch in islice(ways[LOADED], _READY):
        _train(steps, batch)
    turns = {LOADED: _turn(steps, ways[LOADED], 2 * _STEPS)}
    for way in (HELD, CONSTANT):
        turns[way] = before[way] + _turn(steps, ways[way], _STEPS, idle=True)
    return turns


def _turn(steps: Any, batches: Iterable[Any], count: int, *, idle: bool = False) -> Turn:
    """Times some steps, as a training does them; with `idle`, after the loader has become idle and one other step."""
    from shardwright.components.image_trainer.training.in_flight import WAITING, StepsInFlight

    batches = iter(batches)
    if idle:
        _wait_for_the_loader()
        _train(steps, next(batches))
    in_flight = StepsInFlight(steps)
    batch = next(batches)
    begun, used, waited = time.perf_counter(), time.process_time(), 0.0
    for number in range(count):
        batch = in_flight.start(batch, batches)
        waited += sum(step.waited for step in in_flight.finished(WAITING if number < count - 1 else 0))
    taken = Turn(time.perf_counter() - begun, time.process_time() - used, waited)
    in_flight.close()
    return taken


def _wait_for_the_loader() -> None:
    for _ in range(_LOOKS):
        used = time.process_time()
        time.sleep(_LOOK_EVERY)
        if time.process_time() - used < _IDLE * _LOOK_EVERY:
            return


def _train(steps: Any, batch: tuple[Any, ...]) -> None:
    np.asarray(steps.train(batch[0], batch[1], np.ndim(batch[2]) == 2))


def _chosen() -> Placement:
    """Returns what a training on this machine would use."""
    return choose_placement("auto", 1, Machine.look(os.environ))


# The module whose `measure` a separate process runs.
_WORKER = "benchmarks.training"
# The first one is what trains on a CPU.
_BACKENDS = ("tensorflow", "jax")
# Only the speed of the second backend is reported.
_ROUNDS = {"tensorflow": 16, "jax": 4}
# Measures of which more is better, and those by how much a loader's turn is slower than another.
_RATES = ("constant", "held", "loaded", "by_constant", "by_held", "by_constant_cpu", "low", "high")


def training_figures(dataset: Path, batch_size: int) -> list[Figure]:
    """Trains with the default settings for some steps, on each backend.

    Args:
        dataset: folder of a dataset of ImageTransform.
        batch_size: images in a batch.

    Raises:
        DatasetError: there is no such dataset, or nothing to train on.
        ShardwrightError: a worker failed.
    """
    manifest = ImageDataset.open(dataset).manifest
    if manifest.kind != "transform":
        raise UsageError(f"{dataset}: its images are not of one size. Give what `shardwright transform` made.")
    task = manifest.task
    config = parse_config({"task": task, "input": {"images": "-"}, "trainer": {"batch_size": batch_size}}, base="/")
    recipe = TrainRecipe.from_config(config)
    chosen = _chosen()
    backends = _BACKENDS if chosen.accelerator == "cpu" else (chosen.backend,)
    epochs = recipe.trainer.epochs_of(ImageDataset.open(dataset).num_records("train"))
    rates_of = {b: over_epochs(_measured(recipe, dataset, chosen, b, _ROUNDS[b]), epochs) for b in backends}
    ours, *others = rates_of.values()
    rates = ", ".join(
        f"{name} {speed['loaded']:,.1f} images/s ({speed['loaded_cpu']:,.1f} CPU ms an image)"
        for name, speed in rates_of.items()
    )
    fed = (
        f"half of the rounds {ours['low']:.2f} to {ours['high']:.2f}; {_both(ours, 'constant', 'images/s')} over "
        f"{epochs} epochs; the first batch after {ours['first']:.2f} s"
    )
    by, limit = ours["by_constant"], (AT_LEAST, 0.95)
    return [
        Figure("training: fed by the loader / by one batch", by, "x", *limit, fed),
        Figure("training: fed by the loader / by ten held", ours["by_held"], "x", note=_both(ours, "held", "images/s")),
        Figure("training: time that waits for images", 100 * ours["waited"], "%", AT_MOST, 5, recipe.trainer.model),
        Figure(
            "training: by one batch / fed, CPU",
            ours["by_constant_cpu"],
            "x",
            note=_both(ours, "constant_cpu", "CPU ms an image", "loaded_cpu"),
        ),
        *(
            Figure(f"training: {' / '.join(rates_of)}", ours["loaded"] / speed["loaded"], "x", AT_LEAST, 1, rates)
            for speed in others
        ),
    ]


def _both(figures: Mapping[str, float], other: str, unit: str, ours: str = "loaded") -> str:
    return f"{figures[ours]:,.4g} and {figures[other]:,.4g} {unit}"


def over_epochs(measured: Mapping[str, Any], epochs: int) -> dict[str, float]:
    """Combines a worker's results of the first epoch and of a later one over all epochs of a training.

    Args:
        measured: see `measure`; ratios are relative to a time that is the same in all epochs.
        epochs: the number of epochs.
    """
    taken = {}
    for name, value in measured.items():
        if name in _RATES:
            # Every epoch has the same number of images: their times add up, not their rates.
            taken[name] = epochs / (1 / value[0] + (epochs - 1) / value[1])
        elif name == "waited":
            # A share of the time of each.
            first, later = 1 / measured["loaded"][0], (epochs - 1) / measured["loaded"][1]
            taken[name] = (first * value[0] + later * value[1]) / (first + later)
        else:
            taken[name] = (value[0] + (epochs - 1) * value[1]) / epochs if isinstance(value, list) else value
    return taken


def measured_on(dataset: Path, trainer: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """Returns what `measure` sends, on the accelerator of this machine.

    Args:
        dataset: folder of a dataset of ImageTransform.
        trainer: options of `trainer`.
        rounds: of which the median counts.
    """
    task = ImageDataset.open(dataset).manifest.task
    config = parse_config({"task": task, "input": {"images": "-"}, "trainer": dict(trainer)}, base="/")
    chosen = _chosen()
    return _measured(TrainRecipe.from_config(config), dataset, chosen, chosen.backend, rounds)


def _measured(recipe: TrainRecipe, dataset: Path, chosen: Placement, backend: str, rounds: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        spec_of(recipe, dataset, place, place).write(place / SPEC_FILE)
        placement = Placement(chosen.accelerator, backend)
        environment = {**placement.to_environment(os.environ), ROUNDS: str(rounds)}
        run_worker(
            (_WORKER,), place / SPEC_FILE, place / "speed.log", environment=environment, on_message=figures.update
        )
    return figures


if __name__ == "__main__":
    worker.main(measure)
