"""Where the loader's work goes on a dataset of the user's: shares of single steps, the ceiling, and what to set."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from shardwright.bench.figures import Figure, seconds
from shardwright.bench.loader import Methods, encoded_images, first_records, training
from shardwright.bench.loader_advice import Advice, Loaded, advise
from shardwright.bench.loader_memory import loading_memory
from shardwright.bench.loader_rates import ROUNDS, Rate, take_turns
from shardwright.dataset import Dataset
from shardwright.errors import DatasetError, UsageError
from shardwright.storage import is_remote

STEPS = ("read", "parse", "decode", "mask", "augment", "batch")
_RECORDS = 512
_MOST_TIMED = 512


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
    """The steps in their order; `batch` is what is left of the whole.

    Args:
        work: step -> seconds of processor an image, of all steps but `batch`.
        total: seconds of processor an image of the whole loader.
    """
    known = {step: max(0.0, work.get(step, 0.0)) for step in STEPS[:-1]}
    known["batch"] = max(0.0, total - sum(known.values()))
    whole = sum(known.values()) or 1.0
    return [Share(step, known[step], known[step] / whole) for step in STEPS]


@dataclass(frozen=True)
class LoaderReport:
    """What `shardwright bench loader DIR` says.

    Attributes:
        shares: where the work goes.
        figures: ceiling, rates, memory.
        advice: settings with reasons.
    """

    shares: tuple[Share, ...]
    figures: tuple[Figure, ...]
    advice: tuple[Advice, ...]


def loader_report(
    directory: str, split: str, methods: Methods, *, batch: int, augment: tuple[str, ...], rounds: int = ROUNDS
) -> LoaderReport:
    """Measures the loader on a dataset.

    Args:
        directory: folder of a dataset on this machine, of images of one size.
        split: name of the split.
        methods: decoding alone, and the loader's steps one by one.
        batch: images in a batch.
        augment: augmentations that are on, see `loader.load`.
        rounds: how often everything is measured.

    Raises:
        DatasetError: there is no such dataset or split, or nothing in it.
        UsageError: it cannot be loaded with these options.
    """
    from shardwright.loader import image_size

    if is_remote(directory):
        raise UsageError(
            f"{directory}: what is far away is measured by its distance. Copy the dataset to this machine."
        )
    dataset = Dataset.open(directory)
    count = dataset.num_records(split)
    if not count:
        raise DatasetError(f"{dataset.root}: split {split!r} holds no record, so there is nothing to measure.")
    if count < batch:
        raise UsageError(f"--batch {batch}: split {split!r} has only {count} records. Give {count} or less.")
    size = image_size(dataset)
    masked = dataset.manifest.task == "segmentation"
    recipe = dataset.manifest.recipe
    encoding = str(recipe.get("encoding") or recipe.get("images", {}).get("reencode"))
    if encoding == "raw":
        raise UsageError(f"{dataset.root}: raw pixels are not encoded, so there is no decoding to compare with.")
    encoded = encoded_images(dataset, split)
    start = partial(training, directory, batch, split=split)
    # Before the ceiling: the loader says best what is wrong with a dataset.
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
        max(1, min(len(encoded), _MOST_TIMED) // batch),
        ceiling=partial(methods.ceiling, encoded, encoding, batch),
        rounds=rounds,
    )
    work = _steps(dataset, split, encoded, encoding, methods, rounds)
    work["augment"] = rates["whole"].seconds - rates["float32"].seconds if augment else 0.0
    work["mask"] = rates["loader"].seconds - rates["no masks"].seconds if masked else 0.0
    found = Loaded(
        records=count,
        shards=len(dataset.shards(split)),
        record_bytes=sum(shard.bytes for shard in dataset.shards(split)) / count,
        size=size,
        channels=len(dataset.manifest.classes) if masked else 0,
        batch=batch,
        processors=len(os.sched_getaffinity(0)),
        exact_share=rates["exact"].share_of(rates["loader"]),
    )
    return LoaderReport(
        tuple(shares(work, rates["whole"].seconds)),
        (*_figures(rates), Figure("memory of one epoch", loading_memory(directory, split, batch) / 1e9, "GB")),
        tuple(advise(found)),
    )


def _steps(
    dataset: Dataset,
    split: str,
    encoded: Sequence[bytes],
    encoding: str,
    methods: Methods,
    rounds: int,
) -> dict[str, float]:
    """Seconds of processor an image of every step that can be taken alone."""
    manifest = dataset.manifest
    names = [f"image/segmentation/{name}/rle" for name in manifest.classes] if manifest.task == "segmentation" else []
    stored = [manifest.stored(name) for name in ("image/encoded", "image/key", *names)]
    features = {name: manifest.features[name] for name in stored if name in manifest.features}
    records = first_records(dataset, split, _RECORDS)
    files = [shard.file for shard in dataset.shards(split)]
    return {
        "read": _work(methods.reading_work(files), dataset.num_records(split), rounds),
        "parse": _work(methods.parsing_work(records, features), len(records), rounds),
        "decode": _work(methods.decoding_work(encoded, encoding), len(encoded), rounds),
    }


def _work(step: Callable[[], object], count: int, rounds: int) -> float:
    step()
    return seconds(step, rounds, time.process_time) / count


def _figures(rates: dict[str, Rate]) -> list[Figure]:
    told = {"loader": "uint8", "float32": "normalized to float32", "whole": "float32, augmented"}
    return [
        Figure(
            "decoding alone",
            median(rates["loader"].beside),
            "1/s",
            note="the same bytes from memory, all threads, same batches",
        ),
        *(
            Figure(
                f"loader / decoding alone, {about}",
                rates[name].share,
                "x",
                note=f"{rates[name].images:,.0f} images/s",
            )
            for name, about in told.items()
        ),
        Figure(
            "exact / fast", rates["exact"].share_of(rates["loader"]), "x", note=f"{rates['exact'].images:,.0f} images/s"
        ),
    ]
