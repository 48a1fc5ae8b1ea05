"""Histograms in fixed fine bins of whole numbers, and figures as text.

Values are counted one by one; a chart joins fine bins to a few wide ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]

_FINE = 960
# A power of two: whole numbers stay exact as floats. The part of one pixel of the largest image is many of them.
_PARTS = 2**50


@dataclass(frozen=True)
class Scale:
    """Maps values to bins between two ends.

    Attributes:
        low: the value at the lower end.
        high: the value at the upper end; larger values are in the last bin.
        log: equal steps are equal ratios.
    """

    low: float
    high: float
    log: bool = False

    def places(self, values: npt.NDArray[np.float64]) -> Counts:
        """Returns the fine bins of values. Only comparisons, so that every machine has the same bins."""
        return np.searchsorted(self._edges, values, side="right").astype(np.int64)

    @cached_property
    def _edges(self) -> npt.NDArray[np.float64]:
        return np.array([self.edge(fine) for fine in range(1, _FINE)])

    def edge(self, fine: float) -> float:
        """Returns the value at the lower end of a fine bin."""
        low, high = self._form(self.low), self._form(self.high)
        value = low + (high - low) * fine / _FINE
        return math.exp(value) if self.log else value

    def _form(self, value: float) -> float:
        return math.log(value) if self.log else value


@dataclass
class Histogram:
    """Values of one measure, by split.

    Attributes:
        name: what is measured.
        scale: of the bins.
        counts: split -> fine bins.
        sums: split -> sum of the values in whole parts of 1 / 2**50, which does not depend on their order.
        least: the smallest value, infinite before there is one.
        most: the largest.
    """

    name: str
    scale: Scale
    counts: dict[str, Counts] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    least: float = math.inf
    most: float = -math.inf

    def add(self, split: str, values: npt.ArrayLike) -> None:
        """Counts values."""
        array = np.asarray(values, np.float64)
        if not len(array):
            return
        if split not in self.counts:
            self.counts[split] = np.zeros(_FINE, np.int64)
            self.sums[split] = 0
        self.counts[split] += np.bincount(self.scale.places(array), minlength=_FINE)
        # Each is a whole number in a float; Python adds them up without a limit.
        self.sums[split] += sum(map(int, np.rint(array * _PARTS).tolist()))
        self.least, self.most = min(self.least, float(array.min())), max(self.most, float(array.max()))

    @property
    def total(self) -> int:
        """Number of values in all splits."""
        return sum(int(counts.sum()) for counts in self.counts.values())

    @property
    def all_counts(self) -> Counts:
        """Fine bins over all splits."""
        return sum(self.counts.values(), np.zeros(_FINE, np.int64))

    def mean(self, split: str | None = None) -> float:
        """Returns the mean of a split, or of all."""
        splits = list(self.counts) if split is None else [split]
        count = sum(int(self.counts[name].sum()) for name in splits)
        return sum(self.sums[name] for name in splits) / _PARTS / max(count, 1)

    def quantile(self, part: float) -> float:
        """Returns the value below which that part of all values is, to the precision of a fine bin."""
        reached = np.cumsum(self.all_counts)
        if not reached[-1]:
            return math.nan
        fine = int(np.searchsorted(reached, part * int(reached[-1]), side="left"))
        return min(max(self.scale.edge(fine + 0.5), self.least), self.most)

    def bins(self, most: int = 32) -> tuple[list[float], dict[str, list[int]]]:
        """Joins fine bins to at most `most` of a chart.

        Returns:
            The edges, one more than there are bins; split -> counts.
        """
        used = np.flatnonzero(self.all_counts)
        if not len(used):
            return [], {}
        width = max(1, math.ceil((int(used[-1]) + 1 - int(used[0])) / most))
        first = int(used[0]) // width * width
        count = -(-(int(used[-1]) + 1 - first) // width)
        edges = [self.scale.edge(min(_FINE, first + i * width)) for i in range(count + 1)]
        joined = {}
        for split, counts in sorted(self.counts.items()):
            padded = np.zeros(count * width, np.int64)
            part = counts[first : first + count * width]
            padded[: len(part)] = part
            joined[split] = [int(n) for n in padded.reshape(count, width).sum(axis=1)]
        return edges, joined


def number(value: float) -> str:
    """Formats a number: three significant digits, thousands separated."""
    if not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", "\u202f")
    # From 999.5 on, three digits would be written with an exponent.
    if abs(value) >= 999.5:
        return f"{round(value):,}".replace(",", "\u202f")
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1e}"


def plain_number(value: float) -> str:
    """Formats a number for a terminal: four digits, without an exponent for large numbers of pixels or bytes."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(value: float) -> str:
    """Formats a share as a percentage."""
    if value <= 0:
        return "0 %"
    return f"{100 * value:.0f} %" if value >= 0.0995 else f"{100 * value:.2g} %" if value >= 0.0001 else "< 0.01 %"


def size_text(size: float) -> str:
    """Formats a number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if round(size) < 1000 or unit == "GB":
            return f"{number(size) if unit == 'bytes' or size >= 100 else f'{size:.1f}'} {unit}"
        size /= 1000
    return ""


Show = Callable[[float], str]


def number_of(count: int, one: str, several: str = "") -> str:
    """Returns a number of things in words, as `number` formats it: `1 shard`, `2 shards`."""
    return f"{number(count)} {one if count == 1 else several or one + 's'}"
