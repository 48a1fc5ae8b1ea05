"""Measures where the time of an ingest of small images goes, stage by stage, and what more processors gain.

One process makes every stage, so its processor time is that of the stage. Stages that more processes share are looking
at the files and writing the ranges; all others are serial. With as many processes as this machine has processors the
speed-up is measured, and beyond that it is arithmetic, which the note of the figure says.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import AT_LEAST, AT_MOST, Figure
from benchmarks.ingest import masked
from benchmarks.photographs import Photographs, photographs, warm
from shardwright.ingest import ingest
from shardwright.ingest.identify import look_at_input, pin_input
from shardwright.ingest.plan import plan_ingest
from shardwright.ingest.recipe import IngestRecipe, locate
from shardwright.ingest.run_ingest import write_ranges
from shardwright.ingest.survey import list_input, read_annotations
from shardwright.ingest.tasks import forget_tasks
from shardwright.ingest.write_shards import commit_ingest
from shardwright.running.processes import usable_cores
from shardwright.staging.staging import Staging

_HEIGHT, _WIDTH = 48, 64
_SHARED = ("look at the files", "write the ranges")
_WORKERS = (1, 2, 4, 8, 16)


class _Stopwatch:
    """Adds up the seconds of stages."""

    def __init__(self) -> None:
        self.processor: dict[str, float] = {}
        self.wall: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        processor, wall = time.process_time(), time.perf_counter()
        yield
        self.processor[name] = time.process_time() - processor
        self.wall[name] = time.perf_counter() - wall


def stage_figures(folder: Path, images: int) -> list[Figure]:
    """Measures the stages of an ingest of small images with four masks each.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of images.
    """
    source = photographs(folder, images, height=_HEIGHT, width=_WIDTH)
    warm(source.paths)
    watch = _stages(source, folder)
    total = sum(watch.processor.values())
    serial = total - sum(watch.processor[name] for name in _SHARED)
    each = [
        Figure(
            f"stage: {name}",
            seconds,
            "s",
            note=f"{watch.wall[name]:.2f} s wall, {1e6 * seconds / images:.0f} us an image",
        )
        for name, seconds in watch.processor.items()
    ]
    return [
        *each,
        Figure("processor time an image", 1e6 * total / images, "us", AT_MOST, 220, f"{images:,} images"),
        Figure("serial share", serial / total, "", AT_MOST, 0.08, "of the processor time"),
        *_speed_ups(source, folder, serial, total),
    ]


def _stages(source: Photographs, folder: Path) -> _Stopwatch:
    """Makes a dataset with one process, as `ingest` does; returns what each stage took."""
    out, watch, config = _cleared(folder), _Stopwatch(), masked(source)
    recipe, location = IngestRecipe.of(config), locate(config)
    with watch.stage("list the files"):
        surveyed = list_input(recipe, location)
        looks = look_at_input(surveyed, 1)
    with watch.stage("read the annotations"):
        read_annotations(surveyed)
    with watch.stage("look at the files"):
        if looks is not None:
            pin_input(surveyed, looks)
    with watch.stage("plan"):
        prepared = plan_ingest(recipe, location, surveyed=surveyed)
    plan = prepared.plan
    staging = Staging.open(folder / "staging", plan.dataset.fingerprint, plan.tools)
    with staging.locked():
        with watch.stage("give out the tasks"):
            prepared.stage(staging, inherited=True)
        with watch.stage("write the ranges"):
            deque(write_ranges(plan, staging, 1)[1], maxlen=0)
        forget_tasks(staging, plan.tasks)
        with watch.stage("commit"):
            commit_ingest(plan, staging, out, {"runner": "benchmark"})
    return watch


def _speed_ups(source: Photographs, folder: Path, serial: float, total: float) -> Iterator[Figure]:
    """Yields how much faster more processes are than one."""
    walls: dict[int, float] = {}
    for workers in _WORKERS:
        name = f"{workers} processes: speed-up"
        target = {2: 1.85, 16: 10.0}.get(workers)
        if workers > usable_cores():
            value, how = total / (serial + (total - serial) / workers), "by arithmetic, from the serial share"
        else:
            out, started = _cleared(folder), time.perf_counter()
            ingest(masked(source), out, workers=workers, quiet=True)
            walls[workers] = time.perf_counter() - started
            value, how = walls[1] / walls[workers], f"measured, {walls[workers]:.2f} s wall"
        if workers > 1:
            yield Figure(name, value, "x", AT_LEAST if target else "", target, how)


def _cleared(folder: Path) -> Path:
    """Returns the folder to write, where nothing is; what was written before is on the disk."""
    out = folder / "out"
    for path in (out, folder / "staging"):
        shutil.rmtree(path, ignore_errors=True)
    os.sync()
    return out
