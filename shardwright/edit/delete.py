"""Finds and deletes traces of images that are deleted from a dataset: probe rows, other datasets, models, reports."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from shardwright.dataset.ledger import DUPLICATE, WRITTEN
from shardwright.dataset.random_access import RecordLocation, read_record
from shardwright.dataset.reader import ImageDataset
from shardwright.duplicates.find import CONFLICTING, KeptImage, kept_image_of
from shardwright.errors import DatasetError
from shardwright.ingest.copying import INPUTS_FILE, read_inputs
from shardwright.ingest.known_files import forget_rows
from shardwright.ingest.select_spans import DELIVERED_AGAIN, SUPERSEDED
from shardwright.lineage.ancestry import ARTIFACTS, EVALUATION, MODEL, Artifact, Family, find_files, run_root_of
from shardwright.staging.staged import PROBED
from shardwright.storage import is_remote, open_file, read_bytes
from shardwright.storage.checksum import image_feature
from shardwright.storage.mirror import local_folder
from shardwright.tfrecords.records import find_feature
from shardwright.tfrecords.wire import varint

# Kinds of artifacts that show single images. Those of a training are in TensorBoard.
_SHOWING = (EVALUATION, "predictions", "training", "report", "gate_decision")
# Roles of ancestors that a model was not trained on.
_ONLY_COMPARED = ("previous", "reference", "baseline")
# Files of TFDV, of any pipeline: statistics, schemas, also a user's own, and anomalies.
_STATISTICS, _SCHEMA = "FeatureStats.pb", "schema.pbtxt"
_OF_TFDV = (_STATISTICS, _SCHEMA, "SchemaDiff.pb")


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


class Copies(NamedTuple):
    """Other keys of images in the ledger of a dataset.

    Attributes:
        same_bytes: keys of files of the same bytes.
        alike: keys of files that show the same, and of other deliveries of an image.
        unknown: keys of duplicates for which the image that was kept is not known.
    """

    same_bytes: set[str]
    alike: set[str]
    unknown: set[str]


def copies_in_ledger(dataset: ImageDataset, keys: Collection[str]) -> Copies:
    """Finds the duplicates of images, and the images that were kept for them, by the rows of the ledger."""
    pairs: list[tuple[str, KeptImage]] = []
    unknown = set[str]()
    for row in dataset.ledger():
        if row.status != DUPLICATE and row.code != CONFLICTING:
            continue
        if row.code in (DELIVERED_AGAIN, SUPERSEDED):
            # Its key begins with the folder of its delivery.
            kept_as = (row.key[place + 1 :] for place, character in enumerate(row.key) if character == "/")
            pairs += [(row.key, KeptImage(key, row.code == DELIVERED_AGAIN)) for key in kept_as]
        elif (kept := kept_image_of(row.reason)) is not None:
            pairs.append((row.key, kept))
        elif row.key in keys:
            unknown.add(row.key)
    same = _joined(keys, [(key, kept.key) for key, kept in pairs if kept.same_bytes])
    alike = _joined(same, [(key, kept.key) for key, kept in pairs])
    there = {row.key for row in dataset.ledger() if row.key in alike}
    return Copies(same & there - set(keys), alike & there - same, unknown)


def _joined(keys: Collection[str], pairs: Sequence[tuple[str, str]]) -> set[str]:
    """Returns keys and all that are tied to them: a duplicate may be kept for another one."""
    found, before = set(keys), -1
    while len(found) != before:
        before = len(found)
        for pair in pairs:
            if not found.isdisjoint(pair):
                found.update(pair)
    return found


class Holding(NamedTuple):
    """The datasets of a family that are about some images.

    Attributes:
        records: those with records of the images.
        names: those that name them in their ledgers only.
        damaged: places of those that cannot be read.
    """

    records: list[Artifact]
    names: list[Artifact]
    damaged: list[str]


def datasets_containing(family: Family, keys: Collection[str], contents: Collection[bytes] = ()) -> Holding:
    """Finds the datasets of a family that contain images, also under other keys, as after a folder was renamed.

    Args:
        family: artifacts, some of them datasets.
        keys: keys of the images.
        contents: content IDs of their files; records of transformed datasets have them, too.
    """
    found = Holding([], [], [])
    for one in family.artifacts.values():
        if one.digest:
            try:
                dataset = ImageDataset.open(one.place)
                rows = {row.status for row in dataset.ledger() if row.key in keys}
                if WRITTEN in rows or (contents and any(True for _ in copies_in(dataset, (), contents))):
                    found.records.append(one)
                elif rows:
                    found.names.append(one)
            except DatasetError:
                found.damaged.append(one.place)
    return found


def files_naming(dataset: ImageDataset, names: Collection[str], search: Iterable[str]) -> Iterator[str]:
    """Yields files of statistics, schemas and anomalies that contain one of some texts.

    Args:
        dataset: they are sought next to it, or in the folder of its run.
        names: keys, names of files, checksums.
        search: further folders and URLs.
    """
    run_root = run_root_of(dataset.root)
    files = set[str]()
    if run_root is not None:
        files.update(find_files(os.path.join(run_root, ARTIFACTS), _OF_TFDV))
    elif not is_remote(dataset.root):
        next_to = Path(dataset.root).parent
        files.update(str(file) for ending in _OF_TFDV for file in next_to.glob(f"*{ending}"))
    for folder in search:
        files.update(find_files(folder if is_remote(folder) else os.path.abspath(folder), _OF_TFDV))
    for file in sorted(files):
        wanted = [form for name in names for form in _stored_forms(file, name)]
        try:
            data = read_bytes(file)
        except OSError:
            continue
        if any(form in data for form in wanted):
            yield file


def _stored_forms(file: str, name: str) -> Iterator[bytes]:
    """Yields the bytes by which a file contains a text: with its length, in quotes, or within a sentence."""
    data = name.encode("utf-8")
    if file.endswith(_STATISTICS):
        yield varint(len(data)) + data
    elif file.endswith(_SCHEMA):
        text = data.replace(b"\\", rb"\\").replace(b'"', rb"\"")
        for quoted in {text, text.replace(b"'", rb"\'")}:
            yield b'"' + quoted + b'"'
            yield b'"' + b"".join(bytes([c]) if 32 <= c < 127 else b"\\%03o" % c for c in quoted) + b'"'
    else:
        yield data


def copies_in(dataset: ImageDataset, keys: Collection[str], contents: Collection[bytes]) -> Iterator[str]:
    """Yields the other keys of a dataset whose records are of files with some content IDs.

    Args:
        dataset: the dataset. Its facts have the beginning of each content ID; records are read where that is one of
            those sought, or unknown.
        keys: keys that are left out.
        contents: the content IDs.

    Raises:
        DatasetError: it is damaged.
    """
    name = dataset.manifest.stored(image_feature(dataset.manifest.image_checksum))
    if not contents or name not in dataset.manifest.features:
        return
    wanted = {content.hex().encode("ascii") for content in contents}
    beginnings = {0, *(int.from_bytes(content[:8], "big") for content in contents)}
    shards = [shard for split in dataset.splits for shard in dataset.shards(split)]
    for number, shard in enumerate(shards):
        for (key, offset), beginning in zip(dataset.entries(shard), dataset.facts(shard).content.tolist(), strict=True):
            if beginning in beginnings and key not in keys:
                payload = read_record(shards, RecordLocation(number, offset))
                if not wanted.isdisjoint(map(bytes, find_feature(payload, name) or ())):
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
    pages = []
    for page in sorted(page for folder in folders for page in Path(folder).glob("*.html")):
        with suppress(OSError):
            data = read_bytes(str(page))
            pages += [str(page)] if any(digest in data for digest in digests) else []
    return pages
