"""Merges datasets, so that no image is in two splits: the first dataset that has an image decides its split.

A copy of the same bytes in another split of a later dataset is left out; the ledger has it as a duplicate. Copies in
the same split are kept, as an ingest keeps them. Equal bytes within one dataset stay as they are: its own ingest
decided about them. The facts next to the shards contain 64 bits of each content ID, so no record is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config.shards import ShardsConfig
from shardwright.dataset.ledger import DUPLICATE, LedgerRow
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset, contents_of
from shardwright.duplicates.find import CONFLICTING, EXACT_DUPLICATE, SAME_BYTES
from shardwright.edit.derive import Derived, check_sources, derive
from shardwright.running.progress import counted

_SHOWN = 3


class Merged(NamedTuple):
    """A merged dataset.

    Attributes:
        manifest: its manifest.
        left_out: rows of the images that are left out: an earlier dataset has their bytes in another split.
        kept_twice: number of images of which an earlier dataset has the bytes in the same split.
        not_compared: datasets whose records contain no checksum of their images.
    """

    manifest: Manifest
    left_out: Sequence[LedgerRow]
    kept_twice: int
    not_compared: Sequence[str]

    def notes(self) -> Iterator[str]:
        """Yields sentences for the user."""
        if self.left_out:
            one, several = "image is left out", "images are left out"
            shown = "; ".join(f"{row.key} {row.reason}" for row in self.left_out[:_SHOWN])
            more = "; …" if len(self.left_out) > _SHOWN else ""
            yield f"{counted(len(self.left_out), one, several)}, as duplicates in the ledger: {shown}{more}"
        if self.kept_twice:
            one, several = "image has the bytes of another", "images have the bytes of others"
            yield f"{counted(self.kept_twice, one, several)} in the same split; all are kept"
        for place in self.not_compared:
            yield f"{place}: has no checksums of its images, so copies of them in other splits cannot be found"


def merge(
    sources: Sequence[ImageDataset],
    out: str | os.PathLike[str],
    *,
    shards: ShardsConfig | None = None,
    quiet: bool = False,
) -> Merged:
    """Makes a dataset of the images of several; see the module.

    Args:
        sources: the datasets, the one with priority first.
        out: folder to make.
        shards: number and names of shards; by default those of the ingest.
        quiet: show no progress.

    Raises:
        UsageError, DatasetError: see `derive`.
    """
    check_sources(sources)
    contents = [contents_of(source) for source in sources] if len(sources) > 1 else []
    rows, twice = _left_out(sources, contents)
    out_keys = {row.key for row in rows}
    how = Derived("merge", {"equal_images": "first"}, lambda key: key not in out_keys, further_rows=rows)
    manifest = derive(sources, out, how, shards=shards, quiet=quiet)
    none = [s.root for s, content in zip(sources, contents, strict=False) if len(content) and not content.any()]
    return Merged(manifest, rows, twice, none)


class _Image(NamedTuple):
    """An image whose bytes are in two datasets: its key, its split, its annotations as they can be compared."""

    key: str
    split: str
    annotations: Any


def _left_out(
    sources: Sequence[ImageDataset], contents: Sequence[npt.NDArray[np.uint64]]
) -> tuple[list[LedgerRow], int]:
    """Returns the rows of the images that are left out, and the number of those that are kept twice."""
    each = [np.unique(own[own > 0]) for own in contents]
    found, times = np.unique(np.concatenate([np.empty(0, np.uint64), *each]), return_counts=True)
    shared = found[times > 1]
    rows, twice = list[LedgerRow](), 0
    earlier: dict[int, list[_Image]] = {}
    for source, own in zip(sources, contents, strict=False) if len(shared) else ():
        mine: dict[int, list[_Image]] = {}
        for content, image in _images_of(source, np.isin(own, shared), own):
            others = earlier.get(content, ())
            other = next((one for one in others if one.split != image.split), None)
            if other is not None:
                same = image.annotations == other.annotations
                reason = f"{SAME_BYTES} {other.key}, which is kept in {other.split}; it was in {image.split}"
                reason += "" if same else "; its annotations differ"
                code = EXACT_DUPLICATE if same else CONFLICTING
                rows.append(LedgerRow(image.key, DUPLICATE, code, reason, other.split))
                continue
            twice += bool(others)
            mine.setdefault(content, []).append(image)
        for content, of_it in mine.items():
            earlier.setdefault(content, []).extend(of_it)
    return rows, twice


def _images_of(
    dataset: ImageDataset, wanted: npt.NDArray[np.bool_], content: npt.NDArray[np.uint64]
) -> Iterator[tuple[int, _Image]]:
    """Yields content ID and image of the wanted records."""
    start = 0
    for shard in (shard for name in dataset.splits for shard in dataset.shards(name)):
        part = wanted[start : start + shard.records]
        if part.any():
            facts = dataset.facts(shard)
            # The classes of the masks of these records, with their pixels.
            areas: dict[int, list[tuple[int, int]]] = {record: [] for record in np.flatnonzero(part).tolist()}
            for label, (records, pixels) in enumerate(facts.areas or ()):
                for record, area in zip(records.tolist(), pixels.tolist(), strict=True):
                    if record in areas:
                        areas[record].append((label, area))
            for number, (key, _) in enumerate(dataset.entries(shard)):
                if part[number]:
                    annotations = sorted(facts.labels[number]), areas[number]
                    yield int(content[start + number]), _Image(key, shard.split, annotations)
        start += shard.records
