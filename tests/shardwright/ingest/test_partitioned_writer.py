"""Lines that are partitioned into files: all of them, in order, and no memory is left behind."""

import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from shardwright.ingest import tasks
from shardwright.ingest.tasks import PartitionedWriter

FILES = 3
lines = st.lists(st.tuples(st.integers(0, FILES - 1), st.binary(max_size=40)))


@given(lines, st.integers(1, 100))
def test_every_file_has_its_lines_in_order(drawn, size):
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, str(number)) for number in range(FILES)]
        written = PartitionedWriter(files, size)
        for number, line in drawn:
            written.add(number, line)
        written.flush()
        for number, file in enumerate(files):
            assert file.read_bytes() == b"".join(line for to, line in drawn if to == number)


def test_many_short_lines_are_written_before_the_room_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "_MOST_LINES", 4)
    written = PartitionedWriter([tmp_path / "lines"])
    for _ in range(9):
        written.add(0, b"x\n")
    assert (tmp_path / "lines").read_bytes() == b"x\n" * 8


HELD = """
import re, sys
from pathlib import Path
import numpy as np
from shardwright.ingest.tasks import write_labels
from shardwright.formats.base import Annotation
from shardwright.staging.staging import PlannedShard

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

live = []
def annotations():
    for number in range(12_000):
        live.append(bytes(600) if number % 20 == 0 else None)
        yield Annotation(number % 1000, 0, f"{number:4000d}", number)

write_labels(Path(sys.argv[1]), {PlannedShard("train", 0, 1): np.arange(1000)}, [(0, 1000)], 1000, iter(()))
before = resident()
write_labels(Path(sys.argv[1]), {PlannedShard("train", 0, 1): np.arange(1000)}, [(0, 1000)], 1000, annotations())
print(resident() - before)
"""


def test_what_was_gathered_goes_back_to_the_system_though_objects_between_live_on(tmp_path):
    command = [sys.executable, "-c", HELD, str(tmp_path)]
    kept = int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    assert kept < 8_000_000
    assert len((tmp_path / "train-data-00000-of-00001.000000000.jsonl").read_bytes()) > 20_000_000
