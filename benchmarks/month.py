"""Measures the ingest of one hundredth more images on an object store, with `reuse_from` and without.

The store is an emulator in a separate process, with 30 ms added to each request; the client is the real one. The
emulator also takes processor time of the same machine for every request, which a real store does not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import AT_MOST, Figure
from benchmarks.object_store import DELAY, NO_EMULATOR, STORE_NAMES, measured_on
from benchmarks.photographs import Photographs, photographs
from shardwright.config import Config, parse_config
from shardwright.errors import CheckFailed, UsageError
from shardwright.ingest import ingest
from shardwright.storage import buckets, map_threads, readers

_SIDES = {"height": 96, "width": 144}
_MORE = 100
# Small shards: for a range of an object, the emulators read all of it.
_SHARDS = {"target_size": "16MB"}
_TARGET = 0.15
# Files that may differ between equal datasets.
_FREE = ("build.json", "lineage.json")


def month_figures(folder: Path, images: int, schemes: Sequence[str] = tuple(STORE_NAMES)) -> list[Figure]:
    """Measures the time of an ingest that copies unchanged images, relative to a full ingest.

    Args:
        folder: where images are kept between calls.
        images: how many there are in the second month.
        schemes: the stores, of `s3` and `gs`.

    Raises:
        UsageError: there are too few images.
        CheckFailed: the two datasets are not the same.
    """
    if images < _MORE:
        raise UsageError(f"--images: {images} have no hundredth. Give {_MORE} or more.")
    return [_figure(folder, images, scheme) for scheme in schemes]


def _figure(folder: Path, images: int, scheme: str) -> Figure:
    name = f"1% more on {STORE_NAMES[scheme]} storage, {DELAY * 1000:.0f} ms a request: with reuse_from / full"
    source = photographs(folder, images, **_SIDES)
    measured = measured_on(scheme, __name__, str(folder), str(images))
    if measured is None:
        return Figure(name, None, "x", AT_MOST, _TARGET, NO_EMULATOR)
    full, copied = measured["full"], measured["copied"]
    note = (
        f"{copied:.1f} of {full:.1f} s for {images} images of {source.bytes / images / 1e3:.0f} KB; processor of the "
        f"main process {measured['copied work']:.1f} of {measured['full work']:.1f} s; {measured['note']}; same bytes"
    )
    return Figure(name, copied / full, "x", AT_MOST, _TARGET, note)


def measure(bucket: str, folder: Path, images: int) -> dict[str, Any]:
    """Measures the seconds of the ingest of a second month, full and with the first month's dataset.

    Args:
        bucket: URL of an empty bucket.
        folder: see `month_figures`.
        images: likewise.

    Raises:
        CheckFailed: the two datasets are not the same.
    """
    source = photographs(folder, images, **_SIDES)
    before = list(source.paths[: images - max(1, images // _MORE)])
    out = folder / "months"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    try:
        _upload(before, bucket)
        ingest(_config(source, before, bucket, out), f"{bucket}/one", quiet=True)
        _upload(source.paths[len(before) :], bucket)
        config = _config(source, source.paths, bucket, out)
        notes: list[str] = []
        full, full_work = _timed(lambda: ingest(config, out / "full", quiet=True))
        earlier = _config(source, source.paths, bucket, out, reuse_from=f"{bucket}/one")
        copied, copied_work = _timed(lambda: ingest(earlier, out / "copied", quiet=True, log=notes.append))
        if _files(out / "full") != _files(out / "copied"):
            raise CheckFailed("`reuse_from` has made another dataset than a full ingest.")
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return {
        "full": full,
        "copied": copied,
        "full work": full_work,
        "copied work": copied_work,
        "note": notes[-1].replace(f" from {bucket}/one", ""),
    }


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Returns the wall time and the processor time of a call."""
    started, worked = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - worked


def _upload(paths: Sequence[str], bucket: str) -> None:
    list(
        map_threads(lambda path: buckets.upload(f"{bucket}/in/{os.path.basename(path)}", path), paths, readers(bucket))
    )


def _config(source: Photographs, paths: Sequence[str], bucket: str, out: Path, reuse_from: str | None = None) -> Config:
    names = {os.path.basename(path) for path in paths}
    table = out / "labels.csv"
    header, *rows = Path(source.labels).read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if row.partition(",")[0] in names]
    table.write_text("\n".join([header, *kept, ""]), encoding="utf-8")
    section = {"images": f"{bucket}/in", "labels": {"path": str(table)}}
    raw = {"task": "classification", "input": section, "shards": _SHARDS, "reuse_from": reuse_from}
    return parse_config(raw, base="/")


def _files(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and path.name not in _FREE)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
