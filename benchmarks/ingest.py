"""Measures how fast photographs are ingested, compared with a usual notebook and with copying the same bytes."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.figures import AT_LEAST, AT_MOST, Figure, seconds
from benchmarks.photographs import HEIGHT, WIDTH, Photographs, photographs, warm
from shardwright.config import Config, parse_config
from shardwright.config.images import HEADER
from shardwright.dataset.manifest import Manifest
from shardwright.ingest import IngestRecipe, commit_ingest, ingest, locate, plan_ingest, write_range
from shardwright.ingest.identify import pin_input
from shardwright.ingest.survey import survey_input
from shardwright.running.processes import usable_cores
from shardwright.staging.staging import Staging
from shardwright.storage.fingerprint import canonical_json
from shardwright.verify import verify

_Result = TypeVar("_Result")
Notebook = Callable[[Sequence[str], dict[str, list[str]], str], None]
"""The notebook's method: takes paths, the table's texts by file name, and the file to write."""

_REPEATS = 2
_PROCESSES = (1, 2, 4, 8, 16)
# Promised speed-ups by the number of processes.
_SPEED_UPS = {2: 1.85, 16: 10}
# So many processes that shards are cut into ranges.
_MANY = 16
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


def profile_figures(folder: Path, images: int, size: tuple[int, int] = (48, 64)) -> list[Figure]:
    """Measures the stages of an ingest of small images with masks, in one process, and what more processes gain.

    Speed-ups for so many processes as this machine has processors are measured. The others follow from the stages: all
    but the writing is done by one process, ranges are spread evenly, and the longest range and the making of the
    largest shard come last.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of images.
        size: height and width of the images.
    """
    source = photographs(folder, images, height=size[0], width=size[1])
    warm(source.paths)
    config, out = masked(source), folder / "out"
    recipe, location = IngestRecipe.of(config), locate(config)
    stages: dict[str, tuple[float, float]] = {}

    def stage(name: str, work: Callable[[], _Result]) -> _Result:
        before = time.process_time(), time.perf_counter()
        result = work()
        stages[name] = time.process_time() - before[0], time.perf_counter() - before[1]
        return result

    shutil.rmtree(out, ignore_errors=True)
    surveyed = stage("listing and survey", lambda: survey_input(recipe, location))
    surveyed = stage("pinning", lambda: pin_input(surveyed))
    prepared = stage("planning", lambda: plan_ingest(recipe, location, surveyed=surveyed, staging_root=str(out)))
    plan = prepared.plan
    staging = Staging.open(out, plan.dataset.fingerprint, plan.tools)
    with staging.locked():
        stage("task files", lambda: prepared.stage(staging))
        each: list[tuple[float, float]] = []
        for part in plan.missing_ranges(staging, _MANY):
            stage("", partial(write_range, part, plan.for_writers(), staging, 1))
            each.append(stages.pop(""))
        stages["writing"] = sum(processor for processor, _ in each), sum(wall for _, wall in each)
        stage("commit", lambda: commit_ingest(plan, staging, out / "ours", {}))
    writing, longest = stages["writing"][0], max(processor for processor, _ in each)
    serial = sum(processor for processor, _ in stages.values()) - writing
    note = f"{images:,} images of {size[0]}x{size[1]}"
    figures = [
        Figure(f"{name}, processor", processor / images * 1e6, "us/image", note=f"wall {wall / images * 1e6:.0f}")
        for name, (processor, wall) in stages.items()
    ]
    figures.append(Figure("serial share", serial / (serial + writing), "of processor time", AT_MOST, 0.08, note))
    walls = _timed([partial(ingest, config, out / "ours", workers, True) for workers in _measurable()], out)
    for workers in _PROCESSES:
        if workers in _measurable():
            value, how = walls[0] / walls[_measurable().index(workers)], "measured, wall"
        else:
            value, how = (serial + writing) / (serial + writing / workers + longest), "by arithmetic"
        target = _SPEED_UPS.get(workers)
        figures.append(Figure(f"speed-up, {workers} processes", value, "x", AT_LEAST if target else "", target, how))
    return figures


def _measurable() -> list[int]:
    return [workers for workers in _PROCESSES if workers <= usable_cores()]


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
