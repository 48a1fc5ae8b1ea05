"""Which images a batch holds, for messages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from shardwright.dataset import Dataset
from shardwright.escaping import escape

_SHOWN = 8


def keys_at(dataset: str, split: str, positions: Sequence[int]) -> list[str]:
    """Keys of the images at some positions of a split, in the order of the positions."""
    wanted = set(positions)
    numbered = enumerate(islice(Dataset.open(dataset).keys(split), max(wanted, default=-1) + 1))
    keys = {position: key for position, key in numbered if position in wanted}
    return [keys[position] for position in positions]


def shown(keys: Sequence[str]) -> str:
    """The first keys, and how many more there are."""
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(escape(key) for key in keys[:_SHOWN]) + more
