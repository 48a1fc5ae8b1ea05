"""The memory of a process that loads one epoch and does nothing else; run as a program, so that the peak is its own."""

from __future__ import annotations

import json
import subprocess
import sys

from shardwright.bench.memory import peak_memory


def loading_memory(dataset: str, split: str, batch: int) -> int:
    """Bytes of the most memory that a process has had which loads an epoch with default settings.

    Args:
        dataset: folder of the dataset.
        split: name of the split.
        batch: images in a batch.
    """
    call = [sys.executable, "-m", __name__, dataset, split, str(batch)]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    return int(json.loads(done.stdout.splitlines()[-1])["peak"])


def _main(dataset: str, split: str, batch: str) -> None:
    from shardwright.loader import load

    images = 0
    for image, *_ in load(dataset, split, int(batch), shuffle=True, seed=0):
        images += image.shape[0]
    print(json.dumps({"images": images, "peak": peak_memory()}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
