"""Makes datasets of the records of others, which are copied as they are: subset, reshard, merge, delete.

Records keep their bytes and their order; ledger rows of inputs that were not written are copied too. As with every
dataset, shards are staged, then the dataset appears at once, and a second run does nothing.

Source records are verified. A manifest has hashes of whole shards only. An index has the offsets of records, not their
content. The CRC-32C of a record detects damage, but not a valid record in the place of another. So a shard is read to
its end and compared with its hash. A caller that has done so before passes the digests of the records that it saw
(`RecordDigests`); then only the selected records are read.
"""

from __future__ import annotations

import dataclasses
import os
import posixpath
import re
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, islice, pairwise
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np

from shardwright.config.shards import ShardsConfig
from shardwright.dataset.joinable import check_same, largest_limit
from shardwright.dataset.ledger import WRITTEN, LedgerRow
from shardwright.dataset.manifest import BUILD_FILE, IMAGE_FOLDER, Manifest
from shardwright.dataset.random_access import read_record_at, records_at
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.dataset.shard_names import ShardNames
from shardwright.dataset.sharding import shard_bounds, shards_of
from shardwright.dataset.train_statistics import STATISTICS_FILE, derived_statistics
from shardwright.errors import DatasetError, UsageError
from shardwright.running.progress import counted, progress
from shardwright.staging.commit import DatasetPlan, commit, open_if_committed, remove_staged
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.storage import is_remote, open_file, read_bytes
from shardwright.storage.checksum import digest_of, new_checksum
from shardwright.storage.fingerprint import fingerprint, text_number
from shardwright.storage.own_names import staging_next_to
from shardwright.storage.whole_files import write_text
from shardwright.untrusted.json_text import parse_untrusted_json

# The first of these ends the folder of a glob, or one with a span.
_MARK = re.compile(r"[*?\[{]")
# Shard's file -> offset of a record -> BLAKE3 of its serialized example, for shards that had the manifest's hash.
RecordDigests = Mapping[str, Mapping[int, bytes]]
# If more of a shard's bytes are selected, the whole shard is read: one stream is then hardly more work.
SPARSE = 1 / 3
_PIECE = 1 << 20
_NO_ROOM = "Make room, or give another --out; finished shards are kept."
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
        digests: digests of records whose shards were compared with the manifest; other shards are read whole.
        further_rows: ledger rows to add, in the place of those of the same keys.
    """

    operation: str
    options: Mapping[str, Any]
    choose: Selector = every
    row: Callable[[LedgerRow], LedgerRow | None] = same_row
    outcome: Callable[[str, bytes], RecordResult] = RecordResult
    changes: Mapping[str, Any] = MappingProxyType({})
    digests: RecordDigests = MappingProxyType({})
    further_rows: Sequence[LedgerRow] = ()


def derive(
    sources: Sequence[ImageDataset],
    out: str | os.PathLike[str],
    how: Derived,
    *,
    shards: ShardsConfig | None = None,
    quiet: bool = False,
) -> Manifest:
    """Makes a dataset of records of others.

    Args:
        sources: the datasets, with the same classes and features; no key may be in two of them.
        out: folder to make.
        how: the operation.
        shards: number and names of shards; by default those of the ingest.
        quiet: show no progress.

    Returns:
        Its manifest.

    Raises:
        UsageError: the sources do not go together, nothing would be left, or `out` contains something else.
        DatasetError: a source is damaged.
    """
    check_same(sources)
    sizes, keys = _measured(sources, how.choose)
    _check_distinct_keys(keys, sources)
    if not any(len(lengths) for lengths in sizes.values()):
        raise UsageError(f"{how.operation}: no image would be left of {', '.join(s.root for s in sources)}.")
    shards = shards or ShardsConfig()
    counts = {split: shards_of(shards, len(lengths), sum(lengths)) for split, lengths in sorted(sizes.items())}
    planned = [PlannedShard(split, number, count) for split, count in counts.items() for number in range(count)]
    rows = _rows(sources, how, keys)
    plan = _plan(sources, how, shards, planned, sum(map(len, sizes.values())), len(rows))
    if (done := open_if_committed(out, plan.fingerprint)) is not None:
        _tidy(out)  # A run that was killed may have published it and not cleaned up.
        return done
    kept = _kept_files(sources, plan.inputs - len(rows))
    staging = Staging.open(staging_next_to(out), plan.fingerprint)
    with staging.locked(_NO_ROOM):
        if rows:
            staging.write_rows(_NOT_WRITTEN, rows)
        for name, text in kept.items():
            write_text(staging.path(name), text)
        try:
            with progress(len(planned), "writing shards", quiet=quiet) as shown:
                for split in sorted(sizes):
                    selected = select_records(sources, split, how.choose, how.digests)
                    records = (how.outcome(key, payload) for key, payload in selected)
                    for _ in _write_split(staging, plan, split, len(sizes[split]), records, shards.filename_template):
                        shown.advance()
        except DatasetError:
            # Finished shards may contain records of a file that is not the manifest's.
            staging.remove()
            _tidy(out)
            raise
        build = {"runner": how.operation, IMAGE_FOLDER: folder_of_images(sources[0])}
        manifest = commit(staging, dataclasses.replace(plan, kept=tuple(kept)), out, build)
    _tidy(out)
    return manifest


def _plan(
    sources: Sequence[ImageDataset],
    how: Derived,
    shards: ShardsConfig,
    planned: Sequence[PlannedShard],
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
        shards=tuple(planned),
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


def _write_split(
    staging: Staging, plan: DatasetPlan, split: str, count: int, records: Iterator[RecordResult], template: str
) -> Iterator[PlannedShard]:
    """Writes the shards of a split, of `count` records in all; yields each as it is done."""
    shards = [shard for shard in plan.shards if shard.split == split]
    for shard, (begin, end) in zip(shards, pairwise(shard_bounds(count, len(shards))), strict=True):
        own = islice(records, end - begin)
        staging.write_shard(shard, own, ShardNames(template), facts=plan.facts(shard))
        # A shard that an earlier run has finished is not written again; its records are skipped.
        deque(own, maxlen=0)
        yield shard
    # The last shard of a source is compared with its hash at the end of the iteration.
    next(records, None)


def _tidy(out: str | os.PathLike[str]) -> None:
    if not is_remote(str(out)):
        remove_staged(staging_next_to(out), out)


def _measured(sources: Sequence[ImageDataset], choose: Selector) -> tuple[dict[str, array[int]], list[array[int]]]:
    """Returns the sizes of the selected records of every split, and the key numbers of every source."""
    sizes: dict[str, array[int]] = {}
    keys: list[array[int]] = []
    for source in sources:
        keys.append(array("q"))
        for split in source.splits:
            lengths = sizes.setdefault(split, array("q"))
            for shard in source.shards(split):
                for key, _, length in selected_frames(source, shard, choose):
                    lengths.append(length)
                    keys[-1].append(text_number(key))
    return sizes, keys


def _rows(sources: Sequence[ImageDataset], how: Derived, written: Iterable[array[int]]) -> list[LedgerRow]:
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
    for number in chain.from_iterable(written) if left else ():
        left.pop(number, None)
    return list(left.values())


def _check_distinct_keys(keys: list[array[int]], sources: Sequence[ImageDataset]) -> None:
    seen = np.empty(0, np.int64)
    for numbers, source in zip(keys, sources, strict=True):
        mine = np.array(numbers, np.int64)
        both = np.intersect1d(seen, mine)
        if len(both):
            twice = set(both[:1].tolist())
            name = next(k for s in source.splits for k in source.keys(s) if text_number(k) in twice)
            shared = counted(len(both), "key is", "keys are")
            raise UsageError(
                f"{source.root}: {shared} in another source, too, e.g. {name!r}. Delete these images from one of them "
                "first (`shardwright forget`)."
            )
        seen = np.concatenate([seen, mine])


def check_sources(sources: Sequence[ImageDataset]) -> None:
    """Checks whether datasets go together: by their manifests, and by the keys of their images.

    Raises:
        UsageError: they do not.
        DatasetError: an index is damaged.
    """
    check_same(sources)
    _check_distinct_keys(_measured(sources, every)[1], sources)


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


class _Selected(NamedTuple):
    """The selected records of a shard.

    Attributes:
        shard: the shard.
        records: key, offset and length of the frame of each record, in their order.
    """

    shard: LocatedShard
    records: list[tuple[str, int, int]]


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


def select_records(
    sources: Iterable[ImageDataset], split: str, choose: Callable[[str], bool], digests: RecordDigests
) -> Iterator[tuple[str, bytes]]:
    """Yields key and serialized example of every selected record of a split.

    Args:
        sources: the datasets, in order.
        split: the split; a dataset need not have it.
        choose: returns whether a key is selected.
        digests: known digests; shards without them are read whole.

    Raises:
        DatasetError: a shard is damaged or not the manifest's; for a shard that is read whole, after its last record.
    """
    selected = (
        _Selected(shard, list(selected_frames(source, shard, choose)))
        for source in sources
        if split in source.splits
        for shard in source.shards(split)
    )
    wanted = (one for one in selected if one.records)
    # Consecutive shards together, so that the requests for one shard do not wait for those for the previous one.
    for known, group in groupby(wanted, lambda one: _is_known(one, digests)):
        read = partial(_read_known, digests) if known else _read_whole
        yield from read(group)


def _is_known(selected: _Selected, digests: RecordDigests) -> bool:
    known = digests.get(selected.shard.file, {})
    size = sum(length for _, _, length in selected.records)
    return size < SPARSE * selected.shard.bytes and all(offset in known for _, offset, _ in selected.records)


def _read_known(digests: RecordDigests, group: Iterable[_Selected]) -> Iterator[tuple[str, bytes]]:
    files: list[str] = []

    def frames() -> Iterator[tuple[tuple[int, int, int], tuple[str, str, int]]]:
        for shard, records in group:
            files.append(shard.file)
            for key, offset, length in records:
                yield (len(files) - 1, offset, length), (key, shard.file, offset)

    for (key, file, offset), payload in records_at(files, frames()):
        if payload is None or digest_of(payload) != digests[file][offset]:
            raise _not_as_in_manifest(file)
        yield key, payload


def _read_whole(group: Iterable[_Selected]) -> Iterator[tuple[str, bytes]]:
    for shard, records in group:
        with open_file(shard.file) as file:
            read = _ReadThrough(file)
            for key, offset, _ in records:
                yield key, read_record_at(read, offset, shard.file)
            if read.checksum() != shard.checksum:
                raise _not_as_in_manifest(shard.file)


def _not_as_in_manifest(file: str) -> DatasetError:
    return DatasetError(
        f"{file}: does not match its hash in the manifest: damaged, or changed since. Run `shardwright verify`."
    )


class _ReadThrough:
    """A file that is read from beginning to end, also between the selected records, so that its hash is known."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._at, self._digest = file, 0, new_checksum()

    def seek(self, offset: int, /) -> None:
        """Reads on to an offset."""
        while self._at < offset and self.read(min(_PIECE, offset - self._at)):
            continue

    def read(self, size: int, /) -> bytes:
        """Returns at most so many bytes."""
        data = self._file.read(size)
        self._digest.update(data)
        self._at += len(data)
        return data

    def checksum(self) -> str:
        """Returns the hash of the whole file, hex."""
        while self.read(_PIECE):
            continue
        return self._digest.hexdigest()
