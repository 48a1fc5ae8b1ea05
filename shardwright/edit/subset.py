"""Which images a subset holds: the same part of every split and of every class, chosen by a hash of the keys.

Classes stand in the records only. So all of them are read, once: while they go by, their shards are held against the
manifest, and what each record is is kept, so that the few that are taken need not be looked for in whole shards again
(`shardwright.edit.derive`). Where every image is taken, or none has a class, keys say enough.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.dataset.example_view import ExampleReader, sampling_hash
from shardwright.dataset.manifest import NONE
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.edit.derive import SPARSE, RecordDigests
from shardwright.errors import UsageError
from shardwright.fingerprint import text_number

# How many images a stratum gives is known in the end. It is kept what the records are of so many times as many as are
# expected, and of the lowest lot; where that was not enough, which is rare, a shard is read whole again.
_MARGIN = 4
_HASH_BYTES = hashlib.sha256().digest_size


class Selection(NamedTuple):
    """Images.

    Attributes:
        numbers: `fingerprint.text_number` of their keys.
        proofs: what their records are, where these were read for it.
    """

    numbers: set[int]
    proofs: RecordDigests


def stratified(
    dataset: ImageDataset,
    share: float | None = None,
    *,
    count: int | None = None,
    splits: Collection[str] | None = None,
    classes: Collection[str] | None = None,
    seed: int = 0,
) -> Selection:
    """Chooses images.

    Every stratum, the images of one split with the same classes, gives the same share, and at least one.

    Args:
        dataset: read once, or only its indexes.
        share: part of the images, over 0 to 1; all by default.
        count: how many images instead, about: strata are rounded.
        splits: only images of these.
        classes: only images that have one of these.
        seed: another one chooses others.

    Raises:
        UsageError: there is no such split or class, or nothing is left.
        DatasetError: a record is damaged or, where few are taken, a shard is not the manifest's.
    """
    manifest = dataset.manifest
    for what, wanted, known in (("split", splits, manifest.splits), ("class", classes, manifest.classes)):
        for name in wanted or ():
            if name not in known:
                raise UsageError(f"{dataset.root}: no {what} {name!r}. It has: {', '.join(known)}.")
    shards = [
        shard for split in (manifest.splits if splits is None else sorted(splits)) for shard in dataset.shards(split)
    ]
    records = sum(shard.records for shard in shards)
    part = _part(share, count, records)
    if not classes and (part == 1 or manifest.labels == NONE):
        strata = _by_split(dataset, shards, seed)
    else:
        # How many images have the classes wanted is not known before: probably few.
        below = 1.0 if classes else _MARGIN * part if part < SPARSE else None
        strata = _by_classes(dataset, shards, classes, seed, below)
    total = sum(len(stratum.lots) for stratum in strata)
    if not total:
        raise UsageError(f"{dataset.root}: no image is of these splits and classes.")
    part = _part(share, count, total)
    numbers: set[int] = set()
    proofs: dict[str, dict[int, bytes]] = {}
    for stratum in strata:
        taken = stratum.lowest(max(1, round(part * len(stratum.lots))))
        numbers.update(np.frombuffer(stratum.numbers, np.int64)[taken].tolist())
        for shard, offset, digest in stratum.proofs(taken):
            proofs.setdefault(shards[shard].file, {})[offset] = digest
    # Of many, whole shards are read anyway.
    return Selection(numbers, proofs if len(numbers) < SPARSE * records else {})


class _Stratum:
    """The images of a stratum, in the order of their records; in compact form, since there may be millions."""

    def __init__(self) -> None:
        self.lots = array("d")
        self.numbers = array("q")
        self._lowest = 1.0
        # Of the images whose records are known: which they are, shards and offsets in turn, hashes one after the other.
        self._known = array("q")
        self._places = array("q")
        self._digests = bytearray()

    def add(self, key: str, seed: int) -> float:
        """Takes an image in; its lot."""
        drawn = sampling_hash(key, seed)
        self.lots.append(drawn)
        self.numbers.append(text_number(key))
        return drawn

    def add_proven(self, key: str, seed: int, below: float, shard: int, offset: int, payload: bytes) -> None:
        """Takes an image in, and keeps what its record is if its lot is below a bound or the lowest so far."""
        drawn = self.add(key, seed)
        if drawn < below or drawn < self._lowest:
            self._lowest = min(drawn, self._lowest)
            self._known.append(len(self.lots) - 1)
            self._places.extend((shard, offset))
            self._digests += hashlib.sha256(payload).digest()

    def lowest(self, count: int) -> npt.NDArray[np.int64]:
        """The images with the lowest lots."""
        return np.argsort(np.frombuffer(self.lots), kind="stable")[:count]

    def proofs(self, images: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, bytes]]:
        """Number of the shard, offset and hash of the record of images, as far as they are known."""
        for place in np.flatnonzero(np.isin(np.array(self._known, np.int64), images)).tolist():
            shard, offset = self._places[2 * place : 2 * place + 2]
            yield shard, offset, bytes(self._digests[_HASH_BYTES * place : _HASH_BYTES * (place + 1)])


def _part(share: float | None, count: int | None, total: int) -> float:
    if count is not None:
        return min(1.0, count / max(1, total))
    return 1.0 if share is None else share


def _by_split(dataset: ImageDataset, shards: Sequence[LocatedShard], seed: int) -> list[_Stratum]:
    strata: dict[str, _Stratum] = {}
    for shard in shards:
        stratum = strata.setdefault(shard.split, _Stratum())
        for key, _ in dataset.entries(shard):
            stratum.add(key, seed)
    return [stratum for stratum in strata.values() if stratum.lots]


def _by_classes(
    dataset: ImageDataset,
    shards: Sequence[LocatedShard],
    classes: Collection[str] | None,
    seed: int,
    below: float | None,
) -> list[_Stratum]:
    """The strata, with what the records are of images whose lots are below a bound; `None`: of none."""
    labels = {dataset.manifest.classes.index(name) for name in classes} if classes else None
    reader = ExampleReader(dataset.manifest)
    strata: dict[tuple[str, tuple[int, ...]], _Stratum] = {}
    for number, shard in enumerate(shards):
        for key, offset, payload in dataset.placed_records(shard, proven=below is not None):
            own = tuple(sorted(set(reader.read(key, payload).labels)))
            if labels is None or labels & set(own):
                stratum = strata.setdefault((shard.split, own), _Stratum())
                if below is None:
                    stratum.add(key, seed)
                else:
                    stratum.add_proven(key, seed, below, number, offset, payload)
    return list(strata.values())
