"""Fixtures for the components: small datasets, written as the product writes them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

SHAPES = ("Disc", "Bar")
COLORS = ("red", "green", "blue")

DatasetWriter = Callable[..., Path]


@pytest.fixture(scope="session")
def write_shapes() -> DatasetWriter:
    """Writes a dataset of easy images: bright discs and bars on noise for masks, colored ones for labels.

    Arguments: folder, task, kind (`ingest` or `transform`), size (height, width), counts (split -> images), words (of
    a text with each image, `note`, stored as counts; none by default).
    """
    from shardwright.formats.base import Survey
    from shardwright.ingest import example_features
    from shardwright.staging.commit import DatasetPlan, commit
    from shardwright.staging.staging import PlannedShard, RecordResult, Staging

    def write(
        out: Path,
        *,
        task: str = "segmentation",
        kind: str = "transform",
        size=(24, 40),
        counts=None,
        parent="p" * 64,
        words=0,
    ) -> Path:
        counts = counts or {"train": 12, "eval": 4, "test": 6}
        classes = SHAPES if task == "segmentation" else COLORS
        recipe = {"size": list(size), "resize": "stretch", "encoding": "png"} if kind == "transform" else {"n": 1}
        features = example_features(task, Survey(classes=classes, listed=bytearray()))
        if words:
            recipe["text"] = {"note": {"vocabulary": words, "output": "counts", "length": None}}
            features |= {"image/meta/note/indices": "int64", "image/meta/note/counts": "int64"}
        shards = tuple(PlannedShard(split, 0, 1) for split in sorted(counts))
        plan = DatasetPlan(kind, task, classes, recipe, parent, features, sum(counts.values()), shards)
        staging = Staging.open(out.parent / "staging", plan.fingerprint)
        make = _masked if task == "segmentation" else _colored
        with staging.locked():
            for shard in shards:
                keys = [f"{shard.split}/{i:03d}.png" for i in range(counts[shard.split])]
                outcomes = [RecordResult(key, make(key, size) + _noted(key, words)) for key in keys]
                staging.write_shard(shard, outcomes)
            commit(staging, plan, out, {})
        return out

    return write


def _noted(key: str, words: int) -> bytes:
    """Counts of words, to be appended to an example: two concatenated messages are one."""
    from shardwright.tfrecords.encode import encode_example, ints

    if not words:
        return b""
    place = sum(map(ord, key)) % words
    return encode_example({"image/meta/note/indices": ints([place]), "image/meta/note/counts": ints([2])})


def _masked(key: str, size: tuple[int, int]) -> bytes:
    from shardwright.masks import rle
    from shardwright.tfrecords.encode import byte_strings, encode_example, ints

    height, width = size
    random = np.random.default_rng([ord(c) for c in key])
    rows, columns = np.mgrid[:height, :width]
    image = random.integers(0, 60, (height, width, 3))
    center = random.uniform(0.25, 0.75, 2) * size
    disc = ((rows - center[0]) ** 2 + (columns - center[1]) ** 2 < (min(size) / 4) ** 2) & (random.random() < 0.8)
    left = int(random.integers(0, width * 3 // 4))
    bar = (columns >= left) & (columns < left + width // 6) & (random.random() < 0.8)
    image[disc, 0] += 180
    image[bar, 2] += 180
    features = _common(key, image.astype(np.uint8))
    for name, mask in zip(SHAPES, (disc, bar), strict=True):
        runs = rle.encode(mask)
        features[f"image/segmentation/{name}/rle"] = ints(runs.reshape(-1))
        features[f"image/segmentation/{name}/area"] = rle.area(runs)
    shown = [label for label, mask in enumerate((disc, bar)) if mask.any()]
    features["image/class/label"] = ints(shown)
    features["image/class/text"] = byte_strings([SHAPES[label].encode() for label in shown])
    return encode_example(features)


def _colored(key: str, size: tuple[int, int]) -> bytes:
    from shardwright.tfrecords.encode import encode_example

    random = np.random.default_rng([ord(c) for c in key])
    label = int(random.integers(0, len(COLORS)))
    image = random.integers(0, 60, (*size, 3))
    image[..., label] += 120
    features = _common(key, image.astype(np.uint8))
    features["image/class/label"] = label
    features["image/class/text"] = COLORS[label].encode()
    return encode_example(features)


def _common(key: str, image: np.ndarray) -> dict:
    import io

    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(image).save(data, "png")
    height, width = image.shape[:2]
    return {
        "image/encoded": data.getvalue(),
        "image/format": b"png",
        "image/height": height,
        "image/width": width,
        "image/key": key.encode(),
    }
