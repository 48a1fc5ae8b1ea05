"""The promise of the report: 100,000 images in a minute, memory that does not grow with them."""

from __future__ import annotations

import io
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.figures import AT_MOST, Figure, seconds
from shardwright.dataset.feature_presets import COMMON_FEATURES
from shardwright.ingest.known_files import PROBE_FEATURES
from shardwright.masks import rle
from shardwright.report.page import write_report
from shardwright.running.processes import peak_memory
from shardwright.running.progress import progress
from shardwright.staging.commit import DatasetPlan, commit
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.storage.checksum import checksum_of
from shardwright.tfrecords import encode

_CLASSES = ("Fish", "Flower", "Gravel", "Sugar")
_HEIGHT, _WIDTH = 350, 525
_PICTURES = 200
_SHARD = 5000
_SECONDS, _PAGE = 60.0, 5.0


def measure_report(folder: Path, images: int) -> list[Figure]:
    """Writes a dataset of so many images and reports it.

    Args:
        folder: where it is made, or was made before.
        images: how many.
    """
    large, small = (write_records(folder / f"records-{count}", count) for count in (images, max(1, images // 10)))
    memory = []
    for dataset in (small, large):
        took, peak = _in_fresh_process(dataset, folder / "report.html")
        memory.append(peak / 1e6)
    size = (folder / "report.html").stat().st_size / 1e6
    each = f"{images} images with four masks and measures"
    return [
        Figure("report", took, "s", AT_MOST, _SECONDS * images / 100_000, each),
        Figure(
            "report: memory beyond that of a tenth", memory[1] - memory[0], "MB", AT_MOST, 64, f"of {memory[1]:.0f}"
        ),
        Figure("report: size of the page", size, "MB", AT_MOST, _PAGE, each),
    ]


def write_records(folder: Path, images: int) -> Path:
    """Writes records as the ingest does, of a few pictures with many keys; nothing where they are there already."""
    out = folder / "dataset"
    if out.exists():
        return out
    pictures = [_picture(number) for number in range(_PICTURES)]
    kinds = dict(COMMON_FEATURES) | PROBE_FEATURES
    kinds |= {f"image/segmentation/{name}/{what}": "int64" for name in _CLASSES for what in ("rle", "area")}
    shards = [PlannedShard("train", i, -(-images // _SHARD)) for i in range(-(-images // _SHARD))]
    fingerprint = checksum_of(str(images).encode())
    plan = DatasetPlan(
        "ingest", "segmentation", _CLASSES, {"records": images}, fingerprint, kinds, images, tuple(shards)
    )
    staging = Staging.open(folder / "staging", plan.fingerprint)
    with progress(images, "writing records") as shown:
        for shard in shards:
            numbers = range(shard.number * _SHARD, min(images, (shard.number + 1) * _SHARD))
            staging.write_shard(shard, _outcomes(numbers, pictures), facts=plan.facts(shard))
            shown.advance(len(numbers))
    commit(staging, plan, out, {})
    return out


def _outcomes(numbers: range, pictures: list[bytes]) -> Iterator[RecordResult]:
    random = np.random.default_rng(numbers.start)
    for number in numbers:
        key = f"folder/{number:07d}.jpg"
        features: dict[str, encode.FeatureValue] = {
            "image/encoded": pictures[number % _PICTURES],
            "image/format": b"jpeg",
            "image/height": _HEIGHT,
            "image/width": _WIDTH,
            "image/channels": 3,
            "image/orientation": 1,
            "image/filename": key.encode(),
            "image/key": key.encode(),
            "image/blake3": checksum_of(key.encode()).encode(),
        }
        for name, kind in PROBE_FEATURES.items():
            features[name] = float(random.random() / 2) if kind == "float32" else int(random.integers(-(2**63), 2**63))
        present = []
        for label, name in enumerate(_CLASSES):
            top, left = random.integers(0, 200, 2)
            starts = (np.arange(left, left + 60) * _HEIGHT + top) if random.random() < 0.5 else np.empty(0, np.int64)
            runs = np.stack([starts, np.full(len(starts), 90)], axis=1)
            features[f"image/segmentation/{name}/rle"] = encode.ints(runs.reshape(-1))
            features[f"image/segmentation/{name}/area"] = rle.area(runs)
            present += [label] if len(runs) else []
        features["image/class/label"] = encode.ints(present)
        features["image/class/text"] = encode.byte_strings([_CLASSES[label].encode() for label in present])
        yield RecordResult(key, encode.encode_example(features))


def _picture(number: int) -> bytes:
    random = np.random.default_rng(number)
    cells = Image.fromarray(random.integers(0, 256, (6, 9, 3), dtype=np.uint8))
    file = io.BytesIO()
    cells.resize((_WIDTH, _HEIGHT), Image.Resampling.BICUBIC).save(file, "jpeg", quality=85)
    return file.getvalue()


def _in_fresh_process(dataset: Path, out: Path) -> tuple[float, int]:
    """Seconds and most memory of a report, in a process that has had nothing else to do."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_report, (dataset, out))


def _report(dataset: Path, out: Path) -> tuple[float, int]:
    return seconds(lambda: write_report(dataset, out, quiet=True)), peak_memory()
