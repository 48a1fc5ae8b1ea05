"""The log of a training's steps: every N steps their loss, learning rate, gradient norm, speed and memory.

The values go to TensorBoard, to `steps.jsonl` of the training's folder, one JSON object a line, and to the terminal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from shardwright.components.image_trainer.training.in_flight import Finished

STEPS_FILE = "steps.jsonl"
# Above this share of the time without work for the devices, the training says what would help.
_STALLED = 0.1
# Steps after which the time of the whole training is known well enough.
_TIMED = 5


class StepLog:
    """Adds up steps and sends a message about every `every` of them.

    Args:
        every: steps of a message.
        images: images of a step.
        steps: steps of the whole training.
        rate: from the number of steps done to the learning rate of the next one.
        memory: returns the most bytes held so far.
        send: gets the messages: `step`, `steps`, `loss` (the mean), `learning_rate`, `gradient_norm` (the largest),
            `images_per_second`, `input` and `idle` (shares of the time, see `Finished`) and `memory` in bytes; and once
            the `expected` seconds of the whole training.
    """

    def __init__(
        self,
        every: int,
        images: int,
        steps: int,
        rate: Callable[[int], float],
        memory: Callable[[], int],
        send: Callable[[dict[str, Any]], None],
    ) -> None:
        self._every, self._images, self._steps = every, images, steps
        self._rate, self._memory, self._send = rate, memory, send
        self._done: list[Finished] = []
        self._begun = time.perf_counter()
        self._told = self._due = False

    def restart(self) -> None:
        """Forgets the time so far: what went before was no step, or was compiling one."""
        self._begun = time.perf_counter()
        self._done, self._due = [], False

    def add(self, step: int, finished: Finished) -> None:
        """Adds a step; `step` is the number of steps done with it."""
        self._done.append(finished)
        seconds = time.perf_counter() - self._begun
        if not self._told and len(self._done) >= _TIMED and finished.last and self._steps - step > _TIMED:
            self._told = True
            self._send({"expected": seconds / len(self._done) * (self._steps - step)})
        # Steps that are launched together have one time.
        self._due = self._due or step % self._every == 0
        if not (self._due and finished.last):
            return
        count = len(self._done)
        norms = [one.norm for one in self._done if one.norm is not None]
        self._send(
            {
                "step": step,
                "steps": self._steps,
                "loss": sum(one.loss for one in self._done) / count,
                "learning_rate": self._rate(step - 1),
                "gradient_norm": max(norms, default=math.nan),
                "images_per_second": count * self._images / max(seconds, 1e-9),
                "input": min(1.0, sum(one.waited for one in self._done) / max(seconds, 1e-9)),
                "idle": min(1.0, sum(one.idle for one in self._done) / max(seconds, 1e-9)),
                "memory": self._memory(),
            }
        )
        self.restart()


def stall_advice(waited: float, idle: float) -> str:
    """Returns what to change if the devices had no work for more than a tenth of the time; empty if they had.

    Args:
        waited: share of the time in which they waited for images.
        idle: share in which they had nothing to do, for any reason.
    """
    if waited > _STALLED:
        return (
            f"the devices waited for images {waited:.0%} of the time. Give the host more processor cores, store images "
            "at transform.size, or keep the dataset on a local disk; shardwright preflight measures the loader"
        )
    if idle > _STALLED:
        return (
            f"the devices had no step to compute {idle:.0%} of the time, though images were there: launching a step "
            "takes longer than computing it. Raise trainer.steps_per_launch, or trainer.batch_size with "
            "trainer.rate_rule: linear"
        )
    return ""
