"""The page of the loader: its Python does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from shardwright.augmentations import AUGMENTATIONS

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parents[2] / "docs/loader.md").read_text(encoding="utf-8")
PRINTED = """\
(4, 24, 36, 3) <dtype: 'float32'> (4, 24, 36, 4) <dtype: 'uint8'>
2 steps an epoch
<dtype: 'uint8'> (4, 24, 36, 1) -> (4, 24, 36, 4)
True
"""


def test_the_python_on_the_page(small_dataset, tmp_path):
    folder = small_dataset(tmp_path, classes=("Fish", "Flower", "Gravel", "Sugar"), counts={"train": [5, 3]})
    folder.rename(tmp_path / "ds")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == PRINTED


def test_every_augmentation_is_on_the_page():
    for name in AUGMENTATIONS:
        assert f"`{name}`" in PAGE
