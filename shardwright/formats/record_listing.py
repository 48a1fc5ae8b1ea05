"""The records of TFRecord files as a listing: an image is a part of a file, and every record an input.

A key is the record's own feature, where it is safe and not yet taken; else `<file>/<number>`.
Compressed files, and other containers (`record_containers`), are unpacked to a temporary folder, since nothing in them
can be read by its place.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import IO

from shardwright.dataset.manifest import MANIFEST_FILE, Manifest
from shardwright.dataset.tfds_files import FEATURES_FILE, INFO_FILE
from shardwright.errors import DatasetError, UsageError
from shardwright.formats.export_record import RECORD_FILE
from shardwright.formats.record_containers import Container, Packed, container_of, describe
from shardwright.formats.record_roles import KEY, Roles, Sampled, detect_roles
from shardwright.formats.record_scan import FileScan, UnusableError, features_of, scan_file
from shardwright.formats.webdataset import CLASSES_FILE
from shardwright.storage import Listing, Refusal, map_threads, open_file, part_path, read_bytes, read_start
from shardwright.storage.scratch import scratch_file, scratch_folder
from shardwright.tfrecords.scan import UNPACKING, begins_as_records, is_compressed, scan_records
from shardwright.untrusted.budget import OverBudget

NOT_RECORDS = "not_records"

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
        scratch: holds what was unpacked until it is dropped.
        notes: what was detected, for the user.
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
    scratch: tempfile.TemporaryDirectory[str] | None
    notes: tuple[str, ...]
    classes: tuple[str, ...] = ()

    def open(self, number: int) -> IO[bytes]:
        """Opens a file, unpacked."""
        return open_file(os.path.join(self.files.root, self.paths[number]), self.files.pin(number))


def holds_records(files: Listing) -> str:
    """Returns why a listing is of TFRecord files or other containers, not of images, or nothing.

    The first files decide.

    Raises:
        UsageError: see `container_of`.
    """
    for i in range(min(len(files.keys), _FILES_SAMPLED)):
        start = _start(files, i)
        if begins_as_records(start):
            return f"{files.keys[i]} begins as a TFRecord file does"
        if container := container_of(_packed(files, i), start):
            return f"{files.keys[i]} {container.means}"
    return ""


def list_records(found: Listing, *, task: str, columns: Mapping[str, str]) -> RecordFiles:
    """Scans all files once.

    Args:
        found: the files.
        task: `segmentation` or `classification`.
        columns: `input.labels.columns`.

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
    packed = [(_packed(files, i), container) for i, container in containers.items()]
    described = describe(found, packed)

    def unpack(number: int) -> None:
        with _unpacked_file(files, number, paths[number]) as copy:
            containers[number].write(_packed(files, number), copy, described)

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

    whole = _Whole(files, roles, paths, trusted=KEY in columns)
    for number, one in enumerate(map_threads(scan, range(len(files.keys)), _SCANNED_AT_ONCE)):
        whole.add(number, one)
    listing, positions, labeled = whole.sorted(refused)
    notes = (roles.note(), *whole.notes())
    if scratch is not None:
        kinds = {container.kind for container in containers.values()}
        if any(i not in containers and path != files.names[i] for i, path in enumerate(paths)):
            kinds.add("compressed")
        notes = (*notes, f"tfrecord: {' and '.join(sorted(kinds))} files are unpacked to a temporary folder")
    notes = (*notes, *described.notes())
    parts = (listing, roles, whole.scan, positions, labeled, whole.refused, paths, scratch, notes, described.classes)
    return RecordFiles(files, *parts)


@contextmanager
def _unpacked_file(files: Listing, number: int, path: str) -> Iterator[IO[bytes]]:
    """Opens the file of the temporary folder that takes what a file unpacks to."""
    most = partial(UNPACKING.check_unpacked, size=files.sizes[number])
    try:
        with scratch_file(path, most) as copy:
            yield copy
    except OverBudget as error:
        raise UsageError(f"{files.keys[number]}: {error}. Leave it out, or write it unpacked.") from None


def _packed(files: Listing, position: int) -> Packed:
    return Packed(files.path(position), files.pin(position), files.keys[position])


def _start(files: Listing, position: int) -> bytes:
    try:
        return read_start(files.path(position), _LOOK_INTO, files.pin(position))
    except OSError:
        return b""


def _record_files(found: Listing) -> tuple[Listing, dict[int, Container], list[Refusal]]:
    """Returns the files to be scanned, which of them are containers, and the refused rest.

    Only shards of a dataset of ours are input.
    """
    shards = _own_shards(found)
    kept, containers, refused = list[int](), dict[int, Container](), list(found.refused)
    for i, key in enumerate(found.keys):
        if shards and key not in shards:
            continue
        start = _start(found, i)
        if container := container_of(_packed(found, i), start):
            containers[len(kept)] = container
            kept.append(i)
        elif found.sizes[i] == 0 or key.lower().endswith(_ENDINGS) or begins_as_records(start):
            kept.append(i)
        elif os.path.basename(key) not in _DESCRIPTIONS and not key.endswith(_NAMES):
            refused.append(Refusal(key, NOT_RECORDS, "the file is not a TFRecord file"))
    return found.part(kept), containers, refused


def _own_shards(found: Listing) -> frozenset[str]:
    if MANIFEST_FILE not in found.keys:
        return frozenset()
    position = found.keys.index(MANIFEST_FILE)
    try:
        manifest = Manifest.from_json(read_bytes(found.path(position), found.pin(position)).decode("utf-8"))
    except (DatasetError, OSError, UnicodeDecodeError):
        return frozenset()  # The manifest of another program.
    return frozenset(shard.path for shard in manifest.shards)


def _samples(files: Listing, opened: Callable[[int], IO[bytes]]) -> list[Sampled]:
    samples = []
    problem = ""
    for i in range(min(len(files.keys), _FILES_SAMPLED)):
        with opened(i) as file:
            for record in islice(scan_records(file), _RECORDS_SAMPLED):
                where = f"{files.keys[i]}, {record.where}"
                try:
                    samples.append(Sampled(where, features_of(record)))
                except UnusableError as error:
                    problem = problem or f"{where}: {error}"
    if not samples:
        found = f"no tf.train.Example among the first records. {problem}" if problem else "no records"
        raise UsageError(f"input.images: {files.root}: {found}.")
    return samples


@dataclass
class _Whole:
    """Puts the scans of the files together."""

    files: Listing
    roles: Roles
    paths: list[str]
    trusted: bool
    scan: FileScan = field(default_factory=FileScan)
    refused: list[Refusal] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    unnamed: int = 0

    def add(self, number: int, scan: FileScan) -> None:
        """Adds a file."""
        whole = self.scan
        whole.keys += scan.keys
        whole.starts += scan.starts
        whole.sizes += scan.sizes
        whole.labeled += scan.labeled
        self.counts.append(len(scan.keys))
        self.refused += [
            Refusal(f"{self.files.keys[number]}/{record}", code, reason)
            for record, (code, reason) in scan.problems.items()
        ]
        for text, where in scan.classes.items():
            whole.classes.setdefault(text, where)
        for text, numbers in scan.numbers.items():
            whole.numbers.setdefault(text, set()).update(numbers)
        whole.several = whole.several or scan.several
        whole.filed = whole.filed or scan.filed
        for name, kinds in scan.kinds.items():
            whole.kinds.setdefault(name, set()).update(kinds)
        for name, where in scan.mask_names.items():
            whole.mask_names.setdefault(name, where)

    def sorted(self, refused: list[Refusal]) -> tuple[Listing, list[array[int]], bytearray]:
        """Returns the listing, the positions of every file's records in it, and which have a class."""
        scan = self.scan
        keys = self._keys()
        usable = [i for i, start in enumerate(scan.starts) if start >= 0]
        usable.sort(key=keys.__getitem__)
        file_of = [number for number, count in enumerate(self.counts) for _ in range(count)]
        listing = Listing(
            self.files.root,
            [keys[i] for i in usable],
            [part_path(self.paths[file_of[i]], scan.starts[i], scan.starts[i] + scan.sizes[i]) for i in usable],
            [scan.sizes[i] for i in usable],
            refused,
            tuple(self.files.pins[file_of[i]] for i in usable) if self.files.pins else (),
        )
        position_of = array("q", [-1]) * len(keys)
        for position, i in enumerate(usable):
            position_of[i] = position
        positions, begin = [], 0
        for count in self.counts:
            positions.append(position_of[begin : begin + count])
            begin += count
        labeled = bytearray(scan.labeled[i] for i in usable)
        # The listing has them now.
        scan.keys, scan.starts, scan.sizes, scan.labeled = [], array("q"), array("q"), bytearray()
        return listing, positions, labeled

    def _keys(self) -> list[str]:
        """Returns a key for every record: its own, if nothing else is called so, or file and number."""
        own = self.scan.keys
        usable = sum(start >= 0 for start in self.scan.starts)
        if not self.trusted and 2 * len(set(own) - {""}) < usable:
            own = [""] * len(own)  # A feature that names groups of records.
        names = set(self.files.keys)
        used: set[str] = set()
        keys = []
        for i, fallback in enumerate(self._numbered()):
            file, _, number = own[i].rpartition("/")
            # No record's own key may be what another one is called for want of a key.
            key = fallback if own[i] in used or not own[i] or (file in names and number.isdigit()) else own[i]
            if self.scan.starts[i] >= 0:
                used.add(key)
                self.unnamed += key is fallback
            keys.append(key)
        return keys

    def _numbered(self) -> Iterator[str]:
        for file, count in zip(self.files.keys, self.counts, strict=True):
            for number in range(count):
                yield f"{file}/{number}"

    def notes(self) -> tuple[str, ...]:
        """Messages for the user."""
        if not self.unnamed:
            return ()
        return (f"tfrecord: {self.unnamed} records have no safe key; they are called FILE/NUMBER",)
