"""The size of a dataset's images, before the first batch."""

from __future__ import annotations

from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.train_statistics import read_statistics
from shardwright.errors import DatasetError
from shardwright.images.read_header import read_header
from shardwright.tfrecords.records import decode_example

# The images of a dataset were checked when it was written.
_ANY_SIZE = 2**31


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
