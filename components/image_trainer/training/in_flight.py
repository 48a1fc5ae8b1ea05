"""Training steps that were started and are not finished: while a device works on one, the next one is waiting for it.

A thread waits for the losses and notes when each was there. So the loop knows how long a device had nothing to do
because a batch was missing, on every backend; and for how long because Python had not launched the next step.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardwright.components.image_trainer.training.learner import Backend

# Steps that wait on the devices, behind the one that they work on.
WAITING = 1


@dataclass(frozen=True)
class Finished:
    """A finished step.

    Attributes:
        loss: its loss.
        norm: the norm of its gradient; `None` if the backend does not say.
        positions: the positions of its images in the split.
        waited: seconds in which the devices had nothing to do because the next batch was not there.
        idle: seconds in which they had nothing to do after it, for any reason.
        last: whether it is the last of the steps that were launched together; the first has their times.
    """

    loss: float
    norm: float | None
    positions: Any
    waited: float
    idle: float
    last: bool = True


@dataclass(frozen=True)
class _Started:
    positions: Any
    result: Future[tuple[Any, float]]
    begun: float
    launched: float
    fetched: float


def launched_steps(positions: Any) -> int:
    """Returns the number of steps that are launched together, by the positions of their images: [B] or [N, B]."""
    return len(positions) if getattr(positions, "ndim", 1) == 2 else 1


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
        return sum(launched_steps(one.positions) for one in self._started)

    def start(self, batch: tuple[Any, ...], batches: Iterator[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Starts the step of a batch, or those of several, and returns what comes next, fetched while the devices work.

        Args:
            batch: images, targets, positions in the split; of several batches, stacked along a first axis.
            batches: what comes after it.
        """
        images, targets, positions = batch
        begun = time.perf_counter()
        result = self._steps.train(images, targets, launched_steps(positions) > 1)
        launched = time.perf_counter()
        # An accelerator begins when the step has been launched; on a CPU, launching it may be computing it.
        begun = launched if self._steps.device != "cpu" else begun

        def read() -> tuple[Any, float]:
            values = np.asarray(result, np.float64).reshape(launched_steps(positions), -1)
            return values, time.perf_counter()

        reading = self._reader.submit(read)
        following = next(batches)
        self._started.append(_Started(positions, reading, begun, launched, time.perf_counter()))
        return following

    def finished(self, left: int = 0) -> Iterator[Finished]:
        """Waits for steps and yields them, until `left` of them are in flight."""
        while len(self._started) > left:
            step = self._started.popleft()
            try:
                values, there = step.result.result()
            except BaseException:
                # The steps after it began with what it left.
                self._started.clear()
                raise
            waited = max(0.0, step.fetched - max(step.launched, there))
            next_begun = self._started[0].begun if self._started else 0.0
            idle = max(waited, next_begun - there)
            for number, (loss, *norms) in enumerate(values.tolist(), 1):
                positions = step.positions if len(values) == 1 else step.positions[number - 1]
                yield Finished(loss, norms[0] if norms else None, positions, waited, idle, number == len(values))
                waited = idle = 0.0

    def close(self) -> None:
        """Ends the thread; what is in flight is forgotten."""
        self._started.clear()
        self._reader.shutdown(wait=False, cancel_futures=True)
