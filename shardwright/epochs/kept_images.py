"""Which decoded images the Trainer keeps in memory between epochs, by arithmetic: `preflight` counts them, too."""

from __future__ import annotations

import math
from collections.abc import Sequence

# What is kept takes no more, whatever memory a machine has.
MOST = 1 << 30
# Nor more than this part of what a cache may take, so that it is not refused a moment later.
_OF_ROOM = 0.5
_CLASSES_A_BYTE = 8
_FLOAT = 4


def decoded_bytes(size: tuple[int, int], classes: int, words: int = 0) -> int:
    """Bytes of an image as the loader keeps it: pixels, masks as bits (one for pixels that are ignored), words.

    Args:
        size: height and width.
        classes: how many there are.
        words: of all vocabularies that are read.
    """
    return size[0] * size[1] * (3 - (-(classes + 1) // _CLASSES_A_BYTE)) + _FLOAT * words


def kept_bytes(
    shards: Sequence[int], each: int, *, order: str, hosts: int, remote: bool, room: float = math.inf
) -> int:
    """Bytes of the train split that stay in memory from the first epoch on; 0 where none do.

    They do where it makes no difference to what is learned, whatever memory this machine has: a cache gives several
    shards, or several pieces of one (those that hosts share, or that are read from a bucket), in the order of the first
    epoch again, and one shard has no other.

    Args:
        shards: records of every shard of the split.
        each: see `decoded_bytes`.
        order: `loader.order`.
        hosts: machines that train together.
        remote: whether the dataset lies on an object store.
        room: bytes that a cache may take on such a machine.
    """
    filled = [records for records in shards if records]
    if order == "exact" or hosts > 1 or remote or len(filled) > 1:
        return 0
    needed = sum(filled) * each
    return needed if needed <= min(MOST, _OF_ROOM * room) else 0
