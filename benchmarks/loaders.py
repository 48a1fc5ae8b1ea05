"""Compares Shardwright's loader with others: the same photographs, the same batch, in turns; see README.md here.

    .venv/bin/python benchmarks/loaders.py [--images 2000] [--batch 32] [--dir DIR] [--json]

Exit code 0 when all loaders that could be installed were measured, with any result: there are no targets.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.environments import environment
from benchmarks.loader import HEIGHT, WIDTH, loader_datasets
from benchmarks.record import record
from shardwright.loader.profile import ROUNDS

_HERE = Path(__file__).resolve().parent
_WORKER = str(_HERE / "loader_worker.py")
_PEERS = _HERE / "peers.txt"
_OURS = ("ours", "ours_float32", "tfds_style", "image_dataset_from_directory")
_THEIRS = ("grain_threads", "grain_processes", "webdataset", "webdataset_processes")
_LONGEST = 300


class _Worker:
    """A loader that is stopped during the turns of others.

    Otherwise it would fill its buffers meanwhile, which would count as speed, and take processor time from the loader
    that is measured.
    """

    def __init__(self, python: str, name: str, data: Path, batch: int, log: Path) -> None:
        self.name = name
        with log.open("w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                [python, _WORKER, name, str(data), str(batch)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                start_new_session=True,
            )
        self._log = log
        self.first = self._answer()
        self._signal(signal.SIGSTOP)

    def take(self, batches: int) -> tuple[float, float]:
        """Takes a number of batches twice and times the second half.

        Returns:
            Seconds of the second half; processor seconds per batch of both halves, of all its processes.
        """
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        worked = _processor_seconds(self._process.pid)
        self._process.stdin.write(f"{batches}\n")
        taken = float(self._answer()["seconds"])
        worked = _processor_seconds(self._process.pid) - worked
        self._signal(signal.SIGSTOP)
        return taken, worked / (2 * batches)

    def stop(self) -> None:
        """Ends the process and its children."""
        with suppress(ProcessLookupError):
            self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        """Signals the process and its children."""
        os.killpg(self._process.pid, number)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            errors = self._log.read_text(encoding="utf-8", errors="replace").strip()
            raise RuntimeError(errors.splitlines()[-1][:_LONGEST] if errors else "it ended without a message")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _processor_seconds(group: int) -> float:
    """Returns the processor seconds that the processes of a group have spent."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # After the name, which may contain anything: state, parent, group; later time in user and system mode.
            fields = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(folder: Path, images: int, batch: int) -> dict[str, Any]:
    """Measures all loaders, which take turns.

    Returns:
        `rates`: name -> images/s of each round; `work`: name -> processor seconds per image of each round; `batches`:
        name -> shape and type of one; `left_out`: name -> why.
    """
    source, dataset, _ = loader_datasets(folder, images)
    data = {
        "dataset": dataset,
        "images": source.images,
        "height": HEIGHT,
        "width": WIDTH,
        "array_record": str(folder / f"array_record-{images}"),
        "tar": str(folder / f"tar-{images}"),
    }
    data_file = folder / "loaders.json"
    data_file.write_text(json.dumps(data), encoding="utf-8")
    python, why = environment(folder / "peers", ["-r", str(_PEERS)])
    left_out = {} if python else dict.fromkeys(_THEIRS, why)
    if python:
        subprocess.run([python, _WORKER, "write", str(data_file), str(batch)], check=True)
    workers = []
    try:
        for name in (*_OURS, *(_THEIRS if python else ())):
            try:
                program = sys.executable if name in _OURS else python
                workers.append(_Worker(program, name, data_file, batch, folder / f"{name}.log"))
            except RuntimeError as error:
                left_out[name] = str(error)
        batches = max(1, images // batch // 2)
        rates: dict[str, list[float]] = {worker.name: [] for worker in workers}
        work: dict[str, list[float]] = {worker.name: [] for worker in workers}
        for _ in range(ROUNDS):
            for worker in workers:
                taken, worked = worker.take(batches)
                rates[worker.name].append(batches * batch / taken)
                work[worker.name].append(worked / batch)
        firsts = {worker.name: worker.first for worker in workers}
        return {"rates": rates, "work": work, "batches": firsts, "left_out": left_out}
    finally:
        for worker in workers:
            worker.stop()


def rows(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a row for each loader, the fastest first: images/s, and ours relative to it."""
    rates, work = measured["rates"], measured["work"]
    made = []
    for name, rounds in sorted(rates.items(), key=lambda item: -median(item[1])):
        dtype = measured["batches"][name]["dtype"]
        own = "ours_float32" if dtype == "float32" else "ours"
        share = median(ours / theirs for ours, theirs in zip(rates[own], rounds, strict=True))
        spent = median(theirs / ours for ours, theirs in zip(work[own], work[name], strict=True))
        made.append({"name": name, "rate": median(rounds), "share": share, "processor": spent, "dtype": dtype})
    return made


def table(measured: dict[str, Any]) -> str:
    """Returns the result as text: ours relative to each, by the medians of paired rounds; also by processor time."""
    lines = [f"{'loader':<30}{'images/s':>10}{'ours / it':>11}{'processor':>11}  batch"]
    for row in rows(measured):
        shares = f"{row['share']:>9.2f} x{row['processor']:>9.2f} x"
        shape = measured["batches"][row["name"]]["shape"]
        lines.append(f"{row['name']:<30}{row['rate']:>10,.0f}{shares}  {row['dtype']} {shape}")
    lines += [f"{name:<30}{'-':>10}{'':>22}  left out: {why}" for name, why in measured["left_out"].items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description="Compares Shardwright's loader with others.")
    parser.add_argument("--images", type=int, default=2000, metavar="N", help="photographs (default 2000)")
    parser.add_argument("--batch", type=int, default=32, metavar="N", help="images in a batch (default 32)")
    parser.add_argument("--dir", metavar="DIR", help="where all is kept between calls (default: not kept)")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--record", action="store_true", help="publish them: store them in benchmarks/figures.json")
    options = parser.parse_args(arguments)
    if options.images < 2 * options.batch:
        parser.error(f"--images {options.images}: give at least two batches of {options.batch}")
    if options.dir is not None:
        measured = measure(Path(options.dir).absolute(), options.images, options.batch)
    else:
        with tempfile.TemporaryDirectory(prefix="shardwright-loaders-") as folder:
            measured = measure(Path(folder), options.images, options.batch)
    if options.record:
        record("loaders", rows(measured))
    print(json.dumps(measured, indent=1) if options.json else table(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
