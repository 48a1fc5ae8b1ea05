"""Measures how fast photographs are ingested, compared with a usual notebook, with copying and with decoding alone.

Each way takes its turn in a separate process; the turns of all ways alternate. The processor time is that of the
process and of all that it has started, the server of its workers too, without the imports before. Other work on the
machine lengthens the wall time much and the processor time little, so ratios of paired turns count.
"""

from __future__ import annotations

import csv
import ctypes
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

from PIL import Image

from benchmarks.figures import AT_LEAST, AT_MOST, Figure, seconds
from benchmarks.photographs import HEIGHT, WIDTH, Photographs, photographs, warm
from shardwright.config import Config, parse_config
from shardwright.config.images import FULL, HEADER
from shardwright.ingest import ingest
from shardwright.storage.fingerprint import canonical_json
from shardwright.verify import verify

_SUBREAPER = 36
_INSTRUCTIONS = ("sha_ni", "avx2", "avx512f", "vpclmulqdq", "sha2", "crc32")
_ROUNDS = 3
_SMALL = 200


class Turn(NamedTuple):
    """The seconds of one turn."""

    processor: float
    wall: float


def ingest_figures(
    folder: Path, images: int, command: Sequence[str], size: tuple[int, int] = (HEIGHT, WIDTH)
) -> list[Figure]:
    """Measures the ways in alternating turns, and what only the ingest has.

    The notebook and the ingest store the bytes, the shape and the class of every photograph. Other ways are the ingest
    of four masks an image, which it parses, checks and merges, and the ingest that decodes every image.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of photographs.
        command: the start of a command line of `shardwright`.
        size: height and width of the photographs.
    """
    source = photographs(folder, images, height=size[0], width=size[1])
    warm(source.paths)
    turns: dict[str, list[Turn]] = {way: [] for way in WAYS}
    for _ in range(_ROUNDS):
        for way, taken in turns.items():
            taken.append(_turn(way, folder, images, size))
    rates = {way: images / min(turn.wall for turn in taken) for way, taken in turns.items()}
    work = {way: min(turn.processor for turn in taken) for way, taken in turns.items()}
    each = f"{images} photographs of {source.bytes / images / 1e3:.0f} KB"
    here = f"{each}, {os.cpu_count()} cores with {_instructions()}"
    spent = "seconds of processor: " + ", ".join(f"{way} {taken:.2f}" for way, taken in work.items())

    def ratio(
        name: str, over: str, under: str, relation: str = "", target: float | None = None, note: str = ""
    ) -> Figure:
        clock = "processor" if name.startswith("processor") else "wall"
        pairs = zip(turns[over], turns[under], strict=True)
        value = median(getattr(one, clock) / getattr(two, clock) for one, two in pairs)
        return Figure(name, value, "x", relation, target, note)

    quickest = min(turn.wall / turn.processor for turn in turns["masks"])
    return [
        ratio("processor: notebook / ingest, four masks", "notebook", "masks", AT_LEAST, 12, here),
        ratio("processor: ingest, four masks / copying with fsync", "masks", "synced copy", AT_MOST, 2.5, spent),
        Figure("wall / processor: ingest, four masks", quickest, "x", AT_MOST, 0.65, "the least of all turns"),
        ratio("processor: decoding / ingest, full", "decode", "full", AT_LEAST, 0.8),
        ratio("ingest, header: notebook", "notebook", "header", AT_LEAST, 8, f"{each}, {rates['header']:.0f} images/s"),
        ratio("ingest, header: copying", "copy", "header", AT_LEAST, 0.5, f"copying {rates['copy']:.0f} images/s"),
        ratio("with four masks each: notebook", "notebook", "masks", note=f"{rates['masks']:.0f} images/s"),
        ratio("ingest, full: notebook", "notebook", "full", AT_LEAST, 2.5, f"{rates['full']:.0f} images/s"),
        ratio("ingest, full: decoding alone", "decode", "full", AT_LEAST, 0.6, f"decoding {rates['decode']:.0f}"),
        *_dataset_figures(source, folder / "out"),
        *_command_figures(source, folder, command),
    ]


def _instructions() -> str:
    """Returns which of the processor's instructions matter for checksums."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return f"unknown instructions ({platform.machine()})"
    flags = {word for line in text.splitlines() if line.startswith(("flags", "Features")) for word in line.split()}
    return ", ".join(name for name in _INSTRUCTIONS if name in flags) or "none for checksums"


def _turn(way: str, folder: Path, images: int, size: tuple[int, int]) -> Turn:
    out = _emptied(folder / "out")
    # A process that another one leaves behind, such as the server of its workers, becomes a child of this one.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    before, own = _used(resource.RUSAGE_CHILDREN), _child_ids()
    call = [sys.executable, "-m", "benchmarks.ingest", way, str(folder), str(images), *map(str, size), str(out)]
    done = subprocess.run(call, stdout=subprocess.PIPE, check=True)
    while left := _child_ids() - own:
        os.waitpid(left.pop(), 0)
    measured = json.loads(done.stdout.splitlines()[-1])
    shutil.rmtree(out, ignore_errors=True)
    return Turn(_used(resource.RUSAGE_CHILDREN) - before - measured["before"], measured["wall"])


def _emptied(out: Path) -> Path:
    """Returns an empty folder, when nothing that was written before waits for the disk."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    os.sync()
    return out


def _child_ids() -> set[int]:
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text("ascii").split()}


def _used(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _dataset_figures(source: Photographs, out: Path) -> list[Figure]:
    """Measures the size of a dataset, and how fast it is verified."""
    stored = sum(shard.bytes for shard in ingest(masked(source), _emptied(out) / "verified", quiet=True).shards)
    taken = seconds(lambda: verify(out / "verified", workers=1), 2)
    read = verify(out / "verified", workers=1).bytes
    return [
        Figure("ingest: shards / input", stored / source.bytes, "x", AT_MOST, 1.02),
        Figure("verify, one core", read / taken / 1e6, "MB/s", AT_LEAST, 300, f"{read / 1e6:.0f} MB"),
    ]


def _command_figures(source: Photographs, folder: Path, command: Sequence[str]) -> list[Figure]:
    """Measures the command from its start to the first byte of a shard, and all of it with few small images."""
    out = _emptied(folder / "out")
    started = time.perf_counter()
    with _started(source, out, command) as process:
        while process.poll() is None and not any(file.stat().st_size for file in _staged(out)):
            time.sleep(0.005)
        first = time.perf_counter() - started
        process.wait()
    small = photographs(folder, _SMALL, height=128, width=192)
    _emptied(out)
    whole = seconds(lambda: _started(small, out, command).wait())
    listed = f"{len(source.names)} photographs are listed first"
    return [
        Figure("start-up to first record", first, "s", AT_MOST, 5, listed),
        Figure(f"ingest, {_SMALL} small images", whole, "s", AT_MOST, 10, "the whole command"),
    ]


def _staged(out: Path) -> list[Path]:
    try:
        return list(out.glob(".*.staging/*/Split-*/*"))
    except FileNotFoundError:
        return []


def _started(source: Photographs, out: Path, command: Sequence[str]) -> subprocess.Popen[bytes]:
    config = out / "bench.yaml"
    # JSON is YAML.
    config.write_text(canonical_json(_raw("segmentation", source, source.masks)), encoding="utf-8")
    call = [*command, "ingest", str(config), "--out", str(out / "ours")]
    return subprocess.Popen(call, stdout=subprocess.DEVNULL)


def _raw(task: str, source: Photographs, table: str) -> dict[str, object]:
    return {"task": task, "input": {"images": source.images, "labels": {"path": table}}}


def masked(source: Photographs) -> Config:
    """Returns the configuration of a segmentation: a table of four masks an image."""
    return parse_config(_raw("segmentation", source, source.masks), base="/")


def _labeled(source: Photographs, checked: str) -> Config:
    """Returns the configuration of a classification: a table of one class an image."""
    raw = _raw("classification", source, source.labels)
    return parse_config({**raw, "images": {"verify": checked}}, base="/")


def _copy(source: Photographs, out: Path, *, sync: bool = False) -> None:
    with (out / "copy").open("wb") as target:
        for path in source.paths:
            target.write(Path(path).read_bytes())
        target.flush()
        if sync:
            os.fsync(target.fileno())


def _notebook(source: Photographs, out: Path) -> None:
    from benchmarks.transform import write_records

    with open(source.labels, encoding="utf-8", newline="") as lines:
        texts = {row["image"]: [row["label"]] for row in csv.DictReader(lines)}
    write_records(source.paths, texts, str(out / "notebook"))


def _decode(source: Photographs, out: Path) -> None:
    """Decodes all photographs at an eighth of their size, and drops the pixels."""
    del out

    def decode(path: str) -> None:
        with Image.open(path) as image:
            image.draft(None, (image.width // 8, image.height // 8))
            image.load()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(decode, source.paths):
            pass


WAYS: Mapping[str, Callable[[Photographs, Path], object]] = {
    "copy": _copy,
    "synced copy": lambda source, out: _copy(source, out, sync=True),
    "header": lambda source, out: ingest(_labeled(source, HEADER), out / "header", quiet=True),
    "masks": lambda source, out: ingest(masked(source), out / "masks", quiet=True),
    "notebook": _notebook,
    "decode": _decode,
    "full": lambda source, out: ingest(_labeled(source, FULL), out / "full", quiet=True),
}


def main(way: str, folder: str, images: str, height: str, width: str, out: str) -> None:
    """Takes one turn, and prints the processor time before it and the wall time of it."""
    source = photographs(Path(folder), int(images), height=int(height), width=int(width))
    if way == "notebook":
        # Its imports take some seconds, which count much with few photographs and are not its work.
        import benchmarks.transform

        del benchmarks
    before, started = _used(resource.RUSAGE_SELF), time.perf_counter()
    WAYS[way](source, Path(out))
    print(json.dumps({"before": before, "wall": time.perf_counter() - started}))


if __name__ == "__main__":
    main(*sys.argv[1:])
