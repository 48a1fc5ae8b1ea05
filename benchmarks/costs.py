"""Computes the cost of millions of images for docs/deploy/costs.md, from measurements on two cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from shardwright.config.parsing import at_least

_SECONDS_AN_HOUR = 3600


@dataclass(frozen=True)
class Measured:
    """A step, as a benchmark measured it.

    Attributes:
        step: what is done.
        images_a_second: on all cores together.
        page: the page of docs/ that has the figure and the conditions of the measurement.
        cores: how many there were.
    """

    step: str
    images_a_second: float
    page: str
    cores: int = 2

    @property
    def a_core(self) -> float:
        """Images per second and core."""
        return self.images_a_second / self.cores

    def core_hours(self, images: int) -> float:
        """Returns the hours of one core for a number of images."""
        return images / self.a_core / _SECONDS_AN_HOUR


# Photographs of 1400x2100 and 673 KB; `python -m benchmarks ingest` and `python -m benchmarks transform` measure yours.
MEASURED = (
    Measured("ingest, `images.verify: header`", 1214, "trust/benchmarks"),
    Measured("ingest with four masks an image", 752, "trust/benchmarks"),
    Measured("ingest, `images.verify: full`", 251, "trust/benchmarks"),
    Measured("transform to 350x525, four masks an image", 232, "trust/benchmarks"),
)
# Reads per second of one process with 64 concurrent requests of 30 ms; a worker of Dataflow has a process per core.
READS_OF_A_PROCESS = 270.0
# The transform writes six files to staging and copies two of them into the dataset.
WRITES_OF_A_SHARD = 8
_PIECE = 4 << 20


def cost_table(images: int, steps: Sequence[Measured] = MEASURED) -> str:
    """Core hours of each step, as a table of Markdown.

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
    """How long so many processes take to fetch so many images, one object each, from a bucket."""
    return images / (processes * READS_OF_A_PROCESS) / _SECONDS_AN_HOUR


def processes_fed_by(reads_a_second: float) -> int:
    """How many processes a bucket's request rate keeps busy; at least one."""
    return max(1, int(reads_a_second // READS_OF_A_PROCESS))


def reads_of_a_transform(cores: int, image_bytes: int, step: Measured = MEASURED[-1]) -> float:
    """Requests a second of a transform, which reads shards in pieces of 4 MB."""
    return cores * step.a_core * image_bytes / _PIECE


def shard_count(images: int, image_bytes: int, shard_bytes: int) -> int:
    """How many shards so many images make."""
    return ceil(images * image_bytes / shard_bytes)
