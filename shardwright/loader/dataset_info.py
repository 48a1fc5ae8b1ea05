"""The size of a dataset's images, before the first batch."""

from __future__ import annotations

import numpy as np

from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.train_statistics import read_statistics
from shardwright.errors import DatasetError
from shardwright.images.read_header import read_header
from shardwright.tfrecords.records import decode_example

# The images of a dataset were checked when it was written.
_ANY_SIZE = 2**31
# Of so many shards a median is taken.
_SHARDS = 64
# Exif orientations from this one on exchange the sides.
_TURNED = 5


def image_size(dataset: ImageDataset) -> tuple[int, int]:
    """Returns height and width of a dataset's images: from its recipe, or from its first record.

    Raises:
        DatasetError: the dataset contains no record, or its images have several sizes.
    """
    if dataset.manifest.kind == "transform":
        # With `transform.resize: keep` the recipe has no size.
        size = dataset.manifest.recipe["size"] or read_statistics(dataset.root).get("size")
        if size is None:
            raise DatasetError(
                f"{dataset.root}: its images have several sizes (transform.resize: keep), and batches need one. Set "
                "transform.size and another transform.resize, or images.size for the ingest."
            )
        height, width = size
        return int(height), int(width)
    for split in dataset.splits:
        for _, payload in dataset.records(split):
            example = decode_example(payload)
            sides = [example.get(dataset.manifest.stored(f"image/{side}")) for side in ("height", "width")]
            if sides[0] is not None and sides[1] is not None:
                return int(sides[0][0]), int(sides[1][0])
            # Some presets store no size.
            encoded = b"".join(example[dataset.manifest.stored("image/encoded")])
            header = read_header(encoded, max_pixels=_ANY_SIZE)
            return header.height, header.width
    raise DatasetError(f"{dataset.root}: contains no record, so there is nothing to load.")


def median_size(dataset: ImageDataset) -> tuple[int, int]:
    """Returns the median height and the median width of a dataset's images, as they are displayed.

    Raises:
        DatasetError: the dataset contains no record, or is damaged.
    """
    shards = dataset.all_shards()
    sides = []
    for shard in shards[:: -(-len(shards) // _SHARDS) or 1]:
        numbers = dataset.facts(shard).numbers
        height, width, turned = numbers["height"], numbers["width"], numbers["orientation"] >= _TURNED
        sides.append(np.stack([np.where(turned, width, height), np.where(turned, height, width)]))
    known = np.concatenate(sides, axis=1) if sides else np.zeros((2, 0), np.int64)
    known = np.sort(known[:, known.min(axis=0) > 0], axis=1)
    if not known.size:  # Some presets store no size.
        return image_size(dataset)
    height, width = known[:, (known.shape[1] - 1) // 2].tolist()
    return height, width
