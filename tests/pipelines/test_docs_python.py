"""The page of the Python interface: its Python gives the output that is shown, and it has all public names."""

from pathlib import Path

import pytest
from pages import printed_by

import shardwright

PAGE = Path(__file__).parents[2] / "docs/get-started/python.md"
PRINTED = """\
('eval', 'test', 'train') 40
(64, 96, 3) uint8 (64, 96, 4)
3
[]
Batch(images [4, 64, 96, 3] float32; targets [4, 64, 96, 4] uint8)
clouds.html
  trainer: augments with flip_left_right, brightness=0.1, contrast=0.1 (loader.augment; [] for none)
segmentation 1 test
40
  trainer: augments with flip_left_right, brightness=0.1, contrast=0.1 (loader.augment; [] for none)
segmentation model.keras
True
"""


@pytest.mark.slow
def test_the_python_on_the_page(tmp_path):
    assert printed_by(PAGE, tmp_path) == PRINTED


def test_all_public_names_are_documented():
    page = PAGE.read_text(encoding="utf-8")
    for name in shardwright.__all__:
        assert f"`{name}" in page or f"sw.{name}(" in page, name
