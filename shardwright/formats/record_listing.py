"""The records of TFRecord files as a listing: an image is a part of a file, and every record an input.

A key is the record's own feature, where it is safe and not yet taken; else `<file>/<number>`.
Compressed files, and other containers, whose samples become records, are unpacked to a temporary folder, since nothing
in them can be read by its place.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice
from typing import IO, NamedTuple

from shardwright.dataset.manifest import MANIFEST_FILE, Manifest
from shardwright.dataset.tfds_files import FEATURES_FILE, INFO_FILE
from shardwright.errors import AnnotationError, DatasetError, UsageError
from shardwright.formats import array_records, parquet_images, webdataset
from shardwright.formats.export_record import RECORD_FILE
from shardwright.formats.parquet import ParquetFile
from shardwright.formats.parquet_images import Objects
from shardwright.formats.parquet_pages import is_parquet
from shardwright.formats.record_roles import KEY, Roles, Sampled, detect_roles
from shardwright.formats.record_scan import FileScan, features_of, scan_file
from shardwright.formats.webdataset import CLASSES_FILE, read_classes
from shardwright.storage import Listing, Refusal, map_threads, open_file, part_path, read_bytes, read_start
from shardwright.storage.scratch import scratch_file, scratch_folder
from shardwright.tfrecords.scan import UNPACKING, begins_as_records, is_compressed, scan_records
from shardwright.untrusted.budget import OverBudget

NOT_RECORDS = "not_records"
TAR, PARQUET, ARRAY_RECORD = "tar", "Parquet", "ArrayRecord"
# What a file of each container of samples is, as a part of a sentence.
MEANING = {
    TAR: "is a tar file of samples (WebDataset)",
    PARQUET: "is a Parquet file with images inside",
    ARRAY_RECORD: "is an ArrayRecord file",
}

# The first bytes of a compressed file are tables; the first record's header comes after them.
_LOOK_INTO = 4096
_FILES_SAMPLED, _RECORDS_SAMPLED = 8, 8
# Files read concurrently. To unpack an image takes ten times as long as to scan past one, so threads share the work.
_SCANNED_AT_ONCE = max(4, os.cpu_count() or 1)
# Files next to records that describe them: those of exports and of TFDS.
_DESCRIPTIONS = (CLASSES_FILE, RECORD_FILE, FEATURES_FILE, INFO_FILE)
_NAMES = ".labels.txt"
_ENDINGS = (".tfrecord", ".tfrecords", ".tfrec", ".record", ".records", ".gz")


@dataclass
class RecordFiles:
    """The content of TFRecord files.

    Attributes:
        files: the files.
        listing: the images of the records that can be used, by key.
        roles: which feature is what.
        scan: the summary of all files, without the lists that have an entry per record.
        positions: for each file, number of a record -> its position in `listing`, -1 for one that cannot be used.
        labeled: one byte per key; see `FileScan`.
        refused: records that cannot be used.
        paths: for each file, where its unpacked bytes are: its name, or an absolute path.
        notes: what was detected, for the user.
        scratch: holds what was unpacked until it is dropped.
        classes: names of the classes in order, where the files, or one next to them, state them.
    """

    files: Listing
    listing: Listing
    roles: Roles
    scan: FileScan
    positions: list[array[int]]
    labeled: bytearray
    refused: list[Refusal]
    paths: list[str]
    notes: tuple[str, ...]
    scratch: tempfile.TemporaryDirectory[str] | None = None
    classes: tuple[str, ...] = ()

    def open(self, number: int) -> IO[bytes]:
        """Opens a file, unpacked."""
        return open_file(os.path.join(self.files.root, self.paths[number]), self.files.pin(number))


def holds_records(files: Listing) -> str:
    """Returns why a listing is of TFRecord files or other containers, not of images, or nothing.

    The first files decide.

    Raises:
        UsageError: see `_container_of`.
    """
    for i in range(min(len(files.keys), _FILES_SAMPLED)):
        start = _start(files, i)
        if begins_as_records(start):
            return f"{files.keys[i]} begins as a TFRecord file does"
        if kind := _container_of(files, i, start):
            return f"{files.keys[i]} {MEANING[kind]}"
    return ""


def list_records(found: Listing, *, task: str, columns: Mapping[str, str]) -> RecordFiles:
    """Scans all files once.

    Raises:
        UsageError: no record is a tf.train.Example; or see `detect_roles`.
    """
    files, containers, refused = _record_files(found)
    paths = list(files.names)
    unpacked = [i for i in range(len(files.keys)) if i in containers or is_compressed(_start(files, i))]
    scratch = scratch_folder(sum(files.sizes[i] for i in unpacked)) if unpacked else None
    for i in unpacked:
        assert scratch is not None
        paths[i] = os.path.join(scratch.name, f"{i:06d}", os.path.basename(files.names[i]))
        os.makedirs(os.path.dirname(paths[i]))
    described = _describe(found, files, containers)

    def unpack(number: int) -> None:
        with _unpacked_file(files, number, paths[number]) as copy:
            _write_records(containers[number], files, number, copy, described)

    for _ in map_threads(unpack, list(containers), _SCANNED_AT_ONCE):
        pass

    def opened(number: int) -> IO[bytes]:
        return open(paths[number], "rb") if number in containers else open_file(files.path(number), files.pin(number))

    roles = detect_roles(_samples(files, opened), task, columns)

    def scan(number: int) -> FileScan:
        with opened(number) as file:
            if paths[number] == files.names[number] or number in containers:
                return scan_file(file, None, files.keys[number], roles)
            with _unpacked_file(files, number, paths[number]) as copy:
                return scan_file(file, copy, files.keys[number], roles)

    scans = map_threads(scan, range(len(files.keys)), _SCANNED_AT_ONCE)
    records = _join(files, paths, roles, scans, refused, trusted=KEY in columns)
    if scratch is not None:
        kinds = set(containers.values())
        kinds |= {"compressed"} if len(unpacked) > len(containers) else set()
        records.notes += (f"tfrecord: {' and '.join(sorted(kinds))} files are unpacked to a temporary folder",)
    order = (f"tfrecord: classes in the order of {described.source}",) if described.classes else ()
    records.notes += (*described.objects.notes(), *order)
    records.scratch, records.classes = scratch, described.classes
    return records


def _record_files(found: Listing) -> tuple[Listing, dict[int, str], list[Refusal]]:
    """Returns the files to be scanned, which of them are containers, and the refused rest.

    Only shards of a dataset of ours are input.
    """
    shards = frozenset[str]()
    if MANIFEST_FILE in found.keys:
        at = found.keys.index(MANIFEST_FILE)
        with suppress(DatasetError, OSError, UnicodeDecodeError):  # The manifest of another program.
            manifest = Manifest.from_json(read_bytes(found.path(at), found.pin(at)).decode("utf-8"))
            shards = frozenset(shard.path for shard in manifest.shards)
    kept, containers, refused = list[int](), dict[int, str](), list(found.refused)
    for i, key in enumerate(found.keys):
        if shards and key not in shards:
            continue
        start = _start(found, i)
        if kind := _container_of(found, i, start):
            containers[len(kept)] = kind
            kept.append(i)
        elif found.sizes[i] == 0 or key.lower().endswith(_ENDINGS) or begins_as_records(start):
            kept.append(i)
        elif os.path.basename(key) not in _DESCRIPTIONS and not key.endswith(_NAMES):
            refused.append(Refusal(key, NOT_RECORDS, "the file is not a TFRecord file"))
    return found.part(kept), containers, refused


def _start(files: Listing, position: int) -> bytes:
    try:
        return read_start(files.path(position), _LOOK_INTO, files.pin(position))
    except OSError:
        return b""


class _Described(NamedTuple):
    """The description of a set of containers.

    Attributes:
        classes: names of the classes in order, where something states them.
        source: what states them.
        objects: the boxes in lists of Parquet files.
    """

    classes: tuple[str, ...]
    source: str
    objects: Objects


def _container_of(files: Listing, number: int, start: bytes) -> str:
    """Returns the kind of a file of samples, one of `MEANING`; empty where it is something else, such as a table.

    Raises:
        UsageError: it cannot be read, or the package that reads it is not installed.
    """
    if webdataset.begins_as_tar(start):
        return TAR
    if array_records.begins_as_array_record(start):
        return ARRAY_RECORD
    return PARQUET if is_parquet(start) and _parquet(files, number).has_images else ""


def _describe(found: Listing, files: Listing, containers: Mapping[int, str]) -> _Described:
    """Returns the description of a set of files.

    Args:
        found: all files of the input; tar files have the classes in a file next to them.
        files: those of records.
        containers: their numbers -> their kinds.

    Raises:
        UsageError: they cannot be read.
    """
    kinds = {*containers.values()}
    names = dict.fromkeys(_listed_classes(found) if TAR in kinds else ())
    opened = [_parquet(files, i) for i, kind in containers.items() if kind == PARQUET]
    names |= dict.fromkeys(name for file in opened for name in parquet_images.classes_in(file))
    objects = parquet_images.find_objects(opened)
    names |= dict.fromkeys(objects.classes)
    return _Described(tuple(names), CLASSES_FILE if kinds == {TAR} else "the files", objects)


def _listed_classes(found: Listing) -> tuple[str, ...]:
    """Returns the names in the one file of classes that is listed, or else next to the files."""
    files = [i for i, key in enumerate(found.keys) if os.path.basename(key) == CLASSES_FILE]
    if len(files) == 1:
        return read_classes(read_bytes(found.path(files[0]), found.pin(files[0])), found.path(files[0]))
    path = os.path.join(found.root, CLASSES_FILE)
    try:
        return () if files else read_classes(read_bytes(path), path)
    except OSError:
        return ()


def _write_records(kind: str, files: Listing, number: int, copy: IO[bytes], described: _Described) -> None:
    """Writes the samples of a file as TFRecords.

    Raises:
        UsageError: it is damaged, or a sample cannot be understood.
    """
    path, pin, name = files.path(number), files.pin(number), files.keys[number]
    if kind == TAR:
        with open_file(path, pin) as tar:
            webdataset.write_records(tar, copy, name, described.classes)
    elif kind == PARQUET:
        parquet_images.write_records(_parquet(files, number), copy, name, described.classes, described.objects)
    else:
        array_records.write_records(path, pin, copy, name)


def _parquet(files: Listing, number: int) -> ParquetFile:
    return ParquetFile.open(files.path(number), files.pin(number))


@contextmanager
def _unpacked_file(files: Listing, number: int, path: str) -> Iterator[IO[bytes]]:
    """Opens the file of the temporary folder that takes what a file unpacks to."""
    most = partial(UNPACKING.check_unpacked, size=files.sizes[number])
    try:
        with scratch_file(path, most) as copy:
            yield copy
    except OverBudget as error:
        raise UsageError(f"{files.keys[number]}: {error}. Leave it out, or write it unpacked.") from None


def _samples(files: Listing, opened: Callable[[int], IO[bytes]]) -> list[Sampled]:
    samples = []
    problem = ""
    for i in range(min(len(files.keys), _FILES_SAMPLED)):
        with opened(i) as file:
            for record in islice(scan_records(file), _RECORDS_SAMPLED):
                where = f"{files.keys[i]}, {record.where}"
                try:
                    samples.append(Sampled(where, features_of(record)))
                except AnnotationError as error:
                    problem = problem or f"{where}: {error}"
    if not samples:
        found = f"no tf.train.Example among the first records. {problem}" if problem else "no records"
        raise UsageError(f"input.images: {files.root}: {found}.")
    return samples


def _join(
    files: Listing, paths: list[str], roles: Roles, scans: Iterable[FileScan], refused: list[Refusal], *, trusted: bool
) -> RecordFiles:
    """Puts the scans of files together: one summary, and one listing of all records by key."""
    whole, counts = FileScan(), []
    refused_records: list[Refusal] = []
    for file, scan in zip(files.keys, scans, strict=True):
        whole.add(scan)
        counts.append(len(scan.keys))
        problems = scan.problems.items()
        refused_records += [Refusal(f"{file}/{record}", code, reason) for record, (code, reason) in problems]
    numbered = [f"{file}/{number}" for file, count in zip(files.keys, counts, strict=True) for number in range(count)]
    keys = _keys(whole, numbered, set(files.keys), trusted=trusted)
    usable = [i for i, start in enumerate(whole.starts) if start >= 0]
    usable.sort(key=keys.__getitem__)
    file_of = [number for number, count in enumerate(counts) for _ in range(count)]
    listing = Listing(
        files.root,
        [keys[i] for i in usable],
        [part_path(paths[file_of[i]], whole.starts[i], whole.starts[i] + whole.sizes[i]) for i in usable],
        [whole.sizes[i] for i in usable],
        refused,
        tuple(files.pins[file_of[i]] for i in usable) if files.pins else (),
    )
    position_of = array("q", [-1]) * len(keys)
    for position, i in enumerate(usable):
        position_of[i] = position
    ends = list(accumulate(counts))
    positions = [position_of[end - count : end] for count, end in zip(counts, ends, strict=True)]
    labeled = bytearray(whole.labeled[i] for i in usable)
    notes: tuple[str, ...] = (roles.note(),)
    if unnamed := sum(keys[i] == numbered[i] for i in usable):
        notes += (f"tfrecord: {unnamed} records have no safe key; they are called FILE/NUMBER",)
    # The listing has them now.
    whole.keys, whole.starts, whole.sizes, whole.labeled = [], array("q"), array("q"), bytearray()
    return RecordFiles(files, listing, roles, whole, positions, labeled, refused_records, paths, notes)


def _keys(scan: FileScan, numbered: Sequence[str], files: Collection[str], *, trusted: bool) -> list[str]:
    """Returns a key for every record: its own, if nothing else is called so, or file and number."""
    own = scan.keys
    usable = sum(start >= 0 for start in scan.starts)
    if not trusted and 2 * len(set(own) - {""}) < usable:
        return list(numbered)  # A feature that names groups of records.
    used: set[str] = set()
    keys = []
    for name, fallback, start in zip(own, numbered, scan.starts, strict=True):
        file, _, number = name.rpartition("/")
        # No record's own key may be what another one is called for want of a key.
        keys.append(fallback if not name or name in used or (file in files and number.isdigit()) else name)
        if start >= 0:
            used.add(keys[-1])
    return keys
