"""Memory of the loader with its default settings: under a bound, whatever the number of records."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.soak

MOST_BYTES = 1.5e9
SIZE = (352, 544)

LOAD = """
import json, sys
from shardwright.running.processes import peak_memory
from shardwright.loader import load
root, options = sys.argv[1], json.loads(sys.argv[2])
for _ in load(root, "train", 16, shuffle=True, seed=1, **options):
    pass
print(peak_memory())
"""


def peak(root, options):
    """Bytes that a process held at most while it read an epoch."""
    command = [sys.executable, "-c", LOAD, str(root), json.dumps(options)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


@pytest.mark.parametrize("options", [{}, {"order": "exact"}, {"augment": ["crop", "hue", "cutout"]}], ids=str)
def test_memory_does_not_grow_with_the_dataset(small_dataset, tmp_path, options):
    few, many = (
        peak(
            small_dataset(tmp_path / name, counts={"train": [count] * 20}, size=lambda n: SIZE, image_format="jpeg"),
            options,
        )
        for name, count in (("few", 60), ("many", 240))
    )
    print(f"{options}: 1,200 records {few / 1e6:.0f} MB, 4,800 records {many / 1e6:.0f} MB")
    assert max(few, many) < MOST_BYTES
    assert many < 1.15 * few
