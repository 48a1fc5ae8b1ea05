"""Selects the images of a subset: the same part of every split and of every class, chosen by a hash of the keys.

Only records contain the classes. So all records are read once; their shards are compared with the manifest, and digests
of records are kept, so that the selected ones need not be searched in whole shards again (`shardwright.edit.derive`).
If all images are selected, or none has a class, only the keys are read.
"""

from __future__ import annotations

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
from shardwright.storage.checksum import DIGEST_BYTES, digest_of
from shardwright.storage.fingerprint import text_number

# The number of selected images of a stratum is known in the end. So digests are kept for this many times the expected
# number, and for the image of the lowest hash. If that is not enough, which is rare, a shard is read whole again.
_MARGIN = 4
_HASH_BYTES = DIGEST_BYTES


class Selection(NamedTuple):
    """Selected images.

    Attributes:
        numbers: `fingerprint.text_number` of their keys.
        digests: digests of their records, where these were read.
    """

    numbers: set[int]
    digests: RecordDigests


def stratified(
    dataset: ImageDataset,
    share: float | None = None,
    *,
    count: int | None = None,
    splits: Collection[str] | None = None,
    classes: Collection[str] | None = None,
    seed: int = 0,
) -> Selection:
    """Selects images.

    The same share of every stratum (the images of one split with the same classes) is selected, at least one image.

    Args:
        dataset: read once, or only its indexes.
        share: part of the images, over 0 to 1; all by default.
        count: about how many images instead: strata are rounded.
        splits: only images of these.
        classes: only images that have one of these.
        seed: another seed selects other images.

    Raises:
        UsageError: there is no such split or class, or nothing is left.
        DatasetError: a record is damaged or, if few are selected, a shard is not the manifest's.
    """
    manifest = dataset.manifest
    for kind, wanted, known in (("split", splits, manifest.splits), ("class", classes, manifest.classes)):
        for name in wanted or ():
            if name not in known:
                raise UsageError(f"{dataset.root}: has no {kind} {name!r}. It has: {', '.join(known)}.")
    shards = [
        shard for split in (manifest.splits if splits is None else sorted(splits)) for shard in dataset.shards(split)
    ]
    records = sum(shard.records for shard in shards)
    part = _part(share, count, records)
    if not classes and (part == 1 or manifest.labels == NONE):
        strata = _by_split(dataset, shards, seed)
    else:
        # The number of images with these classes is not known before: probably few.
        below = 1.0 if classes else _MARGIN * part if part < SPARSE else None
        strata = _by_classes(dataset, shards, classes, seed, below)
    total = sum(len(stratum.hashes) for stratum in strata)
    if not total:
        raise UsageError(f"{dataset.root}: has no image of these splits and classes. Name others.")
    part = _part(share, count, total)
    numbers: set[int] = set()
    digests: dict[str, dict[int, bytes]] = {}
    for stratum in strata:
        selected = stratum.lowest(max(1, round(part * len(stratum.hashes))))
        numbers.update(np.frombuffer(stratum.numbers, np.int64)[selected].tolist())
        for shard, offset, digest in stratum.digests(selected):
            digests.setdefault(shards[shard].file, {})[offset] = digest
    # For many images, whole shards are read anyway.
    return Selection(numbers, digests if len(numbers) < SPARSE * records else {})


class _Stratum:
    """The images of a stratum, in the order of their records; in compact form, since there may be millions."""

    def __init__(self) -> None:
        self.hashes = array("d")
        self.numbers = array("q")
        self._lowest = 1.0
        # Images with known digests: their positions, pairs of shard and offset, digests.
        self._known = array("q")
        self._locations = array("q")
        self._digests = bytearray()

    def add(self, key: str, seed: int) -> float:
        """Adds an image; returns its hash."""
        value = sampling_hash(key, seed)
        self.hashes.append(value)
        self.numbers.append(text_number(key))
        return value

    def add_with_digest(self, key: str, seed: int, below: float, shard: int, offset: int, payload: bytes) -> None:
        """Adds an image, and keeps the digest of its record if its hash is below a bound or the lowest so far."""
        value = self.add(key, seed)
        if value < below or value < self._lowest:
            self._lowest = min(value, self._lowest)
            self._known.append(len(self.hashes) - 1)
            self._locations.extend((shard, offset))
            self._digests += digest_of(payload)

    def lowest(self, count: int) -> npt.NDArray[np.int64]:
        """Returns the images with the lowest hashes."""
        return np.argsort(np.frombuffer(self.hashes), kind="stable")[:count]

    def digests(self, images: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, bytes]]:
        """Yields number of the shard, offset and digest of the record, of those images that have a known digest."""
        for number in np.flatnonzero(np.isin(np.array(self._known, np.int64), images)).tolist():
            shard, offset = self._locations[2 * number : 2 * number + 2]
            yield shard, offset, bytes(self._digests[_HASH_BYTES * number : _HASH_BYTES * (number + 1)])


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
    return [stratum for stratum in strata.values() if stratum.hashes]


def _by_classes(
    dataset: ImageDataset,
    shards: Sequence[LocatedShard],
    classes: Collection[str] | None,
    seed: int,
    below: float | None,
) -> list[_Stratum]:
    """Returns the strata, with digests of images whose hashes are below a bound; `None`: without digests."""
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
                    stratum.add_with_digest(key, seed, below, number, offset, payload)
    return list(strata.values())
