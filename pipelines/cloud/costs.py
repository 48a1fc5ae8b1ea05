"""`shardwright estimate`: what a run of a compiled pipeline would cost, from measured rates and prices of the user.

A rate is in images per second of one core, or, for the training, of all its machines together. The rates here were
measured with photographs of 673 KB. The time for other images follows their bytes, which decoding and hashing take.
The price table may have rates that were measured elsewhere. Prices change and differ by contract: there are none here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import ClassVar

import yaml

from shardwright.config import Config
from shardwright.config.images import FULL
from shardwright.config.options import at_least
from shardwright.config.parse_values import parse_section
from shardwright.config.yaml_text import parse_yaml
from shardwright.errors import ConfigError, UsageError
from shardwright.pipelines.runs.disk_space import estimate_space
from shardwright.running.progress import counted

_SECONDS_AN_HOUR = 3600
# The photographs that `MEASURED` was measured with.
_IMAGE_BYTES = 673_000
# Bytes of a JPEG of the transform for each of its pixels: 40 KB at 350x525.
_JPEG_BYTES_A_PIXEL = 40_000 / (350 * 525)
_GIGABYTE = 10**9
_REQUESTS = "requests"


@dataclass(frozen=True)
class Measured:
    """A step, as a benchmark measured it; docs/deploy/costs.md has the conditions.

    Attributes:
        step: what is done.
        images_a_second: on all cores together.
        cores: how many there were.
    """

    step: str
    images_a_second: float
    cores: int = 2

    @property
    def a_core(self) -> float:
        """Images per second and core."""
        return self.images_a_second / self.cores

    def core_hours(self, images: float) -> float:
        """Returns the hours of one core for a number of images."""
        return images / self.a_core / _SECONDS_AN_HOUR


# Photographs of 1400x2100 and 673 KB; `python -m benchmarks ingest` and `python -m benchmarks transform` measure yours.
INGEST, INGEST_MASKS, INGEST_FULL, TRANSFORM = MEASURED = (
    Measured("ingest, `images.verify: header`", 1214),
    Measured("ingest with four masks an image", 752),
    Measured("ingest, `images.verify: full`", 251),
    Measured("transform to 350x525, four masks an image", 232),
)


@dataclass(frozen=True)
class Rates:
    """Rates that were measured elsewhere, in images per second.

    Attributes:
        ingest: of one core.
        transform: of one core.
        train: of all machines of the training together.
    """

    ingest: float | None = None
    transform: float | None = None
    train: float | None = None


@dataclass(frozen=True)
class PriceTable:
    """Prices, and rates that replace the measured ones. A part whose price is missing is shown as unknown.

    Attributes:
        currency: for the output.
        core_hour: a core for an hour, with its memory.
        machine_hours: a machine type or kind of GPU, for an hour.
        storage_gb_month: a gigabyte for a month.
        reads_1000: a thousand reads of objects.
        writes_1000: a thousand writes of objects.
        rates: see `Rates`.
    """

    PATH: ClassVar[str] = "prices"

    core_hour: float
    currency: str = "USD"
    machine_hours: Mapping[str, float] = field(default_factory=dict)
    storage_gb_month: float | None = None
    reads_1000: float | None = None
    writes_1000: float | None = None
    rates: Rates = field(default_factory=Rates)

    def __post_init__(self) -> None:
        for name in ("core_hour", "storage_gb_month", "reads_1000", "writes_1000"):
            price = getattr(self, name)
            if price is not None:
                at_least(name, price, 0)
        for name, price in self.machine_hours.items():
            at_least(f"machine_hours.{name}", price, 0)
        for name in ("ingest", "transform", "train"):
            rate = getattr(self.rates, name)
            if rate is not None:
                at_least(f"rates.{name}", rate, 1e-3)


@dataclass(frozen=True)
class Row:
    """A part of the cost.

    Attributes:
        step: `ingest`, `transform`, `train`, `storage` or `requests`.
        amount: how much is used; `None` if that is unknown.
        unit: of the amount: `core hours`, `machine hours`, `GB months`, `requests`.
        price: in the currency of the table; `None` if it is unknown.
        basis: the rate and the price that it follows from.
    """

    step: str
    amount: float | None
    unit: str
    price: float | None
    basis: str


@dataclass(frozen=True)
class Estimate:
    """The cost of a run in which nothing is cached.

    Attributes:
        images: number of images.
        bytes: their bytes.
        currency: of the prices.
        rows: the parts.
    """

    images: int
    bytes: int
    currency: str
    rows: tuple[Row, ...]

    @property
    def total(self) -> float:
        """The sum of the parts whose price is known, without storage, which costs that each month."""
        return sum(row.price or 0.0 for row in self.rows if row.step != "storage")

    @property
    def unknown(self) -> tuple[str, ...]:
        """The steps whose price is unknown."""
        return tuple(row.step for row in self.rows if row.price is None)


def read_prices(file: str) -> PriceTable:
    """Reads a price table from a YAML file.

    Raises:
        UsageError: there is no such file, or it is not YAML.
        ConfigError: a key or a value is wrong.
    """
    try:
        raw = parse_yaml(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        text = getattr(error, "strerror", None) or str(error)
        reason = next(iter(text.splitlines()), type(error).__name__)
        raise UsageError(f"--prices: {file} cannot be read ({reason}).") from None
    try:
        table: PriceTable = parse_section(PriceTable, raw, PriceTable.PATH)
    except TypeError:
        raise ConfigError("prices.core_hour", "missing", "Write the price of a core for an hour.") from None
    return table


def estimate(config: Config, target: str, prices: PriceTable, images: int, size: int) -> Estimate:
    """Estimates the cost of a run.

    Args:
        config: the configuration.
        target: `vertex` or `kubeflow`.
        prices: of the user.
        images: number of images.
        size: their bytes.

    Raises:
        ConfigError: there are no images.
    """
    at_least("images", images, 1)
    work = size / _IMAGE_BYTES
    shards = _shards(config, images, size)
    space = estimate_space(images, size, config.images, config.transform, jpeg=_JPEG_BYTES_A_PIXEL)
    ingest = INGEST_MASKS if config.task == "segmentation" else INGEST
    if config.images.verify == FULL:
        ingest = INGEST_FULL
    rows = [
        _of_cores("ingest", ingest, prices.rates.ingest, images, work, prices),
        _of_cores("transform", TRANSFORM, prices.rates.transform, images, work, prices),
        _training(config, target, prices, images),
        _requests(images, shards, prices),
    ]
    stored = (space.dataset + space.transformed) / _GIGABYTE
    price, basis = None, "unknown: add storage_gb_month"
    if prices.storage_gb_month is not None:
        parts = f"shards {space.dataset / _GIGABYTE:,.1f} GB, transformed {space.transformed / _GIGABYTE:,.1f} GB"
        price, basis = stored * prices.storage_gb_month, f"{parts}, each month"
    rows.append(Row("storage", stored, "GB months", price, basis))
    return Estimate(images, size, prices.currency, tuple(rows))


def estimate_text(estimate: Estimate) -> str:
    """Returns the estimate as a table for a terminal."""
    lines = [
        f"{counted(estimate.images, 'image')}, {estimate.bytes / _GIGABYTE:,.1f} GB; a run in which nothing is cached"
    ]
    for row in estimate.rows:
        amount = "?" if row.amount is None else f"{row.amount:,.{0 if row.unit == _REQUESTS else 1}f}"
        price = "?" if row.price is None else f"{row.price:,.2f}"
        lines.append(f"  {row.step:<10}{amount:>12} {row.unit:<14}{price:>12} {estimate.currency}  {row.basis}")
    incomplete = f" (incomplete, without {', '.join(estimate.unknown)})" if estimate.unknown else ""
    monthly = "" if "storage" in estimate.unknown else ", and the storage of each month"
    lines.append(f"total: {estimate.total:,.2f} {estimate.currency}{incomplete}{monthly}")
    lines.append("not counted: statistics, report, evaluation, start of machines, network")
    return "\n".join(lines)


def _of_cores(step: str, measured: Measured, own: float | None, images: int, work: float, prices: PriceTable) -> Row:
    if own is not None:
        hours, basis = images / own / _SECONDS_AN_HOUR, f"{own:g} images/s a core, of the price table"
    else:
        hours = measured.core_hours(work)
        basis = f"{measured.a_core:g} images/s a core at {_IMAGE_BYTES // 1000} KB an image, measured"
    return Row(step, hours, "core hours", hours * prices.core_hour, basis)


def _training(config: Config, target: str, prices: PriceTable, images: int) -> Row:
    rate = prices.rates.train
    if rate is None:
        return Row("train", None, "machine hours", None, "unknown: measure a short training, and add rates.train")
    trained = images * config.split.ratios.get("train", 1.0)
    epochs = config.trainer.epochs_of(round(trained))
    seen = trained * epochs
    hours = seen / rate / _SECONDS_AN_HOUR
    section = config.vertex if target == "vertex" else config.kubeflow
    machine, gpu = section.trainer.machine, section.trainer.gpu
    basis = f"{epochs} epochs at {rate:g} images/s, of the price table"
    if machine is None and gpu is None:
        resources = section.resources.get("Trainer")
        cores = (resources.cpu if resources else None) or 1
        return Row("train", hours * cores, "core hours", hours * cores * prices.core_hour, f"{basis}, {cores:g} cores")
    hosts = config.trainer.hosts
    parts = ((machine, hosts), (gpu, section.trainer.gpus * hosts))
    priced = [(name, count, prices.machine_hours.get(name)) for name, count in parts if name is not None]
    # The price of some machines contains that of their GPUs.
    missing = [name for name, _, price in priced if price is None and name != (gpu if machine else None)]
    if missing:
        return Row("train", hours * hosts, "machine hours", None, f"unknown: add machine_hours.{missing[0]}")
    price = hours * sum(count * (one or 0.0) for _, count, one in priced)
    return Row("train", hours * hosts, "machine hours", price, f"{basis}, {hosts} x {machine or gpu}")


def _requests(images: int, shards: int, prices: PriceTable) -> Row:
    # Each image is read once. A shard is written to staging with its index and copied into the dataset.
    reads, writes = images, shards * 2
    if prices.reads_1000 is None or prices.writes_1000 is None:
        missing = [name for name in ("reads_1000", "writes_1000") if getattr(prices, name) is None]
        return Row("requests", reads + writes, _REQUESTS, None, f"unknown: add {' and '.join(missing)}")
    price = reads / 1000 * prices.reads_1000 + writes / 1000 * prices.writes_1000
    return Row("requests", reads + writes, _REQUESTS, price, f"{reads:,} reads, {writes:,} writes")


def _shards(config: Config, images: int, size: int) -> int:
    shards = config.shards
    if shards.count is not None:
        return int(shards.count) * len(config.split.ratios)
    if shards.records is not None:
        return ceil(images / shards.records)
    # The ingest plans its shards by these bytes.
    if config.images.stored_bytes is not None:
        size = images * config.images.stored_bytes
    return ceil(size / (shards.target_size or size))
