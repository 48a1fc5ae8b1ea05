"""Rates of methods that take turns, each alone: whatever else the machine does meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import mean, median
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
        beside: images a second of the ceiling, the mean of its turns before and after each; empty without a ceiling.
        work_beside: its seconds of processor an image, likewise.
    """

    rounds: tuple[float, ...]
    work: tuple[float, ...]
    beside: tuple[float, ...] = ()
    work_beside: tuple[float, ...] = ()

    @property
    def images(self) -> float:
        """Images a second."""
        return median(self.rounds)

    @property
    def seconds(self) -> float:
        """Seconds of processor an image."""
        return median(self.work)

    @property
    def share(self) -> float:
        """This rate as a share of the ceiling: the median of the rounds."""
        return median(ours / most for ours, most in zip(self.rounds, self.beside, strict=True))

    @property
    def work_share(self) -> float:
        """The same by seconds of processor, which other work on the machine touches less."""
        return median(least / ours for ours, least in zip(self.work, self.work_beside, strict=True))

    @property
    def added(self) -> float:
        """Seconds of processor an image beyond the ceiling's: the median of the rounds."""
        return median(ours - least for ours, least in zip(self.work, self.work_beside, strict=True))

    def share_of(self, other: Rate) -> float:
        """This rate as a share of another: the median of the rounds, each by its neighbour in time."""
        return median(ours / theirs for ours, theirs in zip(self.rounds, other.rounds, strict=True))


def take_turns(
    methods: Mapping[str, Callable[[], Iterator[Any]]],
    batch: int,
    batches: int,
    *,
    ceiling: Callable[[], Iterator[Any]] | None = None,
    rounds: int = ROUNDS,
    ready: int = _READY,
    clock: Callable[[], float] = time.perf_counter,
    work_clock: Callable[[], float] = time.process_time,
) -> dict[str, Rate]:
    """Measures endless iterators of batches, once they run.

    Who takes batches does nothing else, so that whatever was made ready is gone before the clock starts, and nothing is
    ready when it stops: a larger buffer gains nothing.

    Args:
        methods: name -> what starts one.
        batch: images in a batch.
        batches: how many are taken in a turn.
        ceiling: starts what methods are held against; it has a turn before and after each of theirs.
        rounds: how often each has its turn.
        ready: batches that are taken before each turn and not counted.
        clock: seconds that pass.
        work_clock: seconds of processor that are spent.
    """

    def turn(start: Callable[[], Iterator[Any]]) -> tuple[float, float]:
        # Started anew each time: one that waits for its turn would go on reading ahead in that of another.
        iterator = start()
        for _ in range(ready):
            next(iterator)
        started, worked = clock(), work_clock()
        for _ in range(batches):
            next(iterator)
        return images / (clock() - started), (work_clock() - worked) / images

    images = batch * batches
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    beside: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for _ in range(rounds):
        before = turn(ceiling) if ceiling else None
        for name, start in methods.items():
            found[name].append(turn(start))
            if ceiling and before:
                after = turn(ceiling)
                beside[name].append((mean((before[0], after[0])), mean((before[1], after[1]))))
                before = after
    return {
        name: Rate(
            tuple(rate for rate, _ in turns),
            tuple(work for _, work in turns),
            tuple(rate for rate, _ in beside[name]),
            tuple(work for _, work in beside[name]),
        )
        for name, turns in found.items()
    }
