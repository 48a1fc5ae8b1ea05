"""Which slices there are, and how a batch is cut into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from tfx_bsl.arrow import table_util

from shardwright.dataset import Dataset
from shardwright.report.picks import key_folder

SliceFunction = Callable[[pa.RecordBatch], Iterator[tuple[str, pa.RecordBatch]]]

# Of more classes the first have statistics of their own, of more sources the most frequent: images are counted again.
MOST = 24
CLASS, SOURCE = "class/", "source/"
_CLASSES, _KEY = "image/class/text", "image/key"


def sources(dataset: Dataset) -> list[str]:
    """First folders of the keys, the most frequent ones first; none where all lie in one."""
    counts = Counter(
        key_folder(key)
        for split in dataset.splits
        for shard in dataset.shards(split)
        for key, _ in dataset.entries(shard)
    )
    order = sorted(counts, key=lambda folder: (-counts[folder], folder))
    return order[:MOST] if len(order) > 1 else []


def slices(dataset: Dataset, features: Sequence[str]) -> list[SliceFunction]:
    """How batches of a dataset are sliced.

    Args:
        dataset: what the batches are read from.
        features: names of the columns that they have.
    """
    stored = dataset.manifest.stored
    found = []
    classes = dataset.manifest.classes[:MOST]
    if stored(_CLASSES) in features and len(classes) > 1:
        wanted = {name.encode(): f"{CLASS}{name}" for name in classes}
        found.append(_slicer(stored(_CLASSES), wanted, _itself))
    folders = sources(dataset) if stored(_KEY) in features else []
    # Where folders are the classes they would say the same twice.
    if folders and set(folders) != set(classes):
        wanted = {folder.encode(): f"{SOURCE}{folder or '(none)'}" for folder in folders}
        found.append(_slicer(stored(_KEY), wanted, _folder))
    return found


def _itself(value: bytes) -> bytes:
    return value


def _folder(key: bytes) -> bytes:
    return key_folder(key.decode("utf-8", "replace")).encode()


def _slicer(column: str, wanted: Mapping[bytes, str], kind: Callable[[bytes], bytes]) -> SliceFunction:
    """A function that cuts a batch by the values of a column of texts; a row may be in several slices, or in none."""

    def cut(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        place = batch.schema.get_field_index(column)
        rows: dict[bytes, list[int]] = {}
        for row, values in enumerate(batch.column(place).to_pylist() if place >= 0 else ()):
            for value in {kind(value) for value in values or ()}:
                rows.setdefault(value, []).append(row)
        for value in sorted(rows):
            if value in wanted:
                yield wanted[value], table_util.RecordBatchTake(batch, pa.array(rows[value], pa.int32()))

    return cut
