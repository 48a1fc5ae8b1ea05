"""Finds and deletes traces of images that are deleted from a dataset: probe rows, other datasets, models, reports."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from shardwright.checksum import image_feature
from shardwright.dataset.random_access import RecordLocation, read_record
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.ingest.copying import INPUTS_FILE, read_inputs
from shardwright.ingest.known_files import forget_rows
from shardwright.lineage.ancestry import EVALUATION, MODEL, Artifact, Family
from shardwright.lineage.places import run_root_of
from shardwright.staging.staged import PROBED
from shardwright.storage import is_remote, open_file, read_bytes
from shardwright.storage.mirror import local_folder
from shardwright.tfrecords.records import find_feature

# Kinds of artifacts that show single images. Those of a training are in TensorBoard.
_SHOWING = (EVALUATION, "predictions", "training", "report", "gate_decision")
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


def datasets_containing(
    family: Family, keys: Collection[str], contents: Collection[bytes] = ()
) -> tuple[list[Artifact], list[str]]:
    """Finds the datasets of a family that contain images, also under other keys, as after a folder was renamed.

    Args:
        family: artifacts, some of them datasets.
        keys: keys of the images.
        contents: content IDs of their files; records of transformed datasets have them, too.

    Returns:
        The datasets, and the places of those that cannot be read.
    """
    found, damaged = [], []
    for one in family.artifacts.values():
        if one.digest:
            try:
                dataset = ImageDataset.open(one.place)
                listed = any(key in keys for split in dataset.splits for key in dataset.keys(split))
                if listed or (contents and any(True for _ in copies_in(dataset, (), contents))):
                    found.append(one)
            except DatasetError:
                damaged.append(one.place)
    return found, damaged


def copies_in(dataset: ImageDataset, keys: Collection[str], contents: Collection[bytes]) -> Iterator[str]:
    """Yields the other keys of a dataset whose records are of files with some content IDs.

    Args:
        dataset: the dataset; all its records are read.
        keys: keys that are left out.
        contents: the content IDs.

    Raises:
        DatasetError: it is damaged.
    """
    name = dataset.manifest.stored(image_feature(dataset.manifest.image_checksum))
    wanted = {content.hex().encode("ascii") for content in contents}
    for split in dataset.splits:
        for key, payload in dataset.records(split):
            if key not in keys and not wanted.isdisjoint(map(bytes, find_feature(payload, name) or ())):
                yield key


def trained_on(family: Family, datasets: Iterable[Artifact]) -> list[Artifact]:
    """Returns the models that were trained on datasets, or begun with the weights of one that was."""
    return _made_of(family, datasets, (MODEL,))


def shown_in(family: Family, datasets: Iterable[Artifact]) -> list[str]:
    """Returns the places with pictures, keys or predictions of datasets: artifacts, and reports of `shardwright`."""
    datasets = list(datasets)
    return [*(one.place for one in _made_of(family, datasets, _SHOWING)), *_reports_of(datasets)]


def _made_of(family: Family, datasets: Iterable[Artifact], kinds: Collection[str]) -> list[Artifact]:
    found = {one.place for one in datasets}
    return [
        made
        for made in family.artifacts.values()
        if made.kind in kinds and any(one.place in found for one in family.ancestors(made, without=_ONLY_COMPARED))
    ]


def _reports_of(datasets: Sequence[Artifact]) -> list[str]:
    """Returns the HTML files next to datasets on this machine, and in their runs' folders, that are about them."""
    places = [one.place for one in datasets if not is_remote(one.place)]
    folders = {os.path.dirname(place) for place in places} | set(filter(None, map(run_root_of, places)))
    digests = [one.digest.encode() for one in datasets]
    pages = sorted(page for folder in folders for page in Path(folder).glob("*.html"))
    return [str(page) for page in pages if _mentions(page, digests)]


def _mentions(page: Path, digests: Iterable[bytes]) -> bool:
    try:
        data = read_bytes(str(page))
    except OSError:
        return False
    return any(digest in data for digest in digests)
