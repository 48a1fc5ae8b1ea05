"""Carries records of datasets into new shards: subset, reshard, merge, relabel, forget.

Records keep their order and, unless the operation changes them, their bytes; ledger rows of inputs that were not
written are carried, too. As in an ingest, ranges of records are written by several processes, shards are staged, then
the dataset appears at once, and a second run does nothing.

Source records are verified. A manifest has hashes of whole shards only. An index has the offsets of records, not their
content. The CRC-32C of a record detects damage, but not a valid record in the place of another. So each shard that
records are taken from is compared with its hash, while others read its records, and must be the same file before and
after. A shard on a bucket is fetched once: it is compared while it is copied to this machine, its records are read from
the copy, and the last range that needs the copy deletes it. A caller that has compared a shard already passes the state
that the file had then.
"""

from __future__ import annotations

import dataclasses
import os
import posixpath
import re
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config.shards import ShardsConfig
from shardwright.dataset.joinable import check_same, largest_limit
from shardwright.dataset.ledger import WRITTEN, LedgerRow
from shardwright.dataset.manifest import BUILD_FILE, IMAGE_FOLDER, Manifest
from shardwright.dataset.random_access import records_at
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.dataset.shard_names import ShardNames
from shardwright.dataset.sharding import shard_bounds, shards_of
from shardwright.dataset.train_statistics import STATISTICS_FILE, derived_statistics
from shardwright.errors import DatasetError, UsageError
from shardwright.running.processes import can_fork, map_processes
from shardwright.running.progress import counted, progress
from shardwright.staging.commit import DatasetPlan, commit, open_if_committed, remove_staged
from shardwright.staging.ranges import Cut, Range, processes_for, write_range
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.storage import buckets, is_remote, open_file, read_bytes
from shardwright.storage.checksum import new_checksum
from shardwright.storage.file_pins import is_settled, state_text
from shardwright.storage.fingerprint import fingerprint, text_number
from shardwright.storage.listing import StringArray
from shardwright.storage.own_names import staging_next_to
from shardwright.storage.scratch import scratch_file, scratch_folder
from shardwright.storage.whole_files import write_text
from shardwright.untrusted.json_text import parse_untrusted_json

# The first of these ends the folder of a glob, or one with a span.
_MARK = re.compile(r"[*?\[{]")
_PIECE = 1 << 20
# Nanoseconds of one processor, for a record, with its index and ledger rows, and for a byte.
_OF_RECORD, _OF_BYTE = 100_000, 2
_NO_ROOM = "Make room, or give another --out; finished shards are kept."
_LOST = "A process that was writing a shard has died; out of memory? Finished work is kept: run it again."
Selector = Callable[[str], bool]
_NOT_WRITTEN = "not-written"
_SHOWN = 3


def every(key: str) -> bool:
    """Selects all."""
    del key
    return True


def same_row(row: LedgerRow) -> LedgerRow | None:
    """Keeps a row as it is."""
    return row


class Derived(NamedTuple):
    """An operation on datasets.

    Attributes:
        operation: its name, for the recipe.
        options: other options that change the bytes, as plain values.
        choose: returns whether a key is selected.
        row: changes the ledger rows of inputs that were not written; `None` leaves one out.
        outcome: makes the result of a record of its key and bytes; by default it stays as it is.
        changes: fields of the `DatasetPlan` that are not those of the source.
        proven: shard's file -> its state when it had the manifest's hash, see `file_state`; it is not read whole again.
        further_rows: ledger rows to add, in the place of those of the same keys.
    """

    operation: str
    options: Mapping[str, Any]
    choose: Selector = every
    row: Callable[[LedgerRow], LedgerRow | None] = same_row
    outcome: Callable[[str, bytes], RecordResult] = RecordResult
    changes: Mapping[str, Any] = MappingProxyType({})
    proven: Mapping[str, str] = MappingProxyType({})
    further_rows: Sequence[LedgerRow] = ()


def derive(
    sources: Sequence[ImageDataset],
    out: str | os.PathLike[str],
    how: Derived,
    *,
    shards: ShardsConfig | None = None,
    workers: int | None = None,
    quiet: bool = False,
) -> Manifest:
    """Makes a dataset of records of others.

    Args:
        sources: the datasets, with the same classes and features; no key may be in two of them.
        out: folder to make.
        how: the operation.
        shards: number and names of shards; by default those of the ingest.
        workers: processes that write; by default one per processor, and none for little data. The result is the same.
        quiet: show no progress.

    Returns:
        Its manifest.

    Raises:
        UsageError: the sources do not go together, nothing would be left, or `out` contains something else.
        DatasetError: a source is damaged.
    """
    check_same(sources)
    records = _select(sources, how.choose)
    if not len(records.keys):
        raise UsageError(f"{how.operation}: no image would be left of {', '.join(s.root for s in sources)}.")
    shards = shards or ShardsConfig()
    ends: dict[PlannedShard, tuple[int, int]] = {}
    for split, (begin, end) in records.splits.items():
        count = shards_of(shards, end - begin, sum(records.lengths[begin:end]))
        for number, (first, last) in enumerate(pairwise(shard_bounds(end - begin, count))):
            ends[PlannedShard(split, number, count)] = begin + first, begin + last
    rows = _rows(sources, how, _key_numbers(sources, records))
    plan = _plan(sources, how, shards, tuple(ends), len(records.keys), len(rows))
    if (done := open_if_committed(out, plan.fingerprint)) is not None:
        _tidy(out)  # A run that was killed may have published it and not cleaned up.
        return done
    kept = _kept_files(sources, len(records.keys))
    staging = Staging.open(staging_next_to(out), plan.fingerprint)
    with staging.locked(_NO_ROOM):
        if rows:
            staging.write_rows(_NOT_WRITTEN, rows)
        for name, text in kept.items():
            write_text(staging.path(name), text)
        try:
            carry = _Carry(plan, staging, ShardNames(shards.filename_template), ends, records, how)
            carry.write(workers, quiet)
        except DatasetError:
            # Finished shards may contain records of a file that is not the manifest's.
            staging.remove()
            _tidy(out)
            raise
        build = {"runner": how.operation, IMAGE_FOLDER: folder_of_images(sources[0])}
        manifest = commit(staging, dataclasses.replace(plan, kept=tuple(kept)), out, build)
    _tidy(out)
    return manifest


@dataclass
class _Records:
    """The records to carry, split by split in their order; in columns, since there may be millions.

    Attributes:
        keys: of each.
        shards: the shards that they are in.
        shard_of: of each, the number of its shard.
        offsets: of each, where its frame begins.
        lengths: of each, bytes of its frame.
        splits: split -> its first record, and the record after its last.
    """

    keys: Sequence[str] = ()
    shards: list[LocatedShard] = field(default_factory=list)
    shard_of: array[int] = field(default_factory=lambda: array("i"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    splits: dict[str, tuple[int, int]] = field(default_factory=dict)


def _select(sources: Sequence[ImageDataset], choose: Selector) -> _Records:
    """Finds the selected records by the indexes; reads no record."""
    found = _Records()

    def keys() -> Iterator[str]:
        for split in sorted({split for source in sources for split in source.splits}):
            begin = len(found.lengths)
            shards = ((source, one) for source in sources if split in source.splits for one in source.shards(split))
            for source, shard in shards:
                before = len(found.lengths)
                for key, offset, length in selected_frames(source, shard, choose):
                    found.shard_of.append(len(found.shards))
                    found.offsets.append(offset)
                    found.lengths.append(length)
                    yield key
                found.shards += [shard] if len(found.lengths) > before else []
            found.splits[split] = begin, len(found.lengths)

    found.keys = StringArray(keys())
    return found


def selected_frames(
    source: ImageDataset, shard: LocatedShard, choose: Callable[[str], bool]
) -> Iterator[tuple[str, int, int]]:
    """Yields key, offset and length of the frame of every selected record of a shard; reads no record."""
    before: tuple[str, int] | None = None
    for key, offset in source.entries(shard):
        if before is not None:
            yield (*before, offset - before[1])
        before = (key, offset) if choose(key) else None
    if before is not None:
        yield (*before, shard.bytes - before[1])


def _key_numbers(sources: Sequence[ImageDataset], records: _Records) -> npt.NDArray[np.int64]:
    """Returns the numbers of the keys of several sources (`text_number`).

    Raises:
        UsageError: a key is in two of them.
    """
    if len(sources) == 1:
        return np.empty(0, np.int64)
    numbers = np.fromiter(map(text_number, records.keys), np.int64, len(records.keys))
    found, times = np.unique(numbers, return_counts=True)
    twice = set(found[times > 1].tolist())
    seen: dict[int, str] = {}
    for source in sources if twice else ():
        keys = (key for split in source.splits for key in source.keys(split))
        mine = {number: key for key in keys if (number := text_number(key)) in twice}
        if again := sorted(mine.keys() & seen.keys()):
            shared = counted(len(again), "key is", "keys are")
            raise UsageError(
                f"{source.root}: {shared} in another source, too, e.g. {mine[again[0]]!r}. Delete these images from "
                "one of them first (`shardwright forget`)."
            )
        seen |= mine
    return numbers


def check_sources(sources: Sequence[ImageDataset]) -> None:
    """Checks whether datasets go together: by their manifests, and by the keys of their images.

    Raises:
        UsageError: they do not.
        DatasetError: an index is damaged.
    """
    check_same(sources)
    _key_numbers(sources, _select(sources, every))


def _rows(sources: Sequence[ImageDataset], how: Derived, written: npt.NDArray[np.int64]) -> list[LedgerRow]:
    """Returns the rows of inputs that no source has written, changed by the operation, and those that it adds.

    If several sources have one of a key, the first row counts.
    """
    rows, added = list(how.further_rows), {row.key for row in how.further_rows}
    for source in sources:
        if source.manifest.totals.get("written") != source.manifest.totals.get("inputs"):
            for row in source.ledger():
                # Its planned shard has no meaning any more.
                bare = LedgerRow(row.key, row.status, row.code, row.reason, row.split)
                kept = how.row(bare) if row.status != WRITTEN and row.key not in added else None
                if kept is not None:
                    rows.append(kept)
    if len(sources) == 1:
        return rows
    left = {text_number(row.key): row for row in reversed(rows)}
    for number in written.tolist() if left else ():
        left.pop(number, None)
    return list(left.values())


def _plan(
    sources: Sequence[ImageDataset],
    how: Derived,
    shards: ShardsConfig,
    planned: tuple[PlannedShard, ...],
    images: int,
    rows: int,
) -> DatasetPlan:
    """Returns the plan of a derived dataset, of `images` records and `rows` inputs that were not written."""
    first = sources[0].manifest
    parents = [source.manifest.digest for source in sources]
    cut = {name: value for name, value in vars(shards).items() if value is not None}
    derived = {"operation": how.operation, "shards": cut, **how.options}
    recipe = {**first.recipe, **largest_limit(sources), "derived": derived}
    plan = DatasetPlan(
        kind=first.kind,
        task=first.task,
        classes=first.classes,
        recipe=recipe,
        parent=parents[0] if len(parents) == 1 else fingerprint(parents),
        features=first.features,
        inputs=images + rows,
        shards=planned,
        rows=(_NOT_WRITTEN,) if rows else (),
        max_rejects=1.0,
        names=first.names,
        labels=first.labels,
        further_parents={f"source-{number}": digest for number, digest in enumerate(parents)},
    )
    return dataclasses.replace(plan, **how.changes)


def _kept_files(sources: Sequence[ImageDataset], images: int) -> dict[str, str]:
    """Returns name -> text of files that a dataset of `images` records has besides those of all datasets."""
    if sources[0].manifest.kind != "transform":
        return {}
    whole = len(sources) == 1 and images == sum(shard.records for shard in sources[0].manifest.shards)
    statistics = derived_statistics([source.root for source in sources], whole=whole)
    return {} if statistics is None else {STATISTICS_FILE: statistics}


class _Carry:
    """Writes the shards of a derived dataset.

    Args:
        plan: the dataset.
        staging: its staging folder.
        names: names of its shards.
        ends: shard -> its first record, and the record after its last.
        records: the records that are carried.
        how: the operation.
    """

    def __init__(
        self,
        plan: DatasetPlan,
        staging: Staging,
        names: ShardNames,
        ends: Mapping[PlannedShard, tuple[int, int]],
        records: _Records,
        how: Derived,
    ) -> None:
        self._plan, self._staging, self._names = plan, staging, names
        self._ends, self._records, self._how = ends, records, how
        # Folder of the copies of shards, and the number of each -> ranges that still need it.
        self._copies, self._needed = "", Counter[int]()

    def write(self, workers: int | None, quiet: bool) -> None:
        """Writes what is not there yet, and compares the shards that the records come from with their hashes.

        Raises:
            DatasetError: one is damaged, or has changed since.
        """
        records, lengths = self._records, np.array(self._records.lengths, np.int64)
        states = {shard.file: file_state(shard.file) for shard in records.shards}
        known = {file for file, state in self._how.proven.items() if state and states.get(file) == state}
        fetched = {i for i, shard in enumerate(records.shards) if is_remote(shard.file) and shard.file not in known}
        positions = (np.arange(*ends) for ends in self._ends.values())
        cut = Cut.of(positions, lengths, _OF_RECORD + lengths * _OF_BYTE, self._staging.root)
        # The client of a store is not for forks.
        processes = processes_for(sum(cut.costs), workers) if can_fork() and not fetched else 1
        ranges = cut.missing(self._plan.shards, self._staging, processes)
        if fetched:  # Those that need the same copies follow each other.
            ranges.sort(key=lambda part: (part.shard, part.number))
        self._needed.update(number for part in ranges for number in self._sources(part) & fetched)
        compared = [
            shard for i, shard in enumerate(records.shards) if shard.file not in known and i not in self._needed
        ]
        _carries[self._staging.root] = self
        images, size = sum(part.images for part in ranges), sum(part.size for part in ranges)
        try:
            with scratch_folder(0) if self._needed else nullcontext("") as self._copies:
                # The workers start before the progress, whose thread keeps this process from being forked.
                carry = partial(_carry, self._staging.root)
                done = map_processes(carry, [*compared, *ranges], processes, _LOST, fork=True)
                with closing(done), progress(images, "writing images", quiet=quiet, size=size) as shown:
                    for part in done:
                        shown.advance(*part)
        finally:
            del _carries[self._staging.root]
        for file, state in states.items():
            if file_state(file) != state:
                raise _not_as_in_manifest(file)

    def do(self, work: Range | LocatedShard) -> tuple[int, int]:
        """Writes a range, or compares a shard with its hash; returns images and bytes that were written."""
        if isinstance(work, LocatedShard):
            _check_hash(work)
            return 0, 0
        write_range(work, self._plan, self._staging, self._names, self._results)
        for number in self._sources(work) & self._needed.keys():
            self._needed[number] -= 1
            if not self._needed[number]:
                Path(self._copies, str(number)).unlink(missing_ok=True)
        return work.images, work.size

    def _some(self, part: Range) -> slice:
        """Returns which records a range has."""
        begin = self._ends[self._plan.shards[part.shard]][0]
        return slice(begin + part.ends[0], begin + part.ends[1])

    def _sources(self, part: Range) -> set[int]:
        """Returns the numbers of the shards that the records of a range come from."""
        return set(self._records.shard_of[self._some(part)])

    def _file(self, number: int) -> str:
        """Returns the file to read the records of a shard from."""
        shard = self._records.shards[number]
        if number not in self._needed:
            return shard.file
        copy = os.path.join(self._copies, str(number))
        if not os.path.exists(copy):
            _check_hash(shard, copy)
        return copy

    def _results(self, part: Range) -> Iterator[RecordResult]:
        records, some, sources = self._records, self._some(part), self._sources(part)
        files = [self._file(number) if number in sources else "" for number in range(len(records.shards))]
        frames = zip(records.shard_of[some], records.offsets[some], records.lengths[some], strict=True)
        keyed = ((frame, (key, frame[0])) for key, frame in zip(records.keys[some], frames, strict=True))
        for (key, number), payload in records_at(files, keyed):
            if payload is None:
                raise _not_as_in_manifest(records.shards[number].file)
            yield self._how.outcome(key, payload)


# Of this process, and of forks of it: folder of staging -> what is written there.
_carries: dict[str, _Carry] = {}


def _carry(staging_root: str, work: Range | LocatedShard) -> tuple[int, int]:
    return _carries[staging_root].do(work)


def file_state(file: str, *, settled: bool = False) -> str:
    """Returns what changes when a shard changes: its size and times, or its version on a bucket.

    Args:
        file: the shard's file.
        settled: return nothing if it changed so recently that another change could leave the same times.

    Returns:
        Empty where there is no such file.
    """
    try:
        if is_remote(file):
            found = buckets.stat(file)
            return "" if found is None else found.pin
        state = os.stat(file)
        return state_text(state) if not settled or is_settled(state, time.time_ns()) else ""
    except OSError:
        return ""


def _check_hash(shard: LocatedShard, copy: str = "") -> None:
    """Compares a shard with its hash, and copies it, if a name is given for the copy."""
    digest = new_checksum()
    try:
        with open_file(shard.file) as file, scratch_file(copy, lambda _: None) if copy else nullcontext() as out:
            while data := file.read(_PIECE):
                digest.update(data)
                if out is not None:
                    out.write(data)
    except OSError as error:
        raise DatasetError(f"{shard.file}: cannot be read ({error.strerror or error}). Restore it.") from None
    if digest.hexdigest() != shard.checksum:
        raise _not_as_in_manifest(shard.file)


def _not_as_in_manifest(file: str) -> DatasetError:
    return DatasetError(
        f"{file}: does not match its hash in the manifest: damaged, or changed since. Run `shardwright verify`."
    )


def _tidy(out: str | os.PathLike[str]) -> None:
    if not is_remote(str(out)):
        remove_staged(staging_next_to(out), out)


def folder_of_images(dataset: ImageDataset) -> str:
    """Returns the folder that the images of an ingest were in; empty where `build.json` does not state it."""
    try:
        build = parse_untrusted_json(read_bytes(os.path.join(dataset.root, BUILD_FILE)).decode("utf-8"))
        if IMAGE_FOLDER in build:
            found = build[IMAGE_FOLDER]
        else:  # Of an older version, which stated the configuration alone.
            found = posixpath.join(build["config"].get("base", ""), build["config"]["input"]["images"])
            found = found[: mark.start()].rpartition("/")[0] if (mark := _MARK.search(found)) else found
    except (OSError, ValueError, TypeError, KeyError):
        return ""
    return found if isinstance(found, str) else ""
