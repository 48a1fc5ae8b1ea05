"""The page of the Python interface: its Python does what it says, and it tells of all that is offered."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import shardwright

PAGE = (Path(__file__).parents[2] / "docs/python.md").read_text(encoding="utf-8")
PRINTED = """\
('eval', 'test', 'train') 40
(64, 96, 3) uint8 (64, 96, 4)
3
[]
Batch(images [4, 64, 96, 3] float32; targets [4, 64, 96, 4] uint8)
clouds.html
"""


@pytest.mark.slow
def test_the_python_on_the_page(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == PRINTED


def test_all_that_is_offered_is_told():
    for name in shardwright.__all__:
        assert f"`{name}" in PAGE, name
