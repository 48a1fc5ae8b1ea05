"""The base installation without what only Linux has. It imitates macOS, which the tests cannot run on."""

import subprocess
import sys

import numpy as np
from PIL import Image

# Python's `os` lacks these on macOS, according to its documentation.
_MISSING = (
    *("posix_fadvise", "posix_fallocate", "fdatasync", "copy_file_range", "splice", "memfd_create", "eventfd", "pipe2"),
    *("sched_getaffinity", "sched_setaffinity", "sched_getscheduler", "sched_setscheduler", "sched_yield", "getrandom"),
    *("getxattr", "setxattr", "listxattr", "removexattr", "pidfd_open", "unshare", "setns", "getresuid", "setresuid"),
    *("O_DIRECT", "O_PATH", "O_TMPFILE", "O_NOATIME", "POSIX_FADV_WILLNEED", "POSIX_FADV_SEQUENTIAL"),
)
_PROGRAM = f"""
import os, sys
for name in {_MISSING}:
    if hasattr(os, name):
        delattr(os, name)
import ctypes, multiprocessing.forkserver, sysconfig, PIL.Image, numpy, rich.progress
sysconfig.get_config_vars()
sys.platform = "darwin"
import shardwright
from shardwright.running.processes import peak_memory, usable_cores
from shardwright.verify import verify

made = shardwright.make_dataset({{
    "input": {{"images": "photos", "labels": {{"format": "none"}}}},
    "task": "classification",
    "images": {{"verify": "full"}},
    "duplicates": {{"near": {{"max_distance": 2}}}},
}}, "out", workers=1)
source = shardwright.source(made, "train")
print(usable_cores() > 0, peak_memory() > 0)
print(sum(made.num_records(split) for split in made.splits), source[0]["image"].shape)
print(verify("out", workers=1).findings)
"""


def test_a_dataset_is_made_verified_and_read(tmp_path):
    (tmp_path / "photos").mkdir()
    random = np.random.default_rng(5)
    for i in range(12):
        Image.fromarray(random.integers(0, 256, (70, 80, 3), np.uint8)).save(tmp_path / f"photos/{i}.png")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.stdout, done.returncode) == ("True True\n12 (70, 80, 3)\n()\n", 0), done.stderr[-3000:]
