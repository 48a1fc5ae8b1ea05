"""Compares the ingest with a notebook, copying and decoding, by processor time and by wall time.

Each way takes its turn in a separate process; the turns of all ways alternate. The processor time is that of the
process and of all that it has started, the server of its workers too, without the imports before. Other work on the
machine lengthens the wall time much and the processor time little, so ratios of processor times of paired turns count.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.figures import AT_LEAST, AT_MOST, Figure
from benchmarks.ingest import class_texts, labeled, masked
from benchmarks.photographs import HEIGHT, WIDTH, Photographs, photographs, warm
from benchmarks.probe import decode
from shardwright.config.images import FULL
from shardwright.ingest import ingest

_SUBREAPER = 36
_INSTRUCTIONS = ("sha_ni", "avx2", "avx512f", "vpclmulqdq", "sha2", "crc32")
_ROUNDS = 3


class Turn(NamedTuple):
    """The seconds of one turn."""

    processor: float
    wall: float


def turn_figures(folder: Path, images: int, size: tuple[int, int] = (HEIGHT, WIDTH)) -> list[Figure]:
    """Measures the ways in alternating turns.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of photographs.
        size: height and width of the photographs.
    """
    source = photographs(folder, images, height=size[0], width=size[1])
    warm(source.paths)
    turns: dict[str, list[Turn]] = {way: [] for way in WAYS}
    for _ in range(_ROUNDS):
        for way, taken in turns.items():
            taken.append(_turn(way, folder, images, size))
    each = f"{images} photographs of {source.bytes / images / 1e3:.0f} KB, {os.cpu_count()} cores with {instructions()}"
    return [
        _ratio("processor: notebook / ingest, four masks", turns, "notebook", "masks", AT_LEAST, 12, each),
        _ratio("processor: ingest, four masks / copying with fsync", turns, "masks", "copy", AT_MOST, 2.5, _ms(turns)),
        _wall(turns, "masks"),
        _ratio("processor: decoding / ingest, full", turns, "decode", "full", AT_LEAST, 0.8, ""),
    ]


def instructions() -> str:
    """Returns which of the processor's instructions matter for checksums."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return f"unknown instructions ({platform.machine()})"
    flags = {word for line in text.splitlines() if line.startswith(("flags", "Features")) for word in line.split()}
    return ", ".join(name for name in _INSTRUCTIONS if name in flags) or "none for checksums"


def _ratio(
    name: str, turns: Mapping[str, list[Turn]], over: str, under: str, relation: str, target: float, note: str
) -> Figure:
    pairs = zip(turns[over], turns[under], strict=True)
    return Figure(name, median(one.processor / two.processor for one, two in pairs), "x", relation, target, note)


def _wall(turns: Mapping[str, list[Turn]], way: str) -> Figure:
    parts = [turn.wall / turn.processor for turn in turns[way]]
    return Figure("wall / processor: ingest, four masks", min(parts), "x", AT_MOST, 0.65, "the least of all turns")


def _ms(turns: Mapping[str, list[Turn]]) -> str:
    least = {way: min(turn.processor for turn in taken) for way, taken in turns.items()}
    return "seconds of processor: " + ", ".join(f"{way} {taken:.2f}" for way, taken in least.items())


def _turn(way: str, folder: Path, images: int, size: tuple[int, int]) -> Turn:
    out = folder / "turn"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    os.sync()
    # A process that another one leaves behind, such as the server of its workers, becomes a child of this one.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    before, own = _children(), _child_ids()
    call = [sys.executable, "-m", "benchmarks.turns", way, str(folder), str(images), *map(str, size), str(out)]
    done = subprocess.run(call, stdout=subprocess.PIPE, check=True)
    _reap(own)
    measured = json.loads(done.stdout.splitlines()[-1])
    shutil.rmtree(out, ignore_errors=True)
    return Turn(_children() - before - measured["before"], measured["wall"])


def _reap(own: set[int]) -> None:
    """Waits for the processes that a turn left behind, and not for those that this process had before."""
    while left := _child_ids() - own:
        os.waitpid(left.pop(), 0)


def _child_ids() -> set[int]:
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text("ascii").split()}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _copy(source: Photographs, out: Path) -> None:
    with (out / "copy").open("wb") as target:
        for path in source.paths:
            target.write(Path(path).read_bytes())
        target.flush()
        os.fsync(target.fileno())


def _notebook(source: Photographs, out: Path) -> None:
    from benchmarks.transform import write_records

    write_records(source.paths, class_texts(source), str(out / "notebook"))


def _decode(source: Photographs, out: Path) -> None:
    del out
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(decode, source.paths):
            pass


def _masks(source: Photographs, out: Path) -> None:
    ingest(masked(source), out / "masks", quiet=True)


def _full(source: Photographs, out: Path) -> None:
    ingest(labeled(source, FULL), out / "full", quiet=True)


WAYS: Mapping[str, Callable[[Photographs, Path], None]] = {
    "copy": _copy,
    "masks": _masks,
    "notebook": _notebook,
    "decode": _decode,
    "full": _full,
}


def main(way: str, folder: str, images: str, height: str, width: str, out: str) -> None:
    """Takes one turn, and prints the processor time before it and the wall time of it."""
    source = photographs(Path(folder), int(images), height=int(height), width=int(width))
    if way == "notebook":
        # Its imports take some seconds, which count much with few photographs and are not its work.
        import tensorflow

        import benchmarks.transform

        del benchmarks, tensorflow
    used = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    WAYS[way](source, Path(out))
    taken = time.perf_counter() - started
    print(json.dumps({"before": used.ru_utime + used.ru_stime, "wall": taken}))


if __name__ == "__main__":
    main(*sys.argv[1:])
