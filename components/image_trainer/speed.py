"""The promised figures of training, measured on a transformed dataset: by backend, beside a batch in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shardwright.bench.figures import AT_LEAST, AT_MOST, Figure
from shardwright.components.image_trainer.placement import Placement
from shardwright.components.image_trainer.run_fn import spec_of
from shardwright.components.image_trainer.spec import SPEC_FILE, Recipe
from shardwright.components.image_trainer.speed_worker import ROUNDS
from shardwright.components.image_trainer.worker import run_worker
from shardwright.config import parse_config
from shardwright.dataset import Dataset

_WORKER = "shardwright.components.image_trainer.speed_worker"
# The first one is what trains on a CPU.
_BACKENDS = ("tensorflow", "jax")
# Of the other one only the speed is told.
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
    task = Dataset.open(dataset).manifest.task
    config = parse_config({"task": task, "input": {"images": "-"}}, base="/")
    recipe = replace(Recipe.from_config(config), batch_size=batch_size)
    found = {b: over_epochs(_measured(recipe, dataset, b), recipe.epochs) for b in _BACKENDS}
    ours, other = found.values()
    rates = ", ".join(
        f"{name} {one['loaded']:,.1f} images/s ({one['loaded_cpu']:,.1f} CPU ms an image)"
        for name, one in found.items()
    )
    fed = (
        f"half of the rounds {ours['low']:.2f} to {ours['high']:.2f}; {_both(ours, 'constant', 'images/s')} over "
        f"{recipe.epochs} epochs; the first batch after {ours['first']:.2f} s"
    )
    by, limit = ours["by_constant"], (AT_LEAST, 0.95)
    return [
        Figure("training: fed by the loader / by one batch", by, "x", *limit, fed),
        Figure("training: fed by the loader / by ten held", ours["by_held"], "x", note=_both(ours, "held", "images/s")),
        Figure("training: time that waits for images", 100 * ours["waited"], "%", AT_MOST, 5, recipe.model),
        Figure(
            "training: by one batch / fed, CPU",
            ours["by_constant_cpu"],
            "x",
            note=_both(ours, "constant_cpu", "CPU ms an image", "loaded_cpu"),
        ),
        Figure(f"training: {_BACKENDS[0]} / {_BACKENDS[1]}", ours["loaded"] / other["loaded"], "x", AT_LEAST, 1, rates),
    ]


def _both(found: Mapping[str, float], other: str, unit: str, ours: str = "loaded") -> str:
    return f"{found[ours]:,.4g} and {found[other]:,.4g} {unit}"


def over_epochs(found: Mapping[str, Any], epochs: int) -> dict[str, float]:
    """What a worker measured in the first epoch and in a later one, over all epochs of a training.

    Args:
        found: see `speed_worker.measure`; the ratios are those to a time that is the same in all epochs.
        epochs: how many there are.
    """
    taken = {}
    for name, value in found.items():
        if name in _RATES:
            # Images of every epoch are as many: their times add up, not their rates.
            taken[name] = epochs / (1 / value[0] + (epochs - 1) / value[1])
        elif name == "waited":
            # A share of the time of each.
            first, later = 1 / found["loaded"][0], (epochs - 1) / found["loaded"][1]
            taken[name] = (first * value[0] + later * value[1]) / (first + later)
        else:
            taken[name] = (value[0] + (epochs - 1) * value[1]) / epochs if isinstance(value, list) else value
    return taken


def _measured(recipe: Recipe, dataset: Path, backend: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        spec_of(recipe, dataset, place, place).write(place / SPEC_FILE)
        environment = {**Placement("cpu", backend).to_environment({}), ROUNDS: str(_ROUNDS[backend])}
        run_worker(_WORKER, place / SPEC_FILE, place / "speed.log", environment=environment, on_message=found.update)
    return found
