"""Rates of methods that take turns, each alone: whatever else the machine does meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

ROUNDS = 5
# Batches before the clock starts: a shuffle buffer is filled, and TensorFlow tunes itself.
_READY = 40


@dataclass(frozen=True)
class Rate:
    """How fast a method is, by the median of rounds.

    Attributes:
        rounds: images a second in each round.
        work: seconds of processor an image, of all threads, in each round.
    """

    rounds: tuple[float, ...]
    work: tuple[float, ...]

    @property
    def images(self) -> float:
        """Images a second."""
        return median(self.rounds)

    @property
    def seconds(self) -> float:
        """Seconds of processor an image."""
        return median(self.work)

    def share_of(self, ceiling: Rate) -> float:
        """This rate as a share of another: the median of the rounds, each by its neighbour in time."""
        return median(ours / theirs for ours, theirs in zip(self.rounds, ceiling.rounds, strict=True))


def take_turns(
    methods: Mapping[str, Callable[[], Iterator[Any]]],
    batch: int,
    batches: int,
    *,
    rounds: int = ROUNDS,
    ready: int = _READY,
    clock: Callable[[], float] = time.perf_counter,
    work_clock: Callable[[], float] = time.process_time,
) -> dict[str, Rate]:
    """Measures endless iterators of batches, once they run.

    Args:
        methods: name -> what starts one.
        batch: images in a batch.
        batches: how many are taken in a round.
        rounds: how often each has its turn.
        ready: batches that are taken before each turn and not counted.
        clock: seconds that pass.
        work_clock: seconds of processor that are spent.
    """
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, start in methods.items():
            # Started anew each time: one that waits for its turn would go on reading ahead in that of another.
            iterator = start()
            for _ in range(ready):
                next(iterator)
            started, worked = clock(), work_clock()
            for _ in range(batches):
                next(iterator)
            found[name].append((clock() - started, work_clock() - worked))
            del iterator
    images = batch * batches
    return {
        name: Rate(tuple(images / taken for taken, _ in turns), tuple(worked / images for _, worked in turns))
        for name, turns in found.items()
    }
