"""Writes one shard: its records, index, ledger rows, facts and origins.

Ranges of a shard may be written by different processes, each into a file of records of its own with a `Part` next to
it. The shard is then made of its parts: their records are copied, and the lines of index and ledger get the positions
that they have in the shard. So the files of a shard do not depend on how many processes wrote it.

A part is not flushed: it is of use until its shard is finished, minutes later. So it has a checksum, and the CRC-32C of
its records; one that a power failure has damaged is written again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c

from shardwright.dataset import ledger, shard_names
from shardwright.dataset.ledger import LedgerRow, RowSorter
from shardwright.dataset.manifest import ShardInfo, origins_path
from shardwright.dataset.record_facts import FactsCollector
from shardwright.dataset.shard_names import ShardNames
from shardwright.storage.checksum import checksum_of
from shardwright.storage.fingerprint import canonical_json, checksummed_lines
from shardwright.storage.whole_files import WholeFile
from shardwright.tfrecords.encode import FeatureValue
from shardwright.tfrecords.lazy_example import ExampleFeatures
from shardwright.tfrecords.records import RecordWriter

# Inputs whose lines are written together.
_TOGETHER = 1024


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
        input_line: the line of its file for the shard's file of inputs, or empty.
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
    values: Mapping[str, FeatureValue] | ExampleFeatures | None = None
    input_line: str = ""

    @property
    def pieces(self) -> Sequence[bytes]:
        """The serialized example in pieces; empty without an example."""
        return (self.payload,) if isinstance(self.payload, bytes) else self.payload or ()


class PlannedShard(NamedTuple):
    """A shard of a plan: split, number from 0, number of shards in that split."""

    split: str
    number: int
    total: int


def planned_shards(splits: Sequence[str]) -> tuple[PlannedShard, ...]:
    """Returns shards in the order of their splits, each with its number in its split."""
    totals, numbers = Counter(splits), Counter[str]()
    planned = []
    for split in splits:
        planned.append(PlannedShard(split, numbers[split], totals[split]))
        numbers[split] += 1
    return tuple(planned)


@dataclass(frozen=True)
class ShardResult:
    """A finished shard, as its `done` row records it.

    Attributes:
        split: its split.
        number: its number, from 0.
        total: number of shards in the split.
        info: its row of the manifest.
        inputs: ledger rows it accounts for.
        files: size and checksum of each of its files in staging, by name; further files have no checksum.
        marks: number of records by `RecordResult.marks`.
        tools: versions that its bytes depend on besides the plan, as `Staging` has them.
        copied: images that were copied from an earlier dataset.
        damaged: images whose record there was damaged, so that they were not copied.
        unlabeled: records without a class; counted where there are facts.
        classes: numbers of the classes that its records have; empty where there are no facts.
    """

    split: str
    number: int
    total: int
    info: ShardInfo
    inputs: int
    files: Mapping[str, tuple[int, str]]
    marks: Mapping[str, int] = field(default_factory=dict)
    tools: str = ""
    copied: int = 0
    damaged: int = 0
    unlabeled: int = 0
    classes: tuple[int, ...] = ()

    @property
    def placed(self) -> Iterator[tuple[str, str]]:
        """Names in staging and in the dataset: of the shard, its index, and its facts and origins if it has them."""
        shard = shard_names.shard_path(self.split, self.number, self.total)
        yield shard, self.info.path
        for path_of in (shard_names.index_path, shard_names.facts_path, origins_path):
            if path_of(shard) in self.files:
                yield path_of(shard), path_of(self.info.path)

    @property
    def has_facts(self) -> bool:
        """True if the facts of its records were collected."""
        return shard_names.facts_path(shard_names.shard_path(self.split, self.number, self.total)) in self.files


@dataclass
class Part:
    """Consecutive inputs of a shard.

    Attributes:
        entries: of each input key and length of its frame; or key, status, code and reason.
        marks: number of records by `RecordResult.marks`.
        origins: offset in the part, and JSON of the origin.
        inputs: key of each input, and the line of its file; see `shardwright.ingest.input_records`.
        copied: images that were copied from an earlier dataset.
        damaged: images whose record there was damaged.
        size: bytes of the records.
        crc32c: of these, hex.
        tools: what they depend on besides the plan, as `Staging` has it.
        facts: `FactsCollector.columns`, where facts are collected.
    """

    entries: list[list[Any]] = field(default_factory=list)
    marks: Counter[str] = field(default_factory=Counter)
    origins: list[tuple[int, str]] = field(default_factory=list)
    inputs: list[tuple[str, str]] = field(default_factory=list)
    copied: int = 0
    damaged: int = 0
    size: int = 0
    crc32c: str = ""
    tools: str = ""
    facts: Mapping[str, Any] | None = None

    def add(self, outcome: RecordResult, data: RecordWriter, facts: FactsCollector | None) -> None:
        """Writes the record of an input, if it has one, and notes it."""
        if outcome.payload is None:
            self.entries.append([outcome.key, outcome.status, outcome.code, outcome.reason])
        else:
            if facts is not None:
                facts.add(outcome.key, outcome.payload, outcome.values)
            _, length = data.write(*outcome.pieces)
            self.entries.append([outcome.key, length])
            self.marks.update(outcome.marks)
            if outcome.origin:
                self.origins.append((self.size, outcome.origin))
            self.size += length
        if outcome.input_line:
            self.inputs.append((outcome.key, outcome.input_line))
        self.copied += outcome.copied
        self.damaged += outcome.damaged

    def encode(self) -> bytes:
        """Returns the content of its file."""
        body = canonical_json(vars(self)).encode("utf-8")
        return checksum_of(body).encode("ascii") + b"\n" + body

    @staticmethod
    def decode(data: bytes) -> Part:
        """Reads the content of a file.

        Raises:
            ValueError: it is damaged.
        """
        checksum, _, body = data.partition(b"\n")
        if checksum_of(body).encode("ascii") != checksum:
            raise ValueError("it does not match its checksum")
        raw = json.loads(body)
        return Part(**{**raw, "marks": Counter(raw["marks"])})


class ShardWriter:
    """Writes a shard: `write` for each input or `append` for each part, then `finish`, all within a `with` block.

    Args:
        open_file: opens a file of the staging folder (`Staging.open_file`).
        scratch: name of a folder for temporary files, which does not exist.
        planned: the shard.
        tools: versions that its bytes depend on besides the plan.
        facts: collects the facts of its records.
        inputs: name of its file of inputs, if it has one.
    """

    def __init__(
        self,
        open_file: Callable[..., WholeFile],
        scratch: Path,
        planned: PlannedShard,
        tools: str,
        facts: FactsCollector | None,
        inputs: str = "",
    ) -> None:
        self._open, self._planned, self._tools, self._facts = open_file, planned, tools, facts
        self._path = shard_names.shard_path(*planned)
        self._rows, self._inputs, self._inputs_name = RowSorter(scratch), RowSorter(scratch.with_suffix(".in")), inputs
        self._new, self._all = Part(), Part()
        self._records = 0
        self._ends: list[str] = []
        self._files = ExitStack()

    def __enter__(self) -> ShardWriter:
        self._data = self._files.enter_context(self._open(self._path, flushed=False))
        self._index = self._files.enter_context(self._open(shard_names.index_path(self._path), flushed=False))
        self._writer = RecordWriter(self._data)
        return self

    def __exit__(self, *error: Any) -> None:
        self._files.__exit__(*error)

    def write(self, outcome: RecordResult) -> None:
        """Writes the record of one input, if it has one."""
        self._new.add(outcome, self._writer, self._facts)
        if len(self._new.entries) >= _TOGETHER:
            self.flush()

    def append(self, records: Path, part: Part) -> bool:
        """Adds all of a part.

        Args:
            records: the file of its records.
            part: what its writer has noted.

        Returns:
            False where it is damaged or made by other tools: then the block has to end with an error.
        """
        crc32c = google_crc32c.Checksum()
        size = self._data.append(records, crc32c)
        if (size, crc32c.digest().hex(), self._tools) != (part.size, part.crc32c, part.tools):
            return False
        if self._facts is not None:
            self._facts.join(part.facts or {})
        self._new = part
        self.flush()
        return True

    def flush(self) -> None:
        """Makes the lines of index and ledger of the inputs so far."""
        new, self._new, total = self._new, Part(), self._all
        split, shard, _ = self._planned
        end = f',"reason":"","shard":{shard},"split":{canonical_json(split)},"status":"{ledger.WRITTEN}"}}\n'
        offset, lines = total.size, []
        for key, *rest in new.entries:
            if len(rest) > 1:
                status, code, reason = rest
                self._rows.add(key, LedgerRow(key, status, code, reason, split, shard).to_json() + "\n")
                continue
            name = canonical_json(key)
            # As `canonical_json` writes it, in a fifth of the time.
            lines.append(f'{{"key":{name},"length":{rest[0]},"offset":{offset}}}\n')
            self._rows.add(key, f'{{"code":"","index":{self._records},"key":{name}{end}')
            offset += rest[0]
            self._records += 1
            self._ends[1:] = [key]
        self._index.write("".join(lines).encode("utf-8"))
        for key, line in new.inputs:
            self._inputs.add(key, line)
        total.origins += [(total.size + place, origin) for place, origin in new.origins]
        total.marks += new.marks
        total.size, total.copied, total.damaged = offset, total.copied + new.copied, total.damaged + new.damaged

    def finish(self, names: ShardNames) -> tuple[ShardResult, list[str]]:
        """Closes the files and writes those that go with them.

        Args:
            names: names of the dataset's shards.

        Returns:
            The result, without further files, and the names of the files to store.
        """
        self.flush()
        self._files.close()
        split, facts, index = self._planned.split, self._facts, self._index
        files = {shard_names.index_path(self._path): (index.size, index.checksum)}
        origins = [f"[{offset},{origin}]\n" for offset, origin in self._all.origins]
        more = {
            rows_path(self._planned): self._rows.lines(),
            **({origins_path(self._path): checksummed_lines(origins)} if origins else {}),
            **({} if facts is None else {shard_names.facts_path(self._path): [facts.encode().decode("utf-8")]}),
            **({self._inputs_name: self._inputs.lines()} if self._inputs_name else {}),
        }
        for name, lines in more.items():
            with self._open(name, flushed=False) as file:
                for line in lines:
                    file.write(line.encode("utf-8"))
            files[name] = file.size, file.checksum
        path = f"Split-{split}/{names.name(*self._planned, self._records)}"
        first, last = (self._ends[0], self._ends[-1]) if self._ends else (None, None)
        result = ShardResult(
            *self._planned,
            info=ShardInfo(split, path, self._records, self._data.size, self._data.checksum, first, last),
            inputs=self._rows.count,
            files=files,
            marks=dict(self._all.marks),
            tools=self._tools,
            copied=self._all.copied,
            damaged=self._all.damaged,
            unlabeled=0 if facts is None else facts.unlabeled,
            classes=() if facts is None else facts.classes,
        )
        return result, [self._path, *files]


def rows_path(planned: PlannedShard) -> str:
    """Returns the name of the file of ledger rows of a shard, in staging."""
    return f"rows/Split-{planned.split}-{shard_names.shard_name(planned.number, planned.total)}.jsonl"
