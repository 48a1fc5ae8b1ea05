"""What was freed goes back to the system, also from between objects that live on."""

import subprocess
import sys

HELD = """
import re
from pathlib import Path
from shardwright.freed_memory import give_back

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

kept = [bytes(100_000) for _ in range(400)]
del kept[:-1]
before = resident()
give_back()
print(before - resident())
"""


def test_what_lies_below_an_object_that_lives_on_goes_back_to_the_system():
    freed = subprocess.run([sys.executable, "-c", HELD], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert int(freed) > 20_000_000


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr("shardwright.freed_memory.ctypes.CDLL", lambda name: object())
    from shardwright.freed_memory import give_back

    give_back()
