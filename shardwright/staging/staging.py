"""Writes the shards of a dataset one by one into a staging folder; `commit` makes the dataset of them.

Any number of processes may write shards of one plan. A shard is finished when its `done` row is there, and a finished
shard is never written twice. A kill or a power failure at any moment leaves either the old state or the new one. Files
are written under a temporary name, renamed and flushed, and the `done` row comes last.

Inside `<staging root>/<fingerprint>/`:

    Split-<split>/, index/Split-<split>/   as in the dataset, under the default names
    facts/Split-<split>/                   as in the dataset, if the writer gets a collector
    rows/<name>.jsonl                      ledger rows of one shard, or of inputs rejected before any shard; by key
    origins/                               see `shardwright.ingest.copying`; only if there are origins
    (further files of a shard)             as the shard's writer names them
    done/<split>-<i>-of-<n>.json           the `ShardResult`
    .lock                                  locked by the run that uses this folder

If the staging root is on a bucket, files are made in a working folder of the machine at work. All files of a finished
shard go to the bucket, the `done` row last (`shardwright.storage.mirror`).
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from shardwright.dataset import ledger, shard_names
from shardwright.dataset.facts import FactsCollector
from shardwright.dataset.ledger import LedgerRow, RowSorter, merged
from shardwright.dataset.manifest import ShardInfo, origins_path
from shardwright.dataset.shard_names import ShardNames
from shardwright.fingerprint import canonical_json, checksummed_lines
from shardwright.storage import buckets, durable, in_groups, is_remote, map_threads, readers
from shardwright.storage.leases import leased, remove_unless_leased
from shardwright.storage.locks import locked_folder
from shardwright.storage.mirror import Mirror, working_folder
from shardwright.storage.own_names import make_own_folder, make_working_folder, remove_tree, set_aside
from shardwright.storage.whole_files import WholeFile
from shardwright.tfrecords.encode import FeatureValue
from shardwright.tfrecords.records import RecordWriter
from shardwright.untrusted import inside

# Names the folder of staging folders; it is part of no fingerprint.
STAGING_VARIABLE = "SHARDWRIGHT_STAGING"
# Its folder on a volume, where a compiled pipeline is told no other: a name that anybody can know.
VOLUME_STAGING = ".shardwright-staging"

_DEFAULT_NAMES = ShardNames()
_DONE = "done/"
# To start threads takes longer than to read the results of so many shards from a disk of this machine.
_FEW = 16


def given_staging() -> str | None:
    """Returns the folder that `SHARDWRIGHT_STAGING` names, if it does.

    Raises:
        UsageError: it is the one that we name on a volume, and something that is not ours is there.
    """
    given = os.environ.get(STAGING_VARIABLE)
    if given and not is_remote(given) and os.path.basename(given) == VOLUME_STAGING:
        make_own_folder(given)
    return given


class RecordResult(NamedTuple):
    """The result of one input of a shard.

    Attributes:
        key: key of the input.
        payload: the serialized example, whole or in pieces, or `None` when there is none to write.
        status: `rejected` or `duplicate` where `payload` is `None`.
        code: why, as a word.
        reason: why, as a sentence.
        marks: names of the totals that count it, of `manifest.MARKS`.
        origin: JSON to keep in the shard's file of origins, or empty.
        copied: whether its image was copied from an earlier dataset.
        damaged: whether its record there was damaged, so that it was not copied.
        values: the features that `payload` was made of, where they are known.
    """

    key: str
    payload: bytes | Sequence[bytes] | None
    status: str = ledger.WRITTEN
    code: str = ""
    reason: str = ""
    marks: tuple[str, ...] = ()
    origin: str = ""
    copied: bool = False
    damaged: bool = False
    values: Mapping[str, FeatureValue] | None = None

    @property
    def pieces(self) -> Sequence[bytes]:
        """The serialized example in pieces; empty without an example."""
        return (self.payload,) if isinstance(self.payload, bytes) else self.payload or ()

    @property
    def row(self) -> tuple[str, str, str, str]:
        """The first fields of its `LedgerRow`."""
        return self.key, self.status, self.code, self.reason


class PlannedShard(NamedTuple):
    """A shard of a plan: split, number from 0, number of shards in that split."""

    split: str
    number: int
    total: int


@dataclass(frozen=True)
class ShardResult:
    """A finished shard, as its `done` row records it.

    Attributes:
        split: its split.
        number: its number, from 0.
        total: number of shards in the split.
        info: its row of the manifest.
        index_checksum: hash of its index file.
        index_bytes: size of its index file.
        rows_bytes: size of its file of ledger rows.
        inputs: ledger rows it accounts for.
        marks: number of records by `RecordResult.marks`.
        tools: versions that its bytes depend on besides the plan, as `Staging` has them.
        origins_bytes: size of its file of origins, 0 where there is none.
        origins_checksum: hash of that file.
        copied: images that were copied from an earlier dataset.
        damaged: images whose record there was damaged, so that they were not copied.
        further: further staged files that belong to it, with their sizes.
        facts_bytes: size of its file of facts, 0 where there is none.
        facts_checksum: hash of that file.
        unlabeled: records without a class; counted where there are facts.
        classes: numbers of the classes that its records have; empty where there are no facts.
    """

    split: str
    number: int
    total: int
    info: ShardInfo
    index_checksum: str
    index_bytes: int
    rows_bytes: int
    inputs: int
    marks: Mapping[str, int] = field(default_factory=dict)
    tools: str = ""
    origins_bytes: int = 0
    origins_checksum: str = ""
    copied: int = 0
    damaged: int = 0
    further: Mapping[str, int] = field(default_factory=dict)
    facts_bytes: int = 0
    facts_checksum: str = ""
    unlabeled: int = 0
    classes: tuple[int, ...] = ()

    def has(self, further: Iterable[str], facts: FactsCollector | None) -> bool:
        """Returns whether the shard was finished together with these files, and with facts where these are wanted."""
        return self.further.keys() >= set(further) and (facts is None or self.facts_bytes > 0)


@dataclass
class _Written:
    """The records of a shard while they are written."""

    count: int = 0
    first: str | None = None
    last: str | None = None
    copied: int = 0
    damaged: int = 0
    marks: Counter[str] = field(default_factory=Counter)
    origins: list[str] = field(default_factory=list)

    def add(self, outcome: RecordResult, data: RecordWriter, index: WholeFile) -> int | None:
        """Writes the record of an input and its line of the index; returns its number, `None` without a record."""
        self.copied += outcome.copied
        self.damaged += outcome.damaged
        key, number = outcome.key, self.count
        if outcome.payload is None:
            return None
        offset, length = data.write(*outcome.pieces)
        # As `canonical_json` writes it, in a fifth of the time.
        index.write(f'{{"key":{canonical_json(key)},"length":{length},"offset":{offset}}}\n'.encode())
        self.first, self.last = self.first if number else key, key
        self.count += 1
        for mark in outcome.marks:
            self.marks[mark] += 1
        if outcome.origin:
            self.origins.append(f"[{offset},{outcome.origin}]\n")
        return number


def _collected(outcomes: Iterable[RecordResult], facts: FactsCollector | None) -> Iterator[RecordResult]:
    """Yields results, and adds the facts of their records."""
    for outcome in outcomes:
        if facts is not None and outcome.payload is not None:
            facts.add(outcome.key, outcome.payload, outcome.values)
        yield outcome


def _label_facts(facts: FactsCollector | None) -> dict[str, Any]:
    return {} if facts is None else {"unlabeled": facts.unlabeled, "classes": facts.classes}


@dataclass(frozen=True)
class Staging:
    """The staging folder of one plan. Picklable, so that workers can get it.

    Attributes:
        root: the folder, absolute; this machine's working folder, where the staging root is on a bucket.
        fingerprint: of the dataset that is being made.
        mirror: its part on a bucket, if there is one.
        tools: names and versions of packages that the bytes depend on besides the plan, such as an encoder. Shards that
            others have written are rewritten.
    """

    root: str
    fingerprint: str
    mirror: Mirror | None = None
    tools: str = ""

    @staticmethod
    def open(staging_root: str | os.PathLike[str], fingerprint: str, tools: str = "") -> Staging:
        """Opens the staging folder of a plan, and makes it where it is missing."""
        if is_remote(str(staging_root)):
            url = f"{str(staging_root).rstrip('/')}/{fingerprint}"
            return Staging(str(working_folder(url)), fingerprint, Mirror(url), tools)
        root = Path(staging_root, fingerprint).absolute()
        make_working_folder(root)
        return Staging(str(root), fingerprint, tools=tools)

    def __reduce__(self) -> tuple[Any, ...]:
        """Opens the folder again, since a worker on another machine has another working folder."""
        if self.mirror is None:
            return Staging, (self.root, self.fingerprint, None, self.tools)
        return Staging.open, (self.mirror.url.removesuffix(f"/{self.fingerprint}"), self.fingerprint, self.tools)

    @contextmanager
    def locked(self, fix: str | None = None) -> Iterator[None]:
        """Locks the folder for this run; the lock ends with the process.

        On a bucket, runs of other machines may be at work there at the same time.

        Args:
            fix: what to do if the disk is full, unless `run.staging` is the way out.

        Raises:
            UsageError: another run of this machine is writing the same dataset.
            StorageError: the disk is full.
        """
        fixes = () if fix is None else (fix,)
        with locked_folder(Path(self.root), *fixes), leased(self.mirror.url) if self.mirror else nullcontext():
            yield

    def path(self, relative: str) -> Path:
        """Returns a path inside the staging folder."""
        return inside(self.root, relative)

    def location(self, name: str) -> str:
        """Returns the path or URL by which any worker can read a finished file of the folder."""
        return f"{self.mirror.url}/{name}" if self.mirror else str(self.path(name))

    def result(self, planned: PlannedShard) -> ShardResult | None:
        """Returns the result of a shard when it is finished, else `None`."""
        return self._result(planned, self._size)

    def _result(self, planned: PlannedShard, size_of: Callable[[str], int | None]) -> ShardResult | None:
        try:
            raw = json.loads(self._read(_done(planned)))
            result = ShardResult(**{**raw, "info": ShardInfo(**raw["info"]), "classes": tuple(raw["classes"])})
            shard = shard_names.shard_path(*planned)
            sizes = {
                shard: result.info.bytes,
                shard_names.index_path(shard): result.index_bytes,
                _rows(planned): result.rows_bytes,
                **({origins_path(shard): result.origins_bytes} if result.origins_bytes else {}),
                **({shard_names.facts_path(shard): result.facts_bytes} if result.facts_bytes else {}),
                **result.further,
            }
            # An earlier version had no checksum of the origins.
            complete = result.tools == self.tools and bool(result.origins_bytes) == bool(result.origins_checksum)
            complete = complete and all(size_of(name) == size for name, size in sizes.items())
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return result if complete else None

    def results(self, planned: Iterable[PlannedShard]) -> list[ShardResult | None]:
        """Returns the results of shards; see `result`."""
        if self.mirror is None:
            shards = list(planned)
            return list(map_threads(self.result, shards, 1 if len(shards) <= _FEW else readers(self.root)))
        # One listing instead of many requests.
        sizes = self.mirror.sizes()

        def result(one: PlannedShard) -> ShardResult | None:
            return self._result(one, sizes.get) if _done(one) in sizes else None

        return list(map_threads(result, planned, readers(self.mirror.url)))

    def unfinished(self, planned: Iterable[PlannedShard]) -> list[PlannedShard]:
        """Returns the shards that are not finished: on a bucket, by one listing, those without a `done` row."""
        if self.mirror is None:
            return [one for one in planned if self.result(one) is None]
        done = self.mirror.sizes(_DONE)
        return [one for one in planned if _done(one) not in done]

    def write_shard(
        self,
        planned: PlannedShard,
        outcomes: Iterable[RecordResult],
        names: ShardNames = _DEFAULT_NAMES,
        further: Sequence[str] = (),
        facts: FactsCollector | None = None,
    ) -> ShardResult:
        """Writes a shard with its index and ledger rows, unless it is finished already.

        Args:
            planned: the shard.
            outcomes: one per input planned for it, in the order of the records; consumed lazily.
            names: names of the dataset's shards. In staging a shard has the default name: its records are not counted.
            further: further files that belong to the shard, which the last outcome has written (`write_file`).
            facts: collects the facts of the records, which are written next to the shard.

        Returns:
            The shard's result, new or from an earlier attempt.
        """
        finished = self.result(planned)
        if finished is not None and finished.has(further, facts):
            return finished
        # A row of an earlier attempt would declare the new files finished before they are flushed.
        durable.remove(self.path(_done(planned)))
        rows, written = RowSorter(self._scratch()), _Written()
        shard = shard_names.shard_path(*planned)
        index = shard_names.index_path(shard)
        with self._file(shard, flushed=False) as data, self._file(index, flushed=False) as positions:
            writer = RecordWriter(data)
            for outcome in in_groups(_collected(outcomes, facts), lambda outcome: sum(map(len, outcome.pieces))):
                number = written.add(outcome, writer, positions)
                rows.add(LedgerRow(*outcome.row, planned.split, planned.number, number))
        origins_bytes, origins_checksum = self._write_origins(shard, written.origins)
        facts_bytes, facts_checksum = self._write_facts(shard, facts)
        path = f"Split-{planned.split}/{names.name(*planned, written.count)}"
        info = ShardInfo(planned.split, path, written.count, data.size, data.checksum, written.first, written.last)
        result = ShardResult(
            *planned,
            info=info,
            index_checksum=positions.checksum,
            index_bytes=positions.size,
            rows_bytes=self.write_lines(_rows(planned), rows.lines(), flushed=False),
            inputs=rows.count,
            marks=dict(written.marks),
            tools=self.tools,
            origins_bytes=origins_bytes,
            origins_checksum=origins_checksum,
            copied=written.copied,
            damaged=written.damaged,
            further={name: self.path(name).stat().st_size for name in further},
            facts_bytes=facts_bytes,
            facts_checksum=facts_checksum,
            **_label_facts(facts),
        )
        more = ((origins_path(shard), origins_bytes), (shard_names.facts_path(shard), facts_bytes))
        self._store([shard, index, _rows(planned), *further, *(name for name, size in more if size)])
        self.share(_done(planned), canonical_json(dataclasses.asdict(result)).encode("utf-8"))
        return result

    def _write_origins(self, shard: str, origins: Sequence[str]) -> tuple[int, str]:
        """Writes the origins of the records of a shard, if there are any; returns the file's size and checksum."""
        if not origins:
            return 0, ""
        with self._file(origins_path(shard), flushed=False) as file:
            for line in checksummed_lines(origins):
                file.write(line.encode("utf-8"))
        return file.size, file.checksum

    def _write_facts(self, shard: str, facts: FactsCollector | None) -> tuple[int, str]:
        """Writes the facts of a shard, if there are any; returns the size of their file and its checksum."""
        if facts is None:
            return 0, ""
        with self._file(shard_names.facts_path(shard), flushed=False) as file:
            file.write(facts.encode())
        return file.size, file.checksum

    def _file(self, name: str, *, flushed: bool = True) -> WholeFile:
        # If files are kept on a bucket, the local one is temporary.
        kept = self.mirror is None
        return WholeFile(self.path(name), flushed=flushed and kept, flushed_later=kept)

    def _store(self, names: Sequence[str]) -> None:
        """Makes files durable, so that a `done` row may name them."""
        if self.mirror:
            self.mirror.move(Path(self.root), names)
            return
        durable.flush(place for name in names for place in (self.path(name), self.path(name).parent))

    def write_file(self, name: str, data: bytes) -> None:
        """Writes a file of this machine's folder; `write_shard` or `share` passes it to others."""
        with self._file(name) as file:
            file.write(data)

    def share(self, name: str, data: bytes) -> None:
        """Writes a file that workers on any machine read at its `location`."""
        self.write_file(name, data)
        if self.mirror:
            self.mirror.move(Path(self.root), (name,))

    def is_shared(self, name: str) -> bool:
        """Returns whether a file is at its `location`."""
        return self._size(name) is not None

    def write_lines(self, name: str, lines: Iterable[str], *, flushed: bool = True) -> int:
        """Writes a file of lines; returns its size."""
        with self._file(name, flushed=flushed) as file:
            for line in lines:
                file.write(line.encode("utf-8"))
        return file.size

    def write_rows(self, name: str, rows: Iterable[LedgerRow]) -> None:
        """Writes ledger rows of inputs that belong to no shard, e.g. rejected by the plan. `name` is unique to them."""
        sorter = RowSorter(self._scratch())
        for row in rows:
            sorter.add(row)
        self.write_lines(f"rows/{name}.jsonl", sorter.lines())

    def sorter(self) -> RowSorter:
        """Returns a sorter of rows with a separate scratch folder in this folder."""
        return RowSorter(self._scratch())

    def ledger_lines(self, planned: Sequence[PlannedShard], extra: Sequence[str] = ()) -> Iterator[str]:
        """Yields all ledger lines of shards and of named row files, by key, in bounded memory and open files."""
        return self.merged_lines(map(_rows, planned), [f"rows/{name}.jsonl" for name in extra])

    def merged_lines(self, finished: Iterable[str], local: Iterable[str]) -> Iterator[str]:
        """Yields the lines of files that are sorted by key, together, in bounded memory and open files.

        Args:
            finished: names of files of finished shards.
            local: names of files of this machine's folder.
        """
        scratch = self._scratch()
        scratch.mkdir()
        try:
            names = list(finished)
            files = self.mirror.fetch(names, scratch) if self.mirror else [self.path(name) for name in names]
            files += [self.path(name) for name in local]
            yield from merged(files, scratch)
        finally:
            remove_tree(scratch)

    def _scratch(self) -> Path:
        """Returns a name for a folder that only this call uses."""
        return self.path(f"merge-{uuid.uuid4().hex}")

    def remove(self) -> None:
        """Deletes the folder, after the dataset has appeared; on a bucket, the last run at work there does.

        It is renamed first: a run that is killed here must not leave a part of it, which the next attempt would use.
        """
        if self.mirror:
            remove_unless_leased(self.mirror.url)
        with suppress(OSError):
            remove_tree(set_aside(Path(self.root)))
        remove_tree(self.root)

    def place(self, name: str, target: Path) -> None:
        """Makes a hard link to a staged file, or copies it."""
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.mirror:
            self.mirror.place(name, target)
            return
        try:
            os.link(self.path(name), target)
        except OSError:  # Another file system, or one without links.
            shutil.copyfile(self.path(name), target)

    def send(self, name: str, url: str) -> None:
        """Copies a staged file to an object store."""
        if self.mirror:
            self.mirror.send(name, url)
        else:
            buckets.upload(url, str(self.path(name)))

    def _read(self, name: str) -> bytes:
        return self.mirror.read(name) if self.mirror else self.path(name).read_bytes()

    def _size(self, name: str) -> int | None:
        if self.mirror:
            return self.mirror.size(name)
        try:
            return self.path(name).stat().st_size
        except FileNotFoundError:
            return None


def _rows(planned: PlannedShard) -> str:
    return f"rows/Split-{planned.split}-{shard_names.shard_name(planned.number, planned.total)}.jsonl"


def _done(planned: PlannedShard) -> str:
    return f"{_DONE}Split-{planned.split}-{shard_names.shard_name(planned.number, planned.total)}.json"
