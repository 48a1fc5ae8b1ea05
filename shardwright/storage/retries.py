"""Asking again: with pauses that grow and differ, a bounded number of times."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from shardwright.errors import StorageError
from shardwright.storage.objects import Transient

_Out = TypeVar("_Out")


@dataclass(frozen=True)
class Retries:
    """How often and after which pauses a call is made again.

    The n-th pause lies between half of and the whole of `first_pause * 2**n`, at most `longest_pause`: many readers
    that were turned away together do not come back together.

    Attributes:
        attempts: calls in all.
        first_pause: seconds.
        longest_pause: seconds.
        sleep: waits for seconds.
        chance: gives a number from 0 to 1.
    """

    attempts: int = 7
    first_pause: float = 0.25
    longest_pause: float = 8.0
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def call(self, what: str, function: Callable[[], _Out]) -> _Out:
        """Calls a function until it does not raise `Transient`.

        Args:
            what: the object, for the message.
            function: does one attempt.

        Raises:
            StorageError: the last attempt failed too.
        """
        for attempt in range(self.attempts - 1):
            try:
                return function()
            except Transient:
                pause = min(self.longest_pause, self.first_pause * 2**attempt)
                self.sleep(pause * (0.5 + 0.5 * self.chance()))
        try:
            return function()
        except Transient as error:
            raise StorageError(
                f"{what}: the store did not answer as it should in {self.attempts} attempts; the last one: {error}. "
                "What is finished is kept: run it again when the store is well."
            ) from None
