"""Measures training and evaluation on the accelerator of a machine that does not have this package: it carries itself.

    python -m benchmarks.accelerator pack measure.pyz DATASET ...        here; datasets of ImageTransform
    python measure.pyz run [--batch 16 64] > accelerator.json            there

There, only what computes must be installed: JAX with CUDA (or for a TPU), Keras, TensorFlow (its CPU wheel will do; it
reads the images), and the core's requirements, as the message says if one is missing. For each dataset, batch and
precision a row has images/s of steps on held batches (`alone`), fed by the loader (`fed`), of an evaluation and of a
forward pass (target of their quotient: 1.15), and the share of the time in which the devices waited for images.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("shardwright", "benchmarks")
_DATASETS = "datasets"
_PRECISIONS = ("float32", "bfloat16")
# What a packed file does: it unpacks itself for as long as it runs, since libraries read files of packages.
_MAIN = """
import os, subprocess, sys, tempfile, zipfile
with tempfile.TemporaryDirectory() as folder:
    zipfile.ZipFile(os.path.dirname(os.path.abspath(__file__))).extractall(folder)
    paths = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
    command += ["-m", "benchmarks.accelerator", *sys.argv[1:]]
    sys.exit(subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, cwd=folder).returncode)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Packs, or measures; 2 if a dataset is not one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(required=True, dest="job", metavar="JOB")
    packing = jobs.add_parser("pack", help="write the file to take along")
    packing.add_argument("file", type=Path)
    packing.add_argument("datasets", type=Path, nargs="+", metavar="DATASET")
    running = jobs.add_parser("run", help="measure on this machine, and print a row of JSON for each way")
    running.add_argument("--batch", type=int, nargs="+", default=[16, 64], metavar="N")
    running.add_argument("--precision", nargs="+", choices=_PRECISIONS, default=list(_PRECISIONS))
    running.add_argument("--rounds", type=int, default=8, metavar="N", help="for medians (default 8)")
    options = parser.parse_args(arguments)
    if options.job == "pack":
        return pack(options.file, options.datasets)
    rows = list(_rows(options.batch, options.precision, options.rounds))
    print(json.dumps(rows, indent=1))
    return 0 if rows else 2


def pack(file: Path, datasets: Sequence[Path]) -> int:
    """Writes this checkout and datasets into a file that Python runs."""
    for dataset in datasets:
        if not (dataset / "manifest.json").is_file():
            print(f"{dataset}: no dataset. Give what `shardwright transform` wrote.", file=sys.stderr)
            return 2
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("__main__.py", _MAIN)
        for source, target in (
            *((_ROOT / name, name) for name in _PACKAGES),
            *((dataset, f"{_DATASETS}/{dataset.name}") for dataset in datasets),
        ):
            # `components`, `pipelines` and `schemas` are links in a checkout.
            for folder, _, names in os.walk(source, followlinks=True):
                for name in sorted(names):
                    if "__pycache__" not in folder:
                        path = Path(folder, name)
                        packed.write(path, f"{target}/{path.relative_to(source)}")
    print(f"{file}: {file.stat().st_size / 1e6:.1f} MB. Next: python {file.name} run, on the machine to measure")
    return 0


def _rows(batches: Sequence[int], precisions: Sequence[str], rounds: int) -> Iterator[dict[str, Any]]:
    from benchmarks.training import measured_on
    from shardwright.dataset.reader import ImageDataset

    for dataset in sorted((_ROOT / _DATASETS).iterdir()):
        images = ImageDataset.open(dataset).num_records("train")
        for batch in batches:
            for precision in precisions:
                trainer = {"batch_size": batch, "precision": precision}
                if batch > images:
                    print(f"{dataset.name}: {images} images are no batch of {batch}", file=sys.stderr)
                    continue
                found = measured_on(dataset, trainer, rounds)
                alone, fed = found["held"][1], found["loaded"][1]
                yield {
                    "dataset": dataset.name,
                    "batch": batch,
                    "precision": precision,
                    "alone": alone,
                    "fed": fed,
                    "fed_by_alone": found["by_held"][1],
                    "waited": found["waited"][1],
                    "steps_per_launch": found["together"],
                    "evaluation": found["evaluation"],
                    "forward": found["forward"],
                    "evaluation_by_forward": found["forward"] / found["evaluation"],
                    "code": __file__,
                    "unpacked": str(_ROOT),
                }


if __name__ == "__main__":
    sys.exit(main())
