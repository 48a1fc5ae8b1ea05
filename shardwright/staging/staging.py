"""Writes the shards of a dataset one by one into a staging folder; `commit` makes the dataset of them.

Any number of processes may write shards of one plan, or parts of one shard. A shard is finished when its `done` row is
there, and a finished shard is never written twice. A kill or a power failure at any moment leaves either the old state
or the new one. Files are written under a temporary name, renamed and flushed, and the `done` row comes last.

Inside `<staging root>/<fingerprint>/`:

    Split-<split>/, index/Split-<split>/   as in the dataset, under the default names
    facts/Split-<split>/                   as in the dataset, if the writer gets a collector
    rows/<name>.jsonl                      ledger rows of one shard, or of inputs rejected before any shard; by key
    origins/                               see `shardwright.ingest.copying`; only if there are origins
    parts/<shard>/<begin>-<end>[.json]     records of inputs of an unfinished shard, and its `Part`
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
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import google_crc32c

from shardwright.dataset import shard_names
from shardwright.dataset.ledger import LedgerRow, RowSorter, merged
from shardwright.dataset.manifest import ShardInfo
from shardwright.dataset.record_facts import FactsCollector
from shardwright.dataset.shard_names import ShardNames
from shardwright.staging.shard_writer import Part, PlannedShard, RecordResult, ShardResult, ShardWriter, rows_path
from shardwright.storage import buckets, durable, in_groups, is_remote, map_threads, readers
from shardwright.storage.fingerprint import canonical_json
from shardwright.storage.locks import lock_file, locked_folder
from shardwright.storage.mirror import Mirror, leased, remove_unless_leased, working_folder
from shardwright.storage.own_names import make_own_folder, make_working_folder, remove_tree, set_aside
from shardwright.storage.whole_files import WholeFile
from shardwright.tfrecords.records import RecordWriter
from shardwright.untrusted.json_text import inside

__all__ = ["STAGING_VARIABLE", "PlannedShard", "RecordResult", "ShardResult", "Staging"]

# Names the folder of staging folders; it is part of no fingerprint.
STAGING_VARIABLE = "SHARDWRIGHT_STAGING"
# Its folder on a volume, where a compiled pipeline is told no other: a name that anybody can know.
VOLUME_STAGING = ".shardwright-staging"

_DEFAULT_NAMES = ShardNames()
_DONE = "done/"
# The end of the name of what is noted of a part.
_PART = ".json"
_PART_FILE = re.compile(r"/Split-([^/]+)-data-([0-9]+)-of-([0-9]+)/([0-9]+)-([0-9]+)\.json$")
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

    def result(self, planned: PlannedShard, size_of: Callable[[str], int | None] | None = None) -> ShardResult | None:
        """Returns the result of a shard when it is finished, else `None`; `size_of` knows the sizes of staged files."""
        try:
            raw = json.loads(self._read(_done(planned)))
            files = {name: (size, checksum) for name, (size, checksum) in raw["files"].items()}
            kept = {"info": ShardInfo(**raw["info"]), "files": files, "classes": tuple(raw["classes"])}
            result = ShardResult(**{**raw, **kept})
            sizes = {shard_names.shard_path(*planned): result.info.bytes}
            sizes |= {name: size for name, (size, _) in files.items()}
            size_of = size_of or self._size
            complete = result.tools == self.tools and all(size_of(name) == size for name, size in sizes.items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
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
            return self.result(one, sizes.get) if _done(one) in sizes else None

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
        inputs: str = "",
    ) -> ShardResult:
        """Writes a shard with its index and ledger rows, unless it is finished already.

        Args:
            planned: the shard.
            outcomes: one per input planned for it, in the order of the records; consumed lazily.
            names: names of the dataset's shards. In staging a shard has the default name: its records are not counted.
            further: further files that belong to the shard, which the last outcome has written (`write_file`).
            facts: collects the facts of the records, which are written next to the shard.
            inputs: name of the file of the lines of its inputs, if there is one.

        Returns:
            The shard's result, new or from an earlier attempt.
        """
        finished, wanted = self.result(planned), {*further, *filter(None, [inputs])}
        if finished is not None and finished.files.keys() >= wanted and (facts is None or finished.has_facts):
            return finished
        with self._writer(planned, facts, inputs) as writer:
            for outcome in in_groups(outcomes, _weight):
                writer.write(outcome)
            return self._finish(writer, names, further)

    def write_part(
        self, planned: PlannedShard, begin: int, end: int, outcomes: Iterable[RecordResult], facts: FactsCollector
    ) -> None:
        """Writes a part of a shard, for `join_parts`, unless it is there.

        Args:
            planned: the shard.
            begin: the first input of the part.
            end: the input after the last.
            outcomes: one per input, in the order of the records.
            facts: collects the facts of the records.
        """
        name = f"{_parts(planned)}/{_part(begin, end)}"
        if self.is_shared(name + _PART):
            return
        part = Part(tools=self.tools)
        with WholeFile(self.path(name), flushed=False, checksum=google_crc32c.Checksum()) as data:
            writer = RecordWriter(data)
            for outcome in in_groups(outcomes, _weight):
                part.add(outcome, writer, facts)
        part.crc32c, part.facts = data.checksum, facts.columns()
        with WholeFile(self.path(name + _PART), flushed=False) as file:
            file.write(part.encode())
        if self.mirror:
            self.mirror.move(Path(self.root), (name, name + _PART))

    def missing_parts(self, planned: PlannedShard, bounds: Sequence[int]) -> list[int]:
        """Returns the positions in `bounds` of the parts of a shard that are not written yet."""
        names: Iterable[str] = ()
        with suppress(FileNotFoundError):
            names = self.mirror.sizes(_parts(planned)) if self.mirror else os.listdir(self.path(_parts(planned)))
        there = {name.rpartition("/")[2] for name in names}
        return [i for i, ends in enumerate(pairwise(bounds)) if _part(*ends) + _PART not in there]

    def written_parts(self) -> Counter[PlannedShard]:
        """Returns how many inputs of each unfinished shard are in written parts; on a bucket by one listing."""
        names = self.mirror.sizes("parts/") if self.mirror else self.path("parts").glob("*/*")
        counts = Counter[PlannedShard]()
        for match in filter(None, map(_PART_FILE.search, map(str, names))):
            split, number, total, begin, end = match.groups()
            counts[PlannedShard(split, int(number), int(total))] += int(end) - int(begin)
        return counts

    def join_parts(
        self,
        planned: PlannedShard,
        bounds: Sequence[int],
        names: ShardNames,
        facts: FactsCollector,
        inputs: str = "",
    ) -> int | None:
        """Makes a shard of its parts, if all are there and no other process does.

        Args:
            planned: the shard.
            bounds: where its parts begin, and where the last one ends.
            names: names of the dataset's shards.
            facts: joins the facts of the parts.
            inputs: name of the file of the lines of its inputs, if there is one.

        Returns:
            The position in `bounds` of a part that is damaged, and has been deleted; `None` where there is none.
        """
        if self.missing_parts(planned, bounds):
            return None
        folder = self.path(_parts(planned))
        if self.mirror:
            folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder) as alone:
            if not alone or self.result(planned) is not None:
                return None
            try:
                with self._writer(planned, facts, inputs) as writer:
                    for number, (begin, end) in enumerate(pairwise(bounds)):
                        self._append(writer, number, f"{_parts(planned)}/{_part(begin, end)}")
                    self._finish(writer, names)
            except _DamagedPart as damaged:
                return damaged.number
            remove_tree(folder)
        return None

    def _append(self, writer: ShardWriter, number: int, name: str) -> None:
        """Adds a part to a shard; deletes one that is damaged."""
        records = self.path(name)
        try:
            part = Part.decode(self._read(name + _PART))
            if self.mirror:
                self.mirror.place(name, records)
            sound = writer.append(records, part)
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            sound = False
        if not sound:
            if self.mirror:
                self.mirror.delete(name + _PART)
            self.path(name + _PART).unlink(missing_ok=True)
            raise _DamagedPart(number)

    def _writer(self, planned: PlannedShard, facts: FactsCollector | None, inputs: str) -> ShardWriter:
        # A row of an earlier attempt would declare the new files finished before they are flushed.
        durable.remove(self.path(_done(planned)))
        return ShardWriter(self.open_file, self._scratch(), planned, self.tools, facts, inputs)

    def _finish(self, writer: ShardWriter, names: ShardNames, further: Sequence[str] = ()) -> ShardResult:
        """Stores the files of a shard, then its `done` row."""
        result, stored = writer.finish(names)
        sizes = {name: (self.path(name).stat().st_size, "") for name in further}
        result = dataclasses.replace(result, files={**result.files, **sizes})
        self._store([*stored, *further])
        done = _done(PlannedShard(result.split, result.number, result.total))
        self.share(done, canonical_json(dataclasses.asdict(result)).encode("utf-8"))
        return result

    def open_file(self, name: str, *, flushed: bool = True) -> WholeFile:
        """Opens a new file of this machine's folder, which `_store` flushes if it is not `flushed`."""
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
        with self.open_file(name) as file:
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
        with self.open_file(name, flushed=flushed) as file:
            for line in lines:
                file.write(line.encode("utf-8"))
        return file.size

    def write_rows(self, name: str, rows: Iterable[LedgerRow]) -> None:
        """Writes ledger rows of inputs that belong to no shard, e.g. rejected by the plan. `name` is unique to them."""
        sorter = RowSorter(self._scratch())
        for row in rows:
            sorter.add(row.key, f"{row.to_json()}\n")
        self.write_lines(f"rows/{name}.jsonl", sorter.lines())

    def ledger_lines(self, planned: Sequence[PlannedShard], extra: Sequence[str] = ()) -> Iterator[str]:
        """Yields all ledger lines of shards and of named row files, by key, in bounded memory and open files."""
        return self.merged_lines(map(rows_path, planned), [f"rows/{name}.jsonl" for name in extra])

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


def _done(planned: PlannedShard) -> str:
    return f"{_DONE}Split-{planned.split}-{shard_names.shard_name(planned.number, planned.total)}.json"


def _parts(planned: PlannedShard) -> str:
    return f"parts/Split-{planned.split}-{shard_names.shard_name(planned.number, planned.total)}"


def _part(begin: int, end: int) -> str:
    return f"{begin:09d}-{end:09d}"


def _weight(outcome: RecordResult) -> int:
    return sum(map(len, outcome.pieces))


class _DamagedPart(Exception):
    """The part of a number is damaged."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Locks a folder of parts; yields False where another process has it, or has finished its shard and deleted it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            alone = lock_file(descriptor)
        except OSError:  # Without locks two processes may make the shard, of the same bytes.
            alone = True
        yield alone
    finally:
        os.close(descriptor)
