"""Counts the records of TFRecord files, without reading them where the count is known.

The count comes from the first of these that exists: the manifest of the file's dataset; its index; a name like those on
Kaggle (`flowers00-230.tfrec`, `00-512x512-798.tfrec`: the last number is the count); the headers of its records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import IO

from shardwright.dataset.manifest import IndexRow
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.shard_names import index_path
from shardwright.errors import DatasetError
from shardwright.storage import open_file
from shardwright.tfrecords.records import FOOTER_BYTES, HEADER_BYTES, frame_length, header_is_valid

# Another number must be before the count: in `data-1.tfrec`, 1 is not a count. In `-of-4`, 4 is the number of files.
_COUNTED_NAME = re.compile(r".*[0-9].*(?<!-of)-(?P<count>0|[1-9][0-9]*)\.tfrec")


def count_records(files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> int:
    """Counts the records of TFRecord files, all together.

    Args:
        files: paths, or one path; of this machine or URLs. Not compressed.

    Raises:
        DatasetError: a file is missing, damaged or compressed, and its count is not known.
    """
    paths = [files] if isinstance(files, (str, os.PathLike)) else files
    known: dict[str, dict[str, int]] = {}
    return sum(_count(os.fspath(path), known) for path in paths)


def _count(path: str, known: dict[str, dict[str, int]]) -> int:
    folder, name = os.path.split(path)
    root, split = os.path.split(folder)
    if root not in known:
        known[root] = _of_manifest(root)
    shard = f"{split}/{name}"
    try:
        with open_file(path) as file:
            size = file.seek(0, os.SEEK_END)
            if shard in known[root]:
                return known[root][shard]
            counted = _of_index(os.path.join(root, index_path(shard)), size)
            if counted is not None:
                return counted
            match = _COUNTED_NAME.fullmatch(name)
            # Each takes so many bytes at least.
            if match and int(match["count"]) * (HEADER_BYTES + FOOTER_BYTES) <= size:
                return int(match["count"])
            return _of_headers(path, file, size)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error}). Check the path.") from None


def _of_manifest(root: str) -> dict[str, int]:
    """Shard -> records, of a dataset whose files have the sizes in its manifest."""
    try:
        dataset = ImageDataset.open(root)
    except DatasetError:
        return {}
    return {shard.path: shard.records for shard in dataset.manifest.shards}


def _of_index(path: str, size: int) -> int | None:
    """Returns the lines of an index that ends where its shard does."""
    try:
        with open_file(path) as lines:
            count, end = 0, 0
            for line in lines:
                row = IndexRow.from_json(line)
                count, end = count + 1, row.offset + row.length
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return count if end == size else None


def _of_headers(path: str, file: IO[bytes], size: int) -> int:
    count, offset = 0, 0
    while offset < size:
        file.seek(offset)
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES or not header_is_valid(header) or offset + frame_length(header) > size:
            raise DatasetError(
                f"{path}: record {count} at offset {offset} is damaged or cut off, or this is not a TFRecord file. "
                "Decompress it, or fetch it again."
            )
        count, offset = count + 1, offset + frame_length(header)
    return count
