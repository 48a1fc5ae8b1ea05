"""Facts of the records of a shard in a small file next to it, so that a report reads neither pixels nor shards.

The writer of a shard has every record in hand and writes `facts/Split-<split>/<shard>.json`: a canonical JSON object of
columns, one value for each record in their order. Keys and offsets are in the index. The manifest has the checksum of
the file.

    records         number of records
    bytes, height, width, channels, orientation
                    whole numbers; 0 where unknown
    formats, format names of image formats; for each record its position in `formats`
    content         64 bits of the content ID as 16 hex digits; empty where it is not stored
    labels          for each record the numbers of its classes
    areas           for each class two lists: records that have its mask, and pixels of the mask; or null
    quality         for each measure of `Quality` its values in millionths; or null
    hashes          perceptual and average hash, each as 16 hex digits; or null
    masks           of some records, chosen by a hash of the key: [record, [[class, runs], ...]]; runs are the
                    packed int64 values of the mask's feature in base64; or null
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.dataset.example_view import ExampleReader, ExampleView, sampling_hash
from shardwright.dataset.manifest import Manifest
from shardwright.errors import DatasetError
from shardwright.images.quality import Quality
from shardwright.masks.rle import RleError, Runs, from_flat
from shardwright.storage.fingerprint import canonical_json
from shardwright.tfrecords.encode import FeatureValue
from shardwright.tfrecords.lazy_example import ExampleFeatures, FeatureValues, LazyExample
from shardwright.tfrecords.wire import WireError, unpack_int64
from shardwright.untrusted.json_text import MOST, parse_untrusted_json

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

# Quality is stored in whole numbers.
MILLIONTHS = 10**6
# About how many images of a dataset have their masks kept here.
MASKS_OF = 600
# An image whose masks have more bytes is left out of the sample, so that a writer needs little memory.
_MOST_MASK_BYTES = 96 << 10
# Values are below these, so that the product of two sides fits into int64.
_MOST = {"bytes": MOST, "height": 1 << 31, "width": 1 << 31, "channels": 1 << 31, "orientation": 9}
_NUMBERS = tuple(_MOST)
_NAMES = {*_NUMBERS, "records", "formats", "format", "content", "labels", "areas", "quality", "hashes", "masks"}
_HEX = frozenset("0123456789abcdef")
_HEX_DIGITS = 16
_CONTENT = re.compile(rb"[0-9a-f]{16}")


class FactsCollector:
    """Collects the facts of the records of one shard, in their order.

    Args:
        outline: the manifest of the dataset; its shards and parts may still be missing.
        shards: number of shards in the split. Each keeps its part of the sample of masks.
    """

    def __init__(self, outline: Manifest, shards: int) -> None:
        self._reader = ExampleReader(outline)
        self._numbers: dict[str, list[int]] = {name: [] for name in _NUMBERS}
        self._formats: dict[str, int] = {}
        self._format: list[int] = []
        self._content: list[str] = []
        self._labels: list[list[int]] = []
        self._areas: list[tuple[list[int], list[int]]] = [([], []) for _ in self._reader.areas or ()]
        self._quality: list[list[int]] | None = [[] for _ in Quality._fields] if self._reader.quality else None
        self._hashes: tuple[list[str], list[str]] | None = ([], []) if self._reader.hashes else None
        mean = MASKS_OF / max(1, shards)
        # Shards have their share of the sample and some more, since shares vary.
        self._sample = _LowestMasks(math.ceil(mean + 4 * math.sqrt(mean)) + 8) if self._reader.runs else None

    def add(
        self,
        key: str,
        payload: bytes | Sequence[bytes],
        features: Mapping[str, FeatureValue] | ExampleFeatures | None = None,
    ) -> None:
        """Adds a record.

        Args:
            key: its key.
            payload: the serialized example, or its pieces.
            features: those that it was made of, where they are known: then it is not parsed.

        Raises:
            RecordError: it is not an Example.
        """
        if features is not None:
            example = features if isinstance(features, ExampleFeatures) else FeatureValues(features)
        else:
            example = LazyExample(payload if isinstance(payload, bytes) else b"".join(payload))
        if self._quality is None and self._hashes is None and self._add_plain(key, example):
            return
        view = ExampleView(self._reader, key, example)
        record = len(self._format)
        height, width = view.size
        values = (view.bytes, height, width, view.channels, view.orientation)
        for name, value in zip(_NUMBERS, values, strict=True):
            self._numbers[name].append(value)
        self._format.append(self._formats.setdefault(view.format, len(self._formats)))
        self._content.append(f"{view.content:016x}" if view.content else "")
        self._labels.append(list(view.labels))
        areas = view.areas or ()
        for (records, pixels), area in zip(self._areas, areas, strict=True):
            if area:
                records.append(record)
                pixels.append(area)
        if self._quality is not None:
            quality = view.quality
            for column, part in zip(self._quality, quality or (0.0,) * len(Quality._fields), strict=True):
                column.append(round(part * MILLIONTHS))
        if self._hashes is not None:
            for hashes, value in zip(self._hashes, view.hashes or (0, 0), strict=True):
                hashes.append(f"{value:016x}")
        if self._sample is not None:
            self._sample.offer(view, record, self._reader.runs or [])

    def _add_plain(self, key: str, example: ExampleFeatures) -> bool:
        """Adds a record whose features have the types that the ingest makes, in a third of the time of a view.

        Returns:
            Whether they have.
        """
        reader, first = self._reader, example.first
        encoded, *names, label = reader.names.values()
        kind, height, width, channels, orientation = map(first, names)
        content, areas = first(reader.checksum), [first(name) for name in reader.areas or ()]
        if not (
            type(kind) is type(content) is bytes
            and type(height) is type(width) is type(channels) is type(orientation) is int
            and (height > 0 and width > 0 and 1 <= orientation < _MOST["orientation"])
            and all(type(area) is int for area in areas)
            and kind.isascii()
            and _CONTENT.match(content)
        ):
            return False
        record = len(self._format)
        for name, value in zip(_NUMBERS, (example.length(encoded), height, width, channels, orientation), strict=True):
            self._numbers[name].append(value)
        self._format.append(self._formats.setdefault(kind.decode(), len(self._formats)))
        text = content[:_HEX_DIGITS].decode()
        self._content.append("" if text == "0" * _HEX_DIGITS else text)
        self._labels.append([value for value in example.integers(label) if 0 <= value < len(reader.classes)])
        for (records, pixels), area in zip(self._areas, areas, strict=True):
            if area:
                records.append(record)
                pixels.append(int(area))
        if self._sample is not None:
            self._sample.offer(ExampleView(reader, key, example), record, reader.runs or [])
        return True

    @property
    def unlabeled(self) -> int:
        """Number of records without a class."""
        return sum(not labels for labels in self._labels)

    @property
    def classes(self) -> tuple[int, ...]:
        """Numbers of the classes that any record has, ascending."""
        return tuple(sorted({label for labels in self._labels for label in labels}))

    def encode(self) -> bytes:
        """Returns the content of the file."""
        facts = self.columns()
        if self._sample is not None:
            facts["masks"] = [row[1:] for row in sorted(facts["masks"], key=itemgetter(1))]
        return canonical_json(facts).encode("utf-8") + b"\n"

    def columns(self) -> dict[str, Any]:
        """Returns the facts as plain values, for `join`; each row of `masks` begins with the hash of its key."""
        return {
            "records": len(self._format),
            **self._numbers,
            "formats": list(self._formats),
            "format": self._format,
            "content": self._content,
            "labels": self._labels,
            "areas": [list(pair) for pair in self._areas] if self._reader.areas else None,
            "quality": self._quality,
            "hashes": None if self._hashes is None else list(self._hashes),
            "masks": None if self._sample is None else self._sample.rows(),
        }

    def join(self, columns: Mapping[str, Any]) -> None:
        """Adds the `columns` of the records that follow, which another collector has made."""
        before = len(self._format)
        for name, values in self._numbers.items():
            values += columns[name]
        places = [self._formats.setdefault(name, len(self._formats)) for name in columns["formats"]]
        self._format += [places[number] for number in columns["format"]]
        self._content += columns["content"]
        self._labels += columns["labels"]
        for (records, pixels), (further, more) in zip(self._areas, columns["areas"] or (), strict=True):
            records += [before + record for record in further]
            pixels += more
        lists: list[list[Any]] = [*(self._quality or ()), *(self._hashes or ())]
        for values, more in zip(lists, [*(columns["quality"] or ()), *(columns["hashes"] or ())], strict=True):
            values += more
        if self._sample is not None:
            self._sample.keep((drawn, before + record, masks) for drawn, record, masks in columns["masks"])


@dataclass
class _LowestMasks:
    """The masks of the records whose keys have the lowest hashes."""

    count: int
    kept: list[tuple[float, int, list[list[Any]]]] = field(default_factory=list)
    limit: float = math.inf

    def offer(self, view: ExampleView, record: int, names: Sequence[str]) -> None:
        drawn = sampling_hash(view.key)
        if drawn > self.limit:
            return
        masks = []
        for label, name in enumerate(names):
            data = view.example.packed(name)
            if data:
                masks.append((label, data))
            # A mask without pixels, and one in another layout or left out for its size, both have no packed numbers.
            elif data is None and view.areas is not None and view.areas[label]:
                return
        if sum(len(data) for _, data in masks) <= _MOST_MASK_BYTES:
            texts = [[label, base64.b64encode(data).decode("ascii")] for label, data in masks]
            self.keep([(drawn, record, texts)])

    def keep(self, rows: Iterable[tuple[float, int, list[list[Any]]]]) -> None:
        """Takes records: hash, number, masks."""
        self.kept += rows
        if len(self.kept) >= 2 * self.count + 16:
            self._prune()

    def rows(self) -> list[list[Any]]:
        """Returns those with the lowest hashes."""
        self._prune()
        return [list(row) for row in self.kept]

    def _prune(self) -> None:
        self.kept = sorted(self.kept, key=lambda row: row[:2])[: self.count]
        if len(self.kept) == self.count:
            self.limit = self.kept[-1][0]


@dataclass(frozen=True)
class ShardFacts:
    """The facts of the records of one shard; arrays have a value for each record.

    Attributes:
        records: number of records.
        numbers: `bytes`, `height`, `width`, `channels`, `orientation` -> values.
        formats: names of image formats.
        format: position of each record's format in `formats`.
        content: 64 bits of the content ID; 0 where it is not stored.
        labels: numbers of the classes.
        areas: for each class the records with its mask and the pixels of the mask; `None` where none are stored.
        quality: for each measure of `Quality` its values in millionths; `None` where they were not measured.
        hashes: perceptual and average hash; `None` where they are not stored.
        masks: record -> class -> packed runs, of a sample of the records; `None` where masks are not runs.
    """

    records: int
    numbers: Mapping[str, Ints]
    formats: Sequence[str]
    format: Ints
    content: Hashes
    labels: Sequence[Sequence[int]]
    areas: Sequence[tuple[Ints, Ints]] | None
    quality: Sequence[Ints] | None
    hashes: tuple[Hashes, Hashes] | None
    masks: Mapping[int, Mapping[int, str]] | None

    @staticmethod
    def decode(data: bytes, manifest: Manifest, records: int, where: str) -> ShardFacts:
        """Reads the content of a file of facts.

        Args:
            data: the content.
            manifest: the manifest of its dataset.
            records: records that the shard has.
            where: name of the file, for messages.

        Raises:
            DatasetError: it is damaged.
        """
        try:
            raw = parse_untrusted_json(data)
            if not isinstance(raw, dict) or raw.keys() != _NAMES:
                raise ValueError(f"the names are not {', '.join(sorted(_NAMES))}")
            reader = ExampleReader(manifest)
            stored = {"areas": reader.areas, "quality": reader.quality, "hashes": reader.hashes, "masks": reader.runs}
            for name, features in stored.items():
                if (raw[name] is None) != (features is None):
                    raise ValueError(f"{name} do not fit the features of the manifest")
            return _decoded(raw, len(manifest.classes), records)
        except (ValueError, TypeError, OverflowError) as error:
            raise DatasetError(f"{where}: not readable facts ({error}). Re-create the dataset.") from None

    def runs(self, record: int, label: int) -> Runs:
        """Returns the mask of a class in a record of the sample.

        Raises:
            DatasetError: the stored values are not runs within the image.
        """
        packed = (self.masks or {})[record].get(label, "")
        try:
            runs = from_flat(unpack_int64(base64.b64decode(packed, validate=True)))
            if len(runs) and runs[-1].sum() > self.numbers["height"][record] * self.numbers["width"][record]:
                raise RleError("it is larger than the image")
        except (WireError, RleError, binascii.Error) as error:
            problem = f"facts: the mask of class {label} in record {record} is damaged ({error})"
            raise DatasetError(f"{problem}. Re-create the dataset.") from None
        return runs


def _decoded(raw: Any, classes: int, records: int) -> ShardFacts:
    if raw["records"] != records:
        raise ValueError(f"{raw['records']!a:.20} records instead of {records}")
    areas, quality, hashes, masks = (raw[name] for name in ("areas", "quality", "hashes", "masks"))
    formats = [_text(name) for name in raw["formats"]]
    columns = [] if areas is None else [_area(pair, records) for pair in areas]
    if areas is not None and len(columns) != classes:
        raise ValueError(f"areas of {len(columns)} classes instead of {classes}")
    return ShardFacts(
        records,
        {name: _integers(raw[name], records, below=_MOST[name]) for name in _NUMBERS},
        formats,
        _integers(raw["format"], records, below=max(1, len(formats))),
        _hexes(raw["content"], records),
        [_integers(row, None, below=max(1, classes)).tolist() for row in _listed(raw["labels"], records)],
        None if areas is None else columns,
        None if quality is None else [_integers(column, records) for column in _listed(quality, len(Quality._fields))],
        None if hashes is None else (_hexes(_listed(hashes, 2)[0], records), _hexes(hashes[1], records)),
        None if masks is None else dict(_masks(masks, classes, records)),
    )


def _area(pair: Any, records: int) -> tuple[Ints, Ints]:
    rows = _integers(_listed(pair, 2)[0], None, below=max(1, records))
    return rows, _integers(pair[1], len(rows))


def _masks(rows: Any, classes: int, records: int) -> Any:
    for record, masks in _listed(rows, None):
        (number,) = _integers([record], 1, below=records).tolist()
        labels = _integers([label for label, _ in masks], None, below=classes).tolist()
        yield number, {label: _text(packed) for label, (_, packed) in zip(labels, masks, strict=True)}


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!a:.40} is not a text")
    return value


def _listed(value: Any, length: int | None) -> list[Any]:
    if type(value) is not list or (length is not None and len(value) != length):
        raise ValueError(f"{value!a:.40} is not a list of {length} values")
    return value


def _integers(values: Any, length: int | None, below: int | None = None) -> Ints:
    """Returns a list of whole numbers from 0 as an array."""
    listed = _listed(values, length)
    array = np.array(listed or [0])
    if array.dtype != np.int64 or array.ndim != 1 or array.min() < 0 or (below is not None and array.max() >= below):
        raise ValueError(f"{values!a:.60} are not whole numbers from 0 within their range")
    return array[: len(listed)]


def _hexes(values: Any, length: int) -> Hashes:
    listed = _listed(values, length)
    for value in listed:
        if type(value) is not str or len(value) not in (0, _HEX_DIGITS) or not _HEX.issuperset(value):
            raise ValueError(f"{value!a:.40} is not 64 bits as hex digits")
    return np.array([int(value or "0", 16) for value in listed], np.uint64)
