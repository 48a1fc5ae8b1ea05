"""Training steps that were started and are not finished: while a device works on one, the next one is waiting for it.

A thread waits for the losses and notes when each was there. So the loop knows how long a device had nothing to do
because a batch was missing, on every backend.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from shardwright.components.image_trainer.training.steps import Backend

# Steps that wait on the devices, behind the one that they work on.
WAITING = 1


@dataclass(frozen=True)
class Finished:
    """A finished step.

    Attributes:
        loss: its loss.
        positions: the positions of its images in the split.
        waited: seconds in which the devices had nothing to do because the next batch was not there.
    """

    loss: float
    positions: Any
    waited: float


@dataclass(frozen=True)
class _Started:
    positions: Any
    loss: Future[tuple[float, float]]
    launched: float
    fetched: float


class StepsInFlight:
    """Starts steps, and returns them as they finish, in their order.

    Args:
        steps: the model in training.
    """

    def __init__(self, steps: Backend) -> None:
        self._steps = steps
        self._started: deque[_Started] = deque()
        self._reader = ThreadPoolExecutor(1)

    def __len__(self) -> int:
        return len(self._started)

    def start(self, batch: tuple[Any, ...], batches: Iterator[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Starts a step and returns the next batch, which is fetched while the devices work.

        Args:
            batch: images, targets, positions in the split.
            batches: the batches after it.
        """
        images, targets, positions = batch
        result = self._steps.train(images, targets)
        launched = time.perf_counter()
        loss = self._reader.submit(_read, result)
        following = next(batches)
        self._started.append(_Started(positions, loss, launched, time.perf_counter()))
        return following

    def finished(self, left: int = 0) -> Iterator[Finished]:
        """Waits for steps and yields them, until `left` of them are in flight."""
        while len(self._started) > left:
            step = self._started.popleft()
            try:
                loss, there = step.loss.result()
            except BaseException:
                # The steps after it began with what it left.
                self._started.clear()
                raise
            yield Finished(loss, step.positions, max(0.0, step.fetched - max(step.launched, there)))

    def close(self) -> None:
        """Ends the thread; what is in flight is forgotten."""
        self._started.clear()
        self._reader.shutdown(wait=False, cancel_futures=True)


def _read(result: Any) -> tuple[float, float]:
    """Returns a loss, and the time at which it was there."""
    return float(result), time.perf_counter()
