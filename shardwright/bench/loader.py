"""How fast the loader is, beside nothing but decoding and beside what is used elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from shardwright.bench.figures import AT_LEAST, AT_MOST, Figure
from shardwright.bench.loader_data import HEIGHT, RECORDS, WIDTH, loader_datasets, many_records
from shardwright.bench.loader_memory import loading_memory
from shardwright.bench.loader_rates import ROUNDS, Rate, take_turns
from shardwright.bench.photographs import warm
from shardwright.dataset import Dataset
from shardwright.tfrecords.records import find_feature

TRAIN = "train"
BATCH = 32
# Of an object store: what a request takes, and how much one brings of a shard.
_DELAY, _REQUEST = 0.02, 4 << 20
_AT_ONCE = 16
_MOST_IN_MEMORY = 256 << 20
_FORMS = {"masks": "bytes of 0 and 1", "mask bits": "a bit a class, to be unpacked on the device"}


@dataclass(frozen=True)
class Methods:
    """The ways of loading that are no part of the loader; see `shardwright.pipelines.loader_methods`."""

    ceiling: Callable[..., Iterator[Any]]
    notebook: Callable[..., Iterator[Any]]
    shortest: Callable[[Sequence[str], str, int], Iterator[Any]]
    single_files: Callable[..., Iterator[Any]]
    reading_work: Callable[[Sequence[str]], Callable[[], object]]
    parsing_work: Callable[[Sequence[bytes], dict[str, str]], Callable[[], object]]
    decoding_work: Callable[[Sequence[bytes], str], Callable[[], object]]
    filling: Callable[[int, int], AbstractContextManager[None]]


def loader_figures(
    folder: Path,
    images: int,
    methods: Methods,
    *,
    size: tuple[int, int] = (HEIGHT, WIDTH),
    records: int = RECORDS,
    batch: int = BATCH,
    rounds: int = ROUNDS,
) -> list[Figure]:
    """Measures the promised figures on drawn photographs.

    Args:
        folder: where images and datasets are kept between calls.
        images: number of photographs.
        methods: what is compared with.
        size: height and width of the photographs.
        records: records of the epoch that is resumed.
        batch: images in a batch.
        rounds: how often everything is measured.
    """
    source, labelled, masked = loader_datasets(folder, images, *size)
    files = [shard.file for shard in Dataset.open(labelled).shards(TRAIN)]
    warm([*source.paths, *files, *(shard.file for shard in Dataset.open(masked).shards(TRAIN))])
    encoded = encoded_images(Dataset.open(labelled), TRAIN)
    rates = take_turns(
        {
            "ours": lambda: training(labelled, batch),
            "float32": lambda: training(labelled, batch, normalize="unit", dtype="float32"),
            "notebook float32": partial(methods.notebook, files, batch, floats=True),
            "notebook uint8": partial(methods.notebook, files, batch, floats=False),
            "shortest": partial(methods.shortest, files, "jpeg", batch),
            "labelled": partial(methods.ceiling, encoded, "jpeg", batch, labelled=True),
            "masks": lambda: training(masked, batch),
            "mask bits": lambda: training(masked, batch, masks="bits"),
            "exact": lambda: training(labelled, batch, order="exact"),
            "files": partial(methods.single_files, source.paths, batch),
        },
        batch,
        max(1, images // batch),
        ceiling=partial(methods.ceiling, encoded, "jpeg", batch),
        rounds=rounds,
    )
    many = many_records(folder, records)
    return [
        *_ceiling_figures(rates, f"{images} images of {size[0]}x{size[1]}, {source.bytes / images / 1e3:.0f} KB"),
        *added(labelled, encoded, methods, size, batch, rounds),
        *_single_files(source.paths, rates, methods, batch, sum(map(len, encoded)) / len(encoded), rounds),
        Figure(
            "loader: exact / fast",
            rates["exact"].share_of(rates["ours"]),
            "x",
            note=f"{rates['exact'].images:,.0f} images/s, shuffled both",
        ),
        resuming(many, records, batch, rounds),
        *(
            Figure(f"memory: {name}", loading_memory(path, TRAIN, batch) / 1e9, "GB", AT_MOST, 1.5, "one epoch, VmHWM")
            for name, path in ((f"{images} images with masks", masked), (f"{records:,} tiny records", many))
        ),
    ]


def training(dataset: str, batch: int, *, split: str = TRAIN, **options: Any) -> Iterator[Any]:
    """The loader's endless batches for a training, as uint8 where nothing else is asked for."""
    from shardwright.loader import load

    fixed = {"shuffle": True, "seed": 0, "repeat": True, "deterministic": False}
    given = {"normalize": "none", "dtype": "uint8", **fixed, **options}
    return iter(load(dataset, split, batch, **given))


def added(
    dataset: str, encoded: Sequence[bytes], methods: Methods, size: tuple[int, int], batch: int, rounds: int = ROUNDS
) -> list[Figure]:
    """What the loader adds to each image, told without the scatter of decoding: filling takes its place on both sides.

    Args:
        dataset: its folder.
        encoded: its images.
        methods: the ceiling, and what leaves decoding out.
        size: height and width of the images.
        batch: images in a batch.
        rounds: how often each is measured.
    """
    with methods.filling(*size):
        rates = take_turns(
            {order: partial(training, dataset, batch, order=order) for order in ("fast", "exact")},
            batch,
            max(1, len(encoded) // batch),
            ceiling=partial(methods.ceiling, encoded, "jpeg", batch),
            rounds=rounds,
        )
    return [
        Figure(
            f"what the loader adds to an image, {order}",
            rate.added * 1e6,
            "us",
            note=f"of processor, beside {median(rate.work_beside) * 1e6:.0f}; both sides fill images, and decode none",
        )
        for order, rate in rates.items()
    ]


def encoded_images(dataset: Dataset, split: str) -> list[bytes]:
    """The stored images of a split, as many as fit into a quarter of a gigabyte."""
    name, found, size = dataset.manifest.stored("image/encoded"), [], 0
    for _, record in dataset.records(split):
        (data,) = find_feature(record, name) or [b""]
        found.append(bytes(data))
        size += len(found[-1])
        if size > _MOST_IN_MEMORY:
            break
    return found


def resuming(dataset: str, records: int, batch: int, rounds: int = ROUNDS) -> Figure:
    """The time from asking for the middle of an epoch to its first batch."""
    from shardwright.loader import load

    middle = records // batch // 2
    taken, worked = [], []
    for _ in range(rounds):
        started = time.perf_counter(), time.process_time()
        batches = load(dataset, TRAIN, batch, shuffle=True, seed=0, repeat=True, order="exact", start_step=middle)
        next(iter(batches))
        taken.append(time.perf_counter() - started[0])
        worked.append(time.process_time() - started[1])
    return Figure(
        f"resuming exact in the middle of {records:,} records",
        median(taken),
        "s",
        AT_MOST,
        2,
        f"from load() to the first batch, median of {rounds}; {median(worked):.2g} s of processor",
    )


def _ceiling_figures(rates: dict[str, Rate], note: str) -> list[Figure]:
    # The promise is made for whichever representation is the faster one.
    best, other = sorted(("masks", "mask bits"), key=lambda name: -rates[name].images)

    def figure(name: str, method: str, target: float | None, about: str = "") -> Figure:
        rate = rates[method]
        told = f"{rate.images:,.0f} images/s; processor {rate.work_share:.2f} x; {about}".rstrip("; ")
        return Figure(name, rate.share, "x", AT_LEAST if target else "", target, told)

    return [
        Figure("decoding alone", median(rates["ours"].beside), "1/s", note=note),
        figure("loader / decoding alone, no masks", "ours", 0.95, "uint8"),
        Figure(
            "loader / decoding alone, in pairs with a label",
            rates["ours"].share_of(rates["labelled"]),
            "x",
            note=f"{rates['labelled'].images:,.0f} images/s; batches of the loader's form",
        ),
        figure("TensorFlow's shortest way to the same", "shortest", None, "uint8, no check"),
        figure("the loader as float32", "float32", None),
        figure("plain notebook loader, float32", "notebook float32", None),
        figure("plain notebook loader, uint8", "notebook uint8", None),
        figure("loader / decoding alone, masks of 4 classes", best, 0.6, f"as {_FORMS[best]}"),
        figure("the same, the other representation", other, None, f"as {_FORMS[other]}"),
    ]


def _single_files(
    paths: Sequence[str], rates: dict[str, Rate], methods: Methods, batch: int, image_bytes: float, rounds: int
) -> list[Figure]:
    """Reading shards and reading files, both with a delay for every request; and both without."""
    slow = partial(methods.single_files, paths, batch, delay=_DELAY)
    # One after the other: a loader that is not asked reads ahead, and what it then has ready would count as speed.
    one = take_turns({"one": slow}, batch, 1, rounds=rounds, ready=1)["one"]
    many = take_turns({"many": partial(slow, at_once=_AT_ONCE)}, batch, _AT_ONCE, rounds=rounds)["many"]
    # What is asked of a shard comes in large parts; here none of that waiting is hidden behind any work.
    ours = 1 / (1 / rates["ours"].images + _DELAY * image_bytes / _REQUEST)
    waiting = f"{_DELAY * 1000:.0f} ms a request"
    return [
        Figure(
            f"shards / single files, {waiting}",
            ours / one.images,
            "x",
            AT_LEAST,
            10,
            f"{ours:,.0f} images/s (requests of {_REQUEST >> 20} MB, none overlapped, by arithmetic) beside "
            f"{one.images:,.0f}",
        ),
        Figure(
            f"the same with {_AT_ONCE} reads of files in flight",
            ours / many.images,
            "x",
            note=f"beside {many.images:,.0f} images/s",
        ),
        Figure(
            "shards / single files, warm local disk",
            rates["ours"].share_of(rates["files"]),
            "x",
            note=f"beside {rates['files'].images:,.0f} images/s",
        ),
    ]


def first_records(dataset: Dataset, split: str, count: int) -> list[bytes]:
    """The first records of a split."""
    return [record for _, record in islice(dataset.records(split), count)]
