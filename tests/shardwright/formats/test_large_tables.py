"""A table of 150,000 rows is read in bounded memory."""

import json
import subprocess
import sys

import pytest

_READ = """
import json, sys
from shardwright.running.processes import peak_memory
from shardwright.config import LabelsConfig
from shardwright.formats.base import Images, Request
from shardwright.formats.detect import open_source

keys = [f"{i:05d}.jpg" for i in range(20_000)]
options = LabelsConfig(path=sys.argv[1], features={"*": "auto"})
images = Images(keys, frozenset(), size_of=lambda position: None, max_pixels=10**6)
before = peak_memory()
source = open_source(Request(task="classification", options=options, classes=None, path=sys.argv[1], images=images))
survey = source.survey()
rows = sum(1 for _ in source.annotations())
grown = (peak_memory() - before) // 2**20
print(json.dumps([survey.labels, survey.features, rows, grown]))
"""


@pytest.mark.slow
def test_many_rows_take_little_memory(tmp_path):
    file = tmp_path / "labels.csv"
    with file.open("w") as out:
        out.write("image,label,age,note\n")
        for i in range(150_000):
            out.write(f'{i * 7919 % 20_000:05d}.jpg,{"a|b" if i % 3 else "c"},{i % 90},"row, {i}"\n')
    done = subprocess.run([sys.executable, "-c", _READ, str(file)], capture_output=True, text=True, check=True)
    labels, features, rows, grown = json.loads(done.stdout)
    assert labels == "multi"
    assert features == {"image/meta/age": "int64", "image/meta/note": "bytes"}
    assert rows == 250_000
    # Read whole, the rows would take more than 45 MB.
    assert grown < 22
