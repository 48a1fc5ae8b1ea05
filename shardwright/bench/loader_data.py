"""Datasets to load from: photographs of the size that models learn from, with and without masks; many tiny records."""

from __future__ import annotations

import csv
import hashlib
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from shardwright.bench.photographs import Photographs, photographs
from shardwright.config import parse_config
from shardwright.fingerprint import fingerprint
from shardwright.ingest import ingest
from shardwright.manifest import SINGLE
from shardwright.tfrecords.records import encode_example
from shardwright.writing import commit, staging

HEIGHT, WIDTH = 350, 525
RECORDS = 100_000
_SHARDS = 16
_TINY = 32
_LABELS = ("even", "odd")


def loader_datasets(
    folder: Path, images: int, height: int = HEIGHT, width: int = WIDTH
) -> tuple[Photographs, str, str]:
    """The same photographs as two datasets of one split, or what an earlier call has made of them.

    Args:
        folder: where to; made when it is missing.
        images: how many.
        height: rows of each.
        width: columns of each.

    Returns:
        The photographs; the folder of the dataset with a label each; that of the one with masks of four classes.
    """
    source = photographs(folder, images, height=height, width=width)
    table = folder / f"labels-{images}.csv"
    with table.open("w", encoding="utf-8", newline="") as out:
        rows = [(name, _LABELS[number % 2]) for number, name in enumerate(source.names)]
        csv.writer(out, lineterminator="\n").writerows([("image", "label"), *rows])
    labelled = _dataset(source, folder / f"labelled-{images}-{height}x{width}", "classification", str(table))
    masked = _dataset(source, folder / f"masked-{images}-{height}x{width}", "segmentation", source.masks)
    return source, labelled, masked


def _dataset(source: Photographs, out: Path, task: str, labels: str) -> str:
    raw = {
        "task": task,
        "input": {"images": source.images, "labels": {"path": labels}},
        "split": {"train": 1.0},
        "shards": {"count": _SHARDS},
        "evaluator": {"split": "train"},
    }
    # The output is left alone where it is finished and of the same images.
    ingest(parse_config(raw, base="/"), out, quiet=True)
    return str(out)


def many_records(folder: Path, records: int = RECORDS) -> str:
    """A dataset of so many tiny pictures in sixteen shards, or the one that an earlier call has made.

    Its pictures are four different ones: what is asked of it is how long it takes to find a place in it.
    """
    root = folder / f"records-{records}"
    if not (root / "manifest.json").exists():
        shutil.rmtree(root, ignore_errors=True)
        planned = [staging.PlannedShard("train", number, _SHARDS) for number in range(_SHARDS)]
        place = staging.Staging.open(folder / "staging", fingerprint(records))
        for shard in planned:
            place.write_shard(shard, list(_tiny_records(range(shard.number, records, _SHARDS))))
        features = {"image/encoded": "bytes", "image/key": "bytes"}
        features |= {f"image/{side}": "int64" for side in ("height", "width")} | {"image/class/label": "int64"}
        plan = commit.DatasetPlan(
            kind="ingest",
            task="classification",
            classes=_LABELS,
            labels=SINGLE,
            recipe={"tiny": records},
            parent=hashlib.sha256(b"tiny").hexdigest(),
            features=features,
            inputs=records,
            shards=tuple(planned),
        )
        commit.commit(place, plan, root, {})
        shutil.rmtree(folder / "staging", ignore_errors=True)
    return str(root)


def _tiny_records(numbers: range) -> Iterator[staging.Outcome]:
    pictures = [_tiny_picture(seed) for seed in range(4)]
    for number in numbers:
        key = f"{number:07d}"
        example: dict[str, bytes | int] = {
            "image/class/label": number % 2,
            "image/encoded": pictures[number % 4],
            "image/height": _TINY,
            "image/key": key.encode(),
            "image/width": _TINY,
        }
        yield staging.Outcome(key, encode_example(example))


def _tiny_picture(seed: int) -> bytes:
    cells = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(cells).resize((_TINY, _TINY)).save(out, "JPEG")
    return out.getvalue()
