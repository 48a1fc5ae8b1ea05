"""Finds and deletes traces of images that are deleted from a dataset: probe rows, other datasets, models."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from shardwright.checksum import image_feature
from shardwright.dataset.random_access import RecordLocation, read_record
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.ingest.copying import INPUTS_FILE, read_inputs
from shardwright.ingest.known_files import forget_rows
from shardwright.lineage.ancestry import MODEL, Artifact, Family
from shardwright.staging.staged import PROBED
from shardwright.storage import is_remote, open_file
from shardwright.storage.mirror import local_folder
from shardwright.tfrecords.records import find_feature

# Roles of ancestors that a model was not trained on.
_ONLY_COMPARED = ("previous", "reference", "baseline")


def contents_of(dataset: ImageDataset, keys: Collection[str]) -> set[bytes]:
    """Returns the content IDs of the original files of images, from their records and from the dataset's origins."""
    contents: set[bytes] = set()
    name = dataset.manifest.stored(image_feature(dataset.manifest.image_checksum))
    shards = [shard for split in dataset.splits for shard in dataset.shards(split)]
    for number, shard in enumerate(shards):
        for key, offset in dataset.entries(shard):
            if key in keys:
                found = find_feature(read_record(shards, RecordLocation(number, offset)), name)
                contents.update(bytes.fromhex(bytes(value).decode("ascii")) for value in found or ())
    try:
        with open_file(os.path.join(dataset.root, INPUTS_FILE)) as lines:
            contents.update(row.content_id for row in read_inputs(lines) if row.key in keys)
    except (OSError, ValueError, TypeError, KeyError):
        pass  # A dataset need not have them, and its records have the hashes of all written images.
    return contents


def delete_probe_rows(staging_root: str, contents: Collection[bytes]) -> int:
    """Deletes the probed values of files; returns the number of rows."""
    if not is_remote(staging_root) and not os.path.isdir(staging_root):
        return 0
    return forget_rows(os.path.join(local_folder(staging_root), PROBED), contents)


def datasets_containing(family: Family, keys: Collection[str]) -> list[Artifact]:
    """Returns the datasets of a family whose indexes contain one of the images; skips damaged ones."""
    return [one for one in family.artifacts.values() if one.digest and any(key in keys for key in _keys(one.place))]


def trained_on(family: Family, datasets: Iterable[Artifact]) -> list[Artifact]:
    """Returns the models that were trained on datasets, or begun with the weights of one that was."""
    found = {one.place for one in datasets}
    return [
        model
        for model in family.artifacts.values()
        if model.kind == MODEL and any(one.place in found for one in family.ancestors(model, without=_ONLY_COMPARED))
    ]


def _keys(place: str) -> Iterator[str]:
    try:
        dataset = ImageDataset.open(place)
        for split in dataset.splits:
            yield from dataset.keys(split)
    except DatasetError:
        return
