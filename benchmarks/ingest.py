"""Measures how fast photographs are ingested, compared with a usual notebook and with copying the same bytes."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import AT_LEAST, AT_MOST, Figure, seconds
from benchmarks.photographs import HEIGHT, WIDTH, Photographs, photographs, warm
from shardwright.config import Config, parse_config
from shardwright.config.images import HEADER
from shardwright.dataset.manifest import Manifest
from shardwright.fingerprint import canonical_json
from shardwright.ingest import ingest
from shardwright.verify import verify

Notebook = Callable[[Sequence[str], dict[str, list[str]], str], None]
"""The notebook's method: takes paths, the table's texts by file name, and the file to write."""

_REPEATS = 2
_SMALL = 200


def ingest_figures(
    folder: Path,
    images: int,
    command: Sequence[str],
    notebook: Notebook,
    size: tuple[int, int] = (HEIGHT, WIDTH),
) -> list[Figure]:
    """Measures the ingest with `verify: header`.

    Both sides store the bytes, the shape and the class of every photograph. Another figure, without a target, is the
    cost of four masks per image: the ingest parses, checks and merges them, which the notebook does not.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of photographs.
        command: the start of a command line of `shardwright`.
        notebook: the notebook's method; all its imports are done already.
        size: height and width of the photographs.
    """
    height, width = size
    source = photographs(folder, images, height=height, width=width)
    warm(source.paths)
    out = folder / "out"
    classes = class_texts(source)
    manifests: list[Manifest] = []
    copying, ours, theirs, with_masks = _timed(
        [
            lambda: _copy(source.paths, out / "copy"),
            lambda: manifests.append(ingest(labeled(source), out / "ours", quiet=True)),
            lambda: notebook(source.paths, classes, str(out / "notebook")),
            lambda: ingest(masked(source), out / "ours", quiet=True),
        ],
        out,
    )
    note = f"{images} photographs, {source.bytes / images / 1e3:.0f} KB each, {images / ours:.0f} images/s"
    stored = sum(shard.bytes for shard in manifests[0].shards)
    return [
        Figure("ingest, header: notebook", theirs / ours, "x", AT_LEAST, 8, note),
        Figure(
            "ingest, header: copying", copying / ours, "x", AT_LEAST, 0.5, f"copying {images / copying:.0f} images/s"
        ),
        Figure("with four masks each: notebook", theirs / with_masks, "x", note=f"{images / with_masks:.0f} images/s"),
        Figure("ingest: shards / input", stored / source.bytes, "x", AT_MOST, 1.02),
        _verifying(source, out),
        _first_record(source, out, command),
        _small_set(folder, out, command),
    ]


def _timed(works: Sequence[Callable[[], object]], out: Path) -> list[float]:
    """Returns the wall times of calls that write into `out`, the least of some each.

    They take turns, so that what else the machine does meets all alike, and none pays for what one before it wrote.
    """
    best = [float("inf")] * len(works)
    for _ in range(_REPEATS):
        for number, work in enumerate(works):
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            os.sync()
            best[number] = min(best[number], seconds(work))
    return best


def labeled(source: Photographs, verify: str = HEADER) -> Config:
    """Returns the configuration of a classification: a table of one class an image."""
    images = {"verify": verify}
    return parse_config({"input": _input(source, source.labels), "task": "classification", "images": images}, base="/")


def class_texts(source: Photographs) -> dict[str, list[str]]:
    """Returns the class of each file name, as the notebook has it in memory."""
    with open(source.labels, encoding="utf-8", newline="") as lines:
        return {row["image"]: [row["label"]] for row in csv.DictReader(lines)}


def masked(source: Photographs) -> Config:
    """Returns the configuration of a segmentation: a table of four masks an image."""
    return parse_config(_raw_masked(source), base="/")


def _raw_masked(source: Photographs) -> dict[str, object]:
    return {"task": "segmentation", "input": _input(source, source.masks)}


def _input(source: Photographs, table: str) -> dict[str, object]:
    return {"images": source.images, "labels": {"path": table}}


def _copy(paths: Sequence[str], target: Path) -> None:
    with target.open("wb") as out:
        for path in paths:
            out.write(Path(path).read_bytes())


def _verifying(source: Photographs, out: Path) -> Figure:
    ingest(masked(source), out / "verified", quiet=True)
    taken = seconds(lambda: verify(out / "verified", workers=1), _REPEATS)
    read = verify(out / "verified", workers=1).bytes
    return Figure("verify, one core", read / taken / 1e6, "MB/s", AT_LEAST, 300, f"{read / 1e6:.0f} MB")


def _first_record(source: Photographs, out: Path, command: Sequence[str]) -> Figure:
    """Measures from the start of the command to the first byte of a shard."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    started = time.perf_counter()
    with _started(source, out, command) as process:
        while process.poll() is None and not any(file.stat().st_size for file in _staged(out)):
            time.sleep(0.005)
        taken = time.perf_counter() - started
        process.wait()
    return Figure(
        "start-up to first record", taken, "s", AT_MOST, 5, f"{len(source.names)} photographs are listed first"
    )


def _staged(out: Path) -> list[Path]:
    try:
        return list(out.glob(".*.staging/*/Split-*/*"))
    except FileNotFoundError:
        return []


def _small_set(folder: Path, out: Path, command: Sequence[str]) -> Figure:
    source = photographs(folder, _SMALL, height=128, width=192)

    def call() -> None:
        with _started(source, out, command) as process:
            process.wait()

    (taken,) = _timed([call], out)
    return Figure(f"ingest, {_SMALL} small images", taken, "s", AT_MOST, 10, "the whole command")


def _started(source: Photographs, out: Path, command: Sequence[str]) -> subprocess.Popen[bytes]:
    config = out / "bench.yaml"
    # JSON is YAML.
    config.write_text(canonical_json(_raw_masked(source)), encoding="utf-8")
    call = [*command, "ingest", str(config), "--out", str(out / "ours")]
    return subprocess.Popen(call, stdout=subprocess.DEVNULL)
