"""`python -m benchmarks.readers DATASET SPLIT`: compares the pixels, labels and masks that all readers see.

The reference is `shardwright.source`. Compared with it are `load`, TFDS, grain and PyTorch, as far as they are
installed. TFDS decodes JPEG with a faster inverse DCT, so its pixels may differ by some levels. Exit code 1 if a
reader sees something else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from shardwright.dataset.manifest import MASKS, mask_feature
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.source import DatasetSource
from shardwright.masks.rle import draw, from_flat

# Levels by which the two inverse DCTs of libjpeg may differ.
_FAST_DCT = 8
Item = dict[str, Any]


def by_load(dataset: ImageDataset, source: DatasetSource) -> Iterator[Item]:
    """Yields what `load` reads; images must have one size."""
    from shardwright.loader import load

    keys, split = dataset.keys(source.split), source.split
    name = "masks" if dataset.manifest.labels == MASKS else "labels"
    for images, targets, *_, positions in load(dataset, split, 1, normalize="none", ids=True, drop_remainder=False):
        for image, target, position in zip(images.numpy(), targets.numpy(), positions.numpy(), strict=True):
            one = name if target.ndim else "label"
            yield {"key": keys[int(position)], "image": image, one: target}


def by_tfds(dataset: ImageDataset, source: DatasetSource) -> Iterator[Item]:
    """Yields what TFDS reads."""
    tfds = import_module("tensorflow_datasets")
    manifest = dataset.manifest
    names = {name: manifest.stored(name) for name in ("image/key", "image/encoded", "image/class/label")}
    for example in tfds.as_numpy(tfds.builder_from_directory(dataset.root).as_dataset(split=source.split)):
        item = {"key": example[names["image/key"]].decode(), "image": example[names["image/encoded"]]}
        if manifest.labels == MASKS and not manifest.ignores:
            runs = [from_flat(example[manifest.stored(mask_feature(name))].reshape(-1)) for name in manifest.classes]
            item["masks"] = np.stack([draw(one, *item["image"].shape[:2]) for one in runs], axis=-1)
        elif manifest.labels == "single":
            label = np.ravel(example[names["image/class/label"]])
            item["label"] = label[0] if len(label) else -1
        yield item


def by_grain(dataset: ImageDataset, source: DatasetSource) -> Iterator[Item]:
    """Yields what grain reads."""
    del dataset
    yield from import_module("grain.python").MapDataset.source(source).shuffle(seed=1)


def by_pytorch(dataset: ImageDataset, source: DatasetSource) -> Iterator[Item]:
    """Yields what PyTorch reads in worker processes."""
    del dataset
    for batch in import_module("torch.utils.data").DataLoader(source, batch_size=1, num_workers=2, timeout=60):
        yield {name: value[0] if name == "key" else value[0].numpy() for name, value in batch.items()}


READERS: dict[str, Callable[[ImageDataset, DatasetSource], Iterator[Item]]] = {
    "load": by_load,
    "tfds": by_tfds,
    "grain": by_grain,
    "pytorch": by_pytorch,
}


def compare(dataset: ImageDataset, split: str) -> dict[str, str]:
    """Returns reader -> what it sees differently, empty if nothing; a reader that is not installed is left out."""
    source = DatasetSource(dataset, split)
    expected = {item["key"]: item for item in source}
    found = {}
    for name, reader in READERS.items():
        try:
            found[name] = _difference(reader(dataset, source), expected, _FAST_DCT if name == "tfds" else 0)
        except ImportError:
            continue
    return found


def _difference(items: Iterator[Item], expected: dict[str, Item], levels: int) -> str:
    seen = set()
    for item in items:
        seen.add(item["key"])
        for name, value in item.items():
            known = expected[item["key"]][name]
            if name == "image":
                largest = np.abs(np.asarray(value, np.int64) - known).max()
                if largest > levels:
                    return f"pixels of {item['key']} differ by {largest}"
            elif not np.array_equal(value, known):
                return f"{name} of {item['key']} differ"
    missing = expected.keys() - seen
    return f"{len(missing)} images are missing" if missing else ""


def main() -> int:
    """Compares all readers of the split that the command line names."""
    found = compare(ImageDataset.open(sys.argv[1]), sys.argv[2])
    for name, difference in found.items():
        print(f"{name}: {difference or 'the same'}")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
