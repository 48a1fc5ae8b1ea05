"""Measures the loader on a dataset: the shares of its steps, the limit that decoding sets, and advice on settings.

Methods take turns, so that other work on the machine affects all of them alike.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from statistics import mean, median
from typing import Any

import numpy as np
import tensorflow as tf

from shardwright.dataset.manifest import mask_feature
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.loader.advice import Advice, Loaded, advise
from shardwright.loader.dataset_info import image_size
from shardwright.loader.encodings import EncodingRow, choose_encoding, compare_encodings
from shardwright.loader.error_context import calls_at_once, threads_of_decoding
from shardwright.loader.load import load
from shardwright.loader.memory import READ_BUFFER
from shardwright.loader.parse_example import decoder
from shardwright.running.processes import peak_memory, usable_cores
from shardwright.storage import is_remote
from shardwright.tfrecords.records import find_feature

Tensor = Any
# The error of a damaged record.
LoadingError = tf.errors.OpError
STEPS = ("read", "parse", "decode", "mask", "augment", "batch")
ROUNDS = 5
# A good SSD gives this; a disk in the network gives less.
READ_RATE = 500e6
TRAIN = "train"
_MOST_IN_MEMORY = 256 << 20
# Batches before the clock starts: a shuffle buffer is filled, and TensorFlow tunes itself.
_READY = 40
# Records that are parsed, and images that are loaded in a turn, at most.
_RECORDS = 512
_READY_BATCHES = 2


@dataclass(frozen=True)
class Rate:
    """How fast a method is, by the median of rounds.

    Attributes:
        rounds: images a second in each round.
        work: seconds of processor an image, of all threads, in each round.
        ceiling: images a second of the ceiling, the mean of its turns before and after each; empty without a ceiling.
        ceiling_work: its seconds of processor an image, likewise.
    """

    rounds: tuple[float, ...]
    work: tuple[float, ...]
    ceiling: tuple[float, ...] = ()
    ceiling_work: tuple[float, ...] = ()

    @property
    def images(self) -> float:
        """Images a second."""
        return median(self.rounds)

    @property
    def seconds(self) -> float:
        """Seconds of processor an image."""
        return median(self.work)

    @property
    def share(self) -> float:
        """This rate as a share of the ceiling: the median of the rounds."""
        return median(ours / most for ours, most in zip(self.rounds, self.ceiling, strict=True))

    @property
    def work_share(self) -> float:
        """The same by seconds of processor, which other work on the machine touches less."""
        return median(least / ours for ours, least in zip(self.work, self.ceiling_work, strict=True))

    @property
    def added(self) -> float:
        """Seconds of processor an image beyond the ceiling's: the median of the rounds."""
        return median(ours - least for ours, least in zip(self.work, self.ceiling_work, strict=True))

    def share_of(self, other: Rate) -> float:
        """Returns this rate as a share of another: the median of the rounds, each by its neighbor in time."""
        return median(ours / theirs for ours, theirs in zip(self.rounds, other.rounds, strict=True))


def take_turns(
    methods: Mapping[str, Callable[[], Iterator[Any]]],
    batch: int,
    batches: int,
    *,
    ceiling: Callable[[], Iterator[Any]] | None = None,
    rounds: int = ROUNDS,
    ready: int = _READY,
    clock: Callable[[], float] = time.perf_counter,
    work_clock: Callable[[], float] = time.process_time,
) -> dict[str, Rate]:
    """Measures endless iterators of batches, once they run.

    The consumer only takes batches. So prepared batches are gone before the clock starts, and none is ready when it
    stops: a larger buffer gains nothing.

    Args:
        methods: name -> function that starts one.
        batch: images in a batch.
        batches: how many are taken in a turn.
        ceiling: starts the method that the others are compared with; it has a turn before and after each of theirs.
        rounds: how often each has its turn.
        ready: batches that are taken before each turn and not counted.
        clock: seconds that pass.
        work_clock: seconds of processor that are spent.
    """

    def turn(start: Callable[[], Iterator[Any]]) -> tuple[float, float]:
        # Started for each turn: a waiting iterator would go on reading ahead in the turn of another.
        iterator = start()
        for _ in range(ready):
            next(iterator)
        started, worked = clock(), work_clock()
        for _ in range(batches):
            next(iterator)
        return images / (clock() - started), (work_clock() - worked) / images

    images = batch * batches
    timed: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    ceilings: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for _ in range(rounds):
        before = turn(ceiling) if ceiling else None
        for name, start in methods.items():
            timed[name].append(turn(start))
            if ceiling and before:
                after = turn(ceiling)
                ceilings[name].append((mean((before[0], after[0])), mean((before[1], after[1]))))
                before = after
    return {name: Rate(*zip(*turns, strict=True), *zip(*ceilings[name], strict=True)) for name, turns in timed.items()}


@dataclass(frozen=True)
class Share:
    """A step of the loader's work.

    Attributes:
        step: its name.
        seconds: seconds of processor an image.
        share: of all steps.
    """

    step: str
    seconds: float
    share: float


def shares(work: dict[str, float], total: float) -> list[Share]:
    """Returns the steps in their order; `batch` is the rest of the whole.

    Args:
        work: step -> seconds of processor an image, of all steps but `batch`.
        total: seconds of processor an image of the whole loader.
    """
    known = {step: max(0.0, work.get(step, 0.0)) for step in STEPS[:-1]}
    known["batch"] = max(0.0, total - sum(known.values()))
    whole = sum(known.values()) or 1.0
    return [Share(step, known[step], known[step] / whole) for step in STEPS]


@dataclass(frozen=True)
class Measured:
    """A measured figure.

    Attributes:
        name: of the measurement.
        value: the figure.
        unit: `x` for a ratio, `1/s`, `GB`.
        note: its conditions.
    """

    name: str
    value: float
    unit: str
    note: str = ""


@dataclass(frozen=True)
class LoaderReport:
    """The output of `shardwright bench loader DIR`.

    Attributes:
        shares: where the work goes.
        figures: ceiling, rates, memory.
        advice: settings with reasons.
        encodings: the ways to store the images, see `compare_encodings`.
    """

    shares: tuple[Share, ...]
    figures: tuple[Measured, ...]
    advice: tuple[Advice, ...]
    encodings: tuple[EncodingRow, ...] = ()


def loader_report(
    directory: str,
    split: str,
    *,
    batch: int,
    augment: tuple[str, ...],
    rounds: int = ROUNDS,
    read_rate: float = READ_RATE,
) -> LoaderReport:
    """Measures the loader on a dataset.

    Args:
        directory: folder of a dataset on this machine, of images of one size.
        split: name of the split.
        batch: images in a batch.
        augment: augmentations that are on, see `loader.load`.
        rounds: how often everything is measured.
        read_rate: bytes a second that storage delivers in a training, for the advice on `transform.encoding`.

    Raises:
        DatasetError: there is no such dataset or split, or nothing in it.
        UsageError: it cannot be loaded with these options.
    """
    dataset = _measurable(directory, split, batch)
    encoding = str(dataset.manifest.encoding)
    masked = dataset.manifest.task == "segmentation"
    size = image_size(dataset)
    encoded = encoded_images(dataset, split)
    start = partial(training, directory, batch, split=split)
    # Before the ceiling, since the loader has the best messages about a damaged dataset.
    next(start())
    rates = take_turns(
        {
            "loader": start,
            "float32": partial(start, normalize="unit", dtype="float32"),
            "whole": partial(start, normalize="unit", dtype="float32", augment=augment),
            "exact": partial(start, order="exact"),
            **({"no masks": partial(start, targets="labels")} if masked else {}),
        },
        batch,
        max(1, min(len(encoded), _RECORDS) // batch),
        ceiling=partial(ceiling, encoded, encoding, batch),
        rounds=rounds,
    )
    work = _steps(dataset, split, encoded, encoding, rounds)
    work["augment"] = rates["whole"].seconds - rates["float32"].seconds if augment else 0.0
    work["mask"] = rates["loader"].seconds - rates["no masks"].seconds if masked else 0.0
    memory = Measured("memory of one epoch", loading_memory(directory, split, batch) / 1e9, "GB")
    loaded = _loaded(dataset, split, size, batch, rates["exact"].share_of(rates["loader"]))
    rows = compare_encodings(encoded, decoder(encoding), rounds=rounds)
    encoding_advice = Advice("transform.encoding", *choose_encoding(rows, read_rate))
    return LoaderReport(
        tuple(shares(work, rates["whole"].seconds)),
        (*_figures(rates), memory),
        (*advise(loaded), encoding_advice),
        tuple(rows),
    )


def _measurable(directory: str, split: str, batch: int) -> ImageDataset:
    """Opens a dataset that can be measured."""
    if is_remote(directory):
        raise UsageError(
            f"{directory}: the network would be measured, not the loader. Copy the dataset to this machine."
        )
    dataset = ImageDataset.open(directory)
    count = dataset.num_records(split)
    if not count:
        raise DatasetError(f"{dataset.root}: split {split!r} contains no record, so there is nothing to measure.")
    if count < batch:
        raise UsageError(f"--batch-size {batch}: split {split!r} has only {count} records. Give {count} or less.")
    if dataset.manifest.encoding == "raw":
        raise UsageError(f"{dataset.root}: raw pixels are not encoded, so there is no decoding to compare with.")
    return dataset


def _loaded(dataset: ImageDataset, split: str, size: tuple[int, int], batch: int, exact_share: float) -> Loaded:
    shards = dataset.shards(split)
    count = dataset.num_records(split)
    return Loaded(
        records=count,
        shards=len(shards),
        record_bytes=sum(shard.bytes for shard in shards) / count,
        size=size,
        channels=len(dataset.manifest.classes) if dataset.manifest.task == "segmentation" else 0,
        batch=batch,
        processors=usable_cores(),
        exact_share=exact_share,
    )


def _steps(dataset: ImageDataset, split: str, encoded: Sequence[bytes], encoding: str, rounds: int) -> dict[str, float]:
    """Returns seconds of processor an image of every step that can be measured alone."""
    manifest = dataset.manifest
    names = [mask_feature(name) for name in manifest.classes] if manifest.task == "segmentation" else []
    stored = [manifest.stored(name) for name in ("image/encoded", "image/key", *names)]
    spec = {
        name: tf.io.FixedLenFeature([], tf.string)
        if manifest.features[name] == "bytes"
        else tf.io.RaggedFeature(tf.int64)
        for name in stored
        if name in manifest.features
    }
    files = [shard.file for shard in dataset.shards(split)]
    records = [record for _, record in islice(dataset.records(split), _RECORDS)]
    read = tf.data.Dataset.from_tensor_slices(files).interleave(
        lambda file: tf.data.TFRecordDataset(file, buffer_size=READ_BUFFER), cycle_length=len(files)
    )
    parsed = _held(records).map(lambda record: tf.io.parse_single_example(record, spec))
    decoded = _held(encoded).map(decoder(encoding), num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    return {
        "read": _work(read, dataset.num_records(split), rounds),
        "parse": _work(parsed, len(records), rounds),
        "decode": _work(decoded, len(encoded), rounds),
    }


def _held(values: Sequence[bytes]) -> Any:
    return tf.data.Dataset.from_tensor_slices(np.array(values, object))


def _work(elements: Any, count: int, rounds: int) -> float:
    """Returns the seconds of processor that each of all elements takes; none is passed to Python."""
    best = float("inf")
    for number in range(rounds + 1):
        started = time.process_time()
        elements.reduce(np.int64(0), lambda count, *_: count + 1).numpy()
        if number:  # The first round also traces.
            best = min(best, time.process_time() - started)
    return best / count


def _figures(rates: dict[str, Rate]) -> list[Measured]:
    outputs = {"loader": "uint8", "float32": "normalized to float32", "whole": "float32, augmented"}
    notes = {name: f"{rate.images:,.0f} images/s" for name, rate in rates.items()}
    alone = "the same bytes from memory, all threads, same batches"
    return [
        Measured("decoding alone", median(rates["loader"].ceiling), "1/s", alone),
        *(
            Measured(f"loader / decoding alone, {output}", rates[name].share, "x", notes[name])
            for name, output in outputs.items()
        ),
        Measured("exact / fast", rates["exact"].share_of(rates["loader"]), "x", notes["exact"]),
    ]


def ceiling(encoded: Sequence[bytes], encoding: str, batch: int, *, labeled: bool = False) -> Iterator[Any]:
    """Starts decoding without the rest: the bytes are in memory, all threads decode, batches are made as in the loader.

    Args:
        encoded: the images.
        encoding: how they are stored.
        batch: images in a batch.
        labeled: add a number to each image, so that batches have the form of the loader's.
    """
    decode = decoder(encoding)
    held: Any = np.array(encoded, object)
    images = tf.data.Dataset.from_tensor_slices((held, np.zeros(len(held), np.int32)) if labeled else held).repeat()
    # TensorFlow fuses `map` and `batch` here; so does the loader, with as many concurrent calls.
    calls = calls_at_once(batch, threads_of_decoding())
    images = images.map(
        lambda data, *label: (decode(data), *label) if label else decode(data), calls, deterministic=False
    )
    return iter(images.batch(batch, drop_remainder=True).prefetch(_READY_BATCHES))


def training(dataset: str, batch: int, *, split: str = TRAIN, **options: Any) -> Iterator[Any]:
    """Starts the loader's endless batches for a training, by default as uint8."""
    fixed = {"shuffle": True, "seed": 0, "repeat": True, "deterministic": False}
    chosen = {"normalize": "none", "dtype": "uint8", **fixed, **options}
    return iter(load(dataset, split, batch, **chosen))


def encoded_images(dataset: ImageDataset, split: str) -> list[bytes]:
    """Returns the stored images of a split, as many as fit into a quarter of a gigabyte."""
    name, images, size = dataset.manifest.stored("image/encoded"), [], 0
    for _, record in dataset.records(split):
        (data,) = find_feature(record, name) or [b""]
        images.append(bytes(data))
        size += len(images[-1])
        if size > _MOST_IN_MEMORY:
            break
    return images


def loading_memory(dataset: str, split: str, batch: int) -> int:
    """Returns the peak memory, in bytes, of a process that loads an epoch with default settings.

    Args:
        dataset: folder of the dataset.
        split: name of the split.
        batch: images in a batch.
    """
    call = [sys.executable, "-m", "shardwright.loader.profile", dataset, split, str(batch)]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    return int(json.loads(done.stdout.splitlines()[-1])["peak"])


if __name__ == "__main__":
    images, (_directory, _split, _batch) = 0, sys.argv[1:]
    for image, *_ in load(_directory, _split, int(_batch), shuffle=True, seed=0):
        images += image.shape[0]
    print(json.dumps({"images": images, "peak": peak_memory()}))
