"""Computes the cost of millions of images for docs/deploy/costs.md, from measurements on two cores."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from shardwright.config.options import at_least
from shardwright.pipelines.cloud.costs import MEASURED, Measured

# Reads per second of one process with 64 concurrent requests of 30 ms; a worker of Dataflow has a process per core.
READS_OF_A_PROCESS = 270.0
# The transform writes six files to staging and copies two of them into the dataset.
WRITES_OF_A_SHARD = 8
_PIECE = 4 << 20


def cost_table(images: int, steps: Sequence[Measured] = MEASURED) -> str:
    """Returns core hours of each step, as a table of Markdown.

    Args:
        images: how many.
        steps: what is done to each of them.

    Raises:
        ConfigError: there are no images.
    """
    at_least("images", images, 1)
    rows = ["| step | images/s a core | core hours |", "|---|---|---|"]
    rows += [f"| {step.step} | {step.a_core:,.0f} | {step.core_hours(images):,.1f} |" for step in steps]
    return "\n".join(rows) + "\n"


def hours_to_read(images: int, processes: int) -> float:
    """Returns how long so many processes take to fetch so many images, one object each, from a bucket."""
    return images / (processes * READS_OF_A_PROCESS) / 3600


def processes_fed_by(reads_a_second: float) -> int:
    """Returns how many processes a bucket's request rate keeps busy; at least one."""
    return max(1, int(reads_a_second // READS_OF_A_PROCESS))


def reads_of_a_transform(cores: int, image_bytes: int, step: Measured = MEASURED[-1]) -> float:
    """Requests a second of a transform, which reads shards in pieces of 4 MB."""
    return cores * step.a_core * image_bytes / _PIECE


def shard_count(images: int, image_bytes: int, shard_bytes: int) -> int:
    """Returns how many shards so many images make."""
    return ceil(images * image_bytes / shard_bytes)
