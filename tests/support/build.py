"""What most tests begin with, in one line each: a dataset, images with annotations, a configuration, an image file."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from shardwright.config import Config, parse_config
from shardwright.dataset.manifest import mask_feature
from shardwright.masks import rle
from shardwright.staging import commit, staging
from shardwright.storage.checksum import checksum_of
from shardwright.tfrecords import encode, records

_ORIENTATION = 0x0112


def config(*, source: str = "x", base: str = "/", task: str | None = None, **sections: Any) -> Config:
    """Returns a configuration of the images in `source`; other options of `input` are given as `input={...}`."""
    raw = {**sections, "input": {"images": source, **sections.get("input", {})}}
    return parse_config(raw if task is None else {**raw, "task": task}, base=base)


def cloudy(seed: int | np.random.Generator, size: tuple[int, int] = (40, 24), mode: str = "RGB") -> Image.Image:
    """Returns a smooth image of (width, height) that no other seed has: JPEG hardly changes it."""
    cells = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(cells).resize(size, Image.Resampling.BICUBIC).convert(mode)


def noise(seed: int, size: tuple[int, int] = (12, 10)) -> np.ndarray:
    """Returns uint8 (height, width, 3) that no other seed has; `size` is (width, height)."""
    return np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)


def encoded(image: Any, kind: str = "png", orientation: int = 1, **options: Any) -> bytes:
    """Returns the file of an image or of an array of pixels, perhaps with an Exif orientation."""
    if orientation != 1:
        options["exif"] = exif = Image.Exif()
        exif[_ORIENTATION] = orientation
    file = io.BytesIO()
    if not isinstance(image, Image.Image):
        pixels = np.asarray(image)
        image = Image.fromarray(pixels if pixels.dtype.kind in "bu" else pixels.astype(np.uint8))
    image.save(file, kind, **options)
    return file.getvalue()


def dataset(
    root: Path,
    *,
    task: str = "segmentation",
    counts: Mapping[str, Sequence[int]] | None = None,
    size: Callable[[int], tuple[int, int]] = lambda number: (24, 36),
    image_format: str = "png",
    classes: tuple[str, ...] = ("Fish", "Sugar"),
    change: Callable[[int, dict[str, Any]], dict[str, Any]] = lambda number, example: example,
    key_of: Callable[[str, int], str] = lambda split, number: f"{split}/{number:04d}",
) -> Path:
    """Writes shards of `counts[split]` records each; pixels and masks of an image follow from its number.

    `change` may alter the features of a record before it is written, `key_of` says its key. Returns the dataset's
    folder, `root / "dataset"`.
    """

    def example(number: int, key: str) -> dict[str, Any]:
        height, width = size(number)
        random = np.random.default_rng(number)
        file = encoded(cloudy(random, (width, height)), image_format)
        features: dict[str, Any] = {
            "image/encoded": file,
            "image/format": image_format.encode(),
            "image/height": height,
            "image/width": width,
            "image/channels": 3,
            "image/orientation": 1,
            "image/filename": f"{key}.{image_format}".encode(),
            "image/key": key.encode(),
            "image/blake3": checksum_of(file).encode(),
        }
        if task == "classification":
            label = number % len(classes)
            return {**features, "image/class/label": label, "image/class/text": classes[label].encode()}
        present = []
        for index, name in enumerate(classes):
            top, left, down, right = np.sort(random.integers(0, 25, (2, 2)), axis=0).reshape(-1)
            mask = np.zeros((height, width), np.uint8)
            mask[top * height // 24 : down * height // 24, left * width // 24 : right * width // 24] = 1
            runs = rle.encode(mask)
            features[mask_feature(name, "rle")] = encode.ints(runs.reshape(-1))
            features[mask_feature(name, "area")] = rle.area(runs)
            present += [index] if len(runs) else []
        texts = encode.byte_strings([classes[index].encode() for index in present])
        return {**features, "image/class/label": encode.ints(present), "image/class/text": texts}

    counts = {"train": [3, 2], "eval": [2]} if counts is None else counts
    planned, number = {}, 0
    plan_fields = {"kind": "ingest", "task": task, "classes": classes, "recipe": {}, "parent": "0" * 64}
    fingerprint = checksum_of(str(root).encode())
    place = staging.Staging.open(root / "staging", fingerprint)
    kinds: dict[str, str] = {}
    for split, shards in sorted(counts.items()):
        for index, count in enumerate(shards):
            outcomes = []
            for _ in range(count):
                key = key_of(split, number)
                features = change(number, example(number, key))
                payload = encode.encode_example(features)
                for name, values in records.decode_example(payload).items():
                    kinds[name] = "bytes" if isinstance(values, list) else values.dtype.name
                outcomes.append(staging.RecordResult(key, payload))
                number += 1
            planned[staging.PlannedShard(split, index, len(shards))] = outcomes
    plan = commit.DatasetPlan(**plan_fields, features=kinds, inputs=number, shards=tuple(planned))
    for shard, outcomes in planned.items():
        place.write_shard(shard, outcomes, facts=plan.facts(shard))
    commit.commit(place, plan, root / "dataset", {})
    return root / "dataset"


def source(root: Path, *, layout: str = "image_label", images: int = 24, seed: int = 0) -> dict[str, Any]:
    """Writes `root/images` and, but for class folders, `root/labels.csv`.

    Layouts: `image_label` (clouds), `image_id_class_id` and `image_class` (Severstal), `label_csv`, `class_folders`.
    """

    classes = ("Fish", "Sugar")
    masked = layout.startswith("image_")
    header = {
        "image_label": "Image_Label,EncodedPixels",
        "image_id_class_id": "ImageId_ClassId,EncodedPixels",
        "image_class": "ImageId,ClassId,EncodedPixels",
        "label_csv": "image,label",
        "class_folders": "",
    }[layout]
    rows = []
    for number in range(images):
        random = np.random.default_rng([seed, number])
        height, width = 20 + number % 5, 30
        label = number % len(classes)
        name = f"{classes[label]}/{number:03d}.jpg" if layout == "class_folders" else f"{number:03d}.jpg"
        file = root / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        cloudy(random, (width, height)).save(file, "jpeg")
        if layout == "label_csv":
            rows.append(f"{name},{classes[label]}")
        for index, text in enumerate(classes if masked else ()):
            mask = random.random((height, width)) < 0.3
            pairs = rle.to_pairs(rle.encode(mask)) if (number + index) % 3 else ""
            called = {"image_label": f"{name}_{text}", "image_class": f"{name},{index + 1}"}
            rows.append(f"{called.get(layout, f'{name}_{index + 1}')},{pairs}")
    raw: dict[str, Any] = {
        "task": "segmentation" if masked else "classification",
        "input": {"images": str(root / "images"), "classes": list(classes)},
        "shards": {"records": 7},
    }
    if header:
        (root / "labels.csv").write_text("\n".join([header, *rows]) + "\n")
        raw["input"]["labels"] = {"path": str(root / "labels.csv")}
    return raw
