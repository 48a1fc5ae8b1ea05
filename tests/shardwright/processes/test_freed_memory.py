"""Freed memory goes back to the system, also from between live objects, or is kept where that is wanted."""

import os
import subprocess
import sys

from shardwright.running.processes import keep_tensors

HELD = """
import re
from pathlib import Path
from shardwright.running.processes import trim_heap

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

kept = [bytes(100_000) for _ in range(400)]
del kept[:-1]
before = resident()
trim_heap()
print(before - resident())
"""

USED_AGAIN = """
import resource
import sys
from shardwright.running.processes import keep_heap

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "kept":
    keep_heap()
for count in range(12):
    held = [bytes(2_000_000) for _ in range(4)]
    del held
    begun = faults() if count == 2 else begun if count else 0
print(faults() - begun)
"""

BATCHES = """
import resource
import tensorflow as tf  # In a fork, since it names shardwright.components.

faults = []
for count in range(6):
    batch = tf.fill([40_000_000], count / 10)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    del batch
print(faults[-1] - faults[1])
"""


def test_memory_below_a_live_object_goes_back_to_the_system():
    freed = subprocess.run([sys.executable, "-c", HELD], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert int(freed) > 20_000_000


def test_what_is_kept_is_used_again_without_asking_the_system():
    asked = {
        way: int(subprocess.run([sys.executable, "-c", USED_AGAIN, way], stdout=subprocess.PIPE, check=True).stdout)
        for way in ("kept", "not")
    }
    assert asked["kept"] < 100 < asked["not"]


def test_a_batch_gets_the_memory_of_an_earlier_one():
    """Without the variables each of these batches costs 39,000 pages."""
    environment = {**os.environ, **keep_tensors({}, processors=2)}
    command = [sys.executable, "-c", BATCHES]
    asked = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment).stdout
    assert int(asked) < 10_000
    assert [bool(keep_tensors({}, processors=count)) for count in (7, 8)] == [True, False]


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr("shardwright.running.processes.ctypes.CDLL", lambda name: object())
    from shardwright.running.processes import keep_heap, trim_heap

    trim_heap()
    keep_heap()
