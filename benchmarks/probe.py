"""Measures how fast images are probed and near duplicates found, compared with other packages."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module, util
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks.figures import AT_LEAST, AT_MOST, Figure, seconds
from benchmarks.ingest import class_texts, labeled
from benchmarks.photographs import photographs, warm
from shardwright.config.images import FULL
from shardwright.duplicates.clusters import near_clusters
from shardwright.images.read_header import read_header
from shardwright.ingest import ingest
from shardwright.ingest.known_files import probe_file
from shardwright.running.processes import peak_memory
from shardwright.union_find import UnionFind

_MOST_PIXELS = 1 << 28
_HASHED = 40
_REPEATS = 2
_MILLION, _COMPARED = 1_000_000, 100_000
_DISTANCE = 8
# The share of made-up hashes that have another one a few bits away.
_COPIED = 0.2


def probe_figures(
    folder: Path, images: int, notebook: Callable[[Sequence[str], dict[str, list[str]], str], None]
) -> list[Figure]:
    """Measures probing and the ingest with `verify: full`.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of photographs.
        notebook: the notebook's method: takes paths, the table's texts by file name, and the file to write.
    """
    source = photographs(folder, images)
    warm(source.paths)
    out = folder / "out"
    decoding = seconds(lambda: _decode_all(source.paths), _REPEATS)
    ours = min(_emptied(out, lambda: ingest(labeled(source, FULL), out / "full", quiet=True)) for _ in range(_REPEATS))
    theirs = _emptied(out, lambda: notebook(source.paths, class_texts(source), str(out / "notebook")))
    shutil.rmtree(out)
    alone = f"only decoding, two threads: {images / decoding:.0f}; notebook: {images / theirs:.0f}"
    note = f"{images / ours:.0f} images/s; {alone}"
    return [
        Figure("ingest, full: notebook", theirs / ours, "x", AT_LEAST, 2.5, note),
        Figure("ingest, full: decoding alone", decoding / ours, "x", AT_LEAST, 0.6),
        _hashing(source.paths[:: max(1, images // _HASHED)][:_HASHED]),
        *cluster_figures(),
    ]


def cluster_figures(count: int = _MILLION, compared: int = _COMPARED) -> list[Figure]:
    """Measures how hashes are clustered.

    Args:
        count: how many hashes.
        compared: how many are compared with the result of comparing each with each.
    """
    # In a separate process, whose peak of memory is that of this work.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        taken, peak = pool.submit(_cluster, count).result()
    hashes = made_up_hashes(compared)
    equal = np.array_equal(near_clusters(hashes, _DISTANCE), each_with_each(hashes, _DISTANCE))
    note = f"distance {_DISTANCE}, {_COPIED:.0%} of them near another"
    return [
        Figure(f"{count:,} hashes clustered", taken, "s", AT_MOST, 600, note),
        Figure("the same, memory", peak / 1e9, "GB", AT_MOST, 1),
        Figure(f"{compared:,} hashes as by brute force", float(equal), "", AT_LEAST, 1, note),
    ]


def made_up_hashes(count: int, seed: int = 0) -> npt.NDArray[np.uint64]:
    """Returns random hashes, a part of which are others with a few bits flipped."""
    random = np.random.default_rng(seed)
    hashes = random.integers(0, 2**64, count, dtype=np.uint64)
    copies = int(count * _COPIED)
    changed = hashes[random.integers(0, count - copies, copies)]
    for _ in range(_DISTANCE):
        changed ^= np.uint64(1) << random.integers(0, 64, copies).astype(np.uint64)
    hashes[count - copies :] = changed
    return hashes


def each_with_each(hashes: npt.NDArray[np.uint64], limit: int) -> npt.NDArray[np.int64]:
    """Returns what `near_clusters` must find, by comparing all pairs: products of bits give how many differ."""
    bits = np.unpackbits(hashes.view(np.uint8).reshape(-1, 8), axis=1).astype(np.float32)
    ones = bits.sum(axis=1)
    components = UnionFind(len(hashes))
    step = max(1, (1 << 26) // max(1, len(hashes)))
    for begin in range(0, len(hashes), step):
        part = slice(begin, begin + step)
        differing = ones[part, None] + ones[None, :] - 2 * (bits[part] @ bits.T)
        one, other = np.nonzero(differing <= limit)
        components.join(one + begin, other)
    return components.firsts()


def _cluster(count: int) -> tuple[float, int]:
    hashes = made_up_hashes(count)
    started = time.perf_counter()
    near_clusters(hashes, _DISTANCE)
    return time.perf_counter() - started, peak_memory()


def _emptied(out: Path, work: Callable[[], object]) -> float:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    os.sync()
    return seconds(work)


def _decode_all(paths: Sequence[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(decode, paths):
            pass


def decode(path: str) -> None:
    """Decodes a photograph at an eighth of its size, and drops the pixels."""
    with Image.open(path) as image:
        image.draft(None, (image.width // 8, image.height // 8))
        image.load()


def _hashing(paths: Sequence[str]) -> Figure:
    """Compares the whole probe of an image with four hashes of the package ImageHash, on one core."""
    name = "probing: four hashes of ImageHash"
    if util.find_spec("imagehash") is None:
        return Figure(name, None, "x", AT_LEAST, 15, "ImageHash is not installed")
    theirs: Any = import_module("imagehash")

    def notebook() -> None:
        for path in paths:
            with Image.open(path) as image:
                for way in (theirs.average_hash, theirs.phash, theirs.dhash, theirs.whash):
                    way(image)

    def ours() -> None:
        for path in paths:
            data = Path(path).read_bytes()
            header = read_header(data, max_pixels=_MOST_PIXELS)
            probe_file(data, header, max_pixels=_MOST_PIXELS, pixels=False)

    slow = seconds(notebook, clock=time.process_time) / len(paths)
    quick = seconds(ours, _REPEATS, time.process_time) / len(paths)
    return Figure(name, slow / quick, "x", AT_LEAST, 15, f"{slow * 1e3:.0f} and {quick * 1e3:.1f} ms per image")
