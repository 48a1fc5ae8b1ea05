"""Figures of benchmarks: a measured value, its target, and whether it reaches the target."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

AT_LEAST, AT_MOST = ">=", "<="


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        name: what was measured.
        value: the figure; `None` if it could not be measured here.
        unit: `x` for a ratio, else `s`, `MB`, `1/s`, ….
        relation: `AT_LEAST` or `AT_MOST`; empty without a target.
        target: the promised value; `None` without one.
        note: what it was measured on, or why it was not.
    """

    name: str
    value: float | None
    unit: str
    relation: str = ""
    target: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """`ok` or `short`; empty without a target or a value."""
        if self.value is None or self.target is None:
            return ""
        reached = self.value >= self.target if self.relation == AT_LEAST else self.value <= self.target
        return "ok" if reached else "short"

    @property
    def row(self) -> tuple[str, str, str, str, str]:
        """Name, figure, target, verdict and note as text."""
        value = "-" if self.value is None else f"{self.value:,.4g} {self.unit}"
        target = "" if self.target is None else f"{self.relation} {self.target:,.4g} {self.unit}"
        return self.name, value, target, self.verdict, self.note


def seconds(work: Callable[[], object], repeats: int = 1, clock: Callable[[], float] = time.perf_counter) -> float:
    """Returns the time of a call: the least of several, since other work on the machine slows the rest.

    Args:
        work: the call.
        repeats: how often it is made.
        clock: `time.process_time` for work on one core, so that other work on the machine counts less.
    """
    best = float("inf")
    for _ in range(repeats):
        started = clock()
        work()
        best = min(best, clock() - started)
    return best
