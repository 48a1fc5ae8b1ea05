"""The page of the Python interface: its Python does what it says, and it tells of all that is offered."""

from pathlib import Path

from pages import printed_by

import shardwright

PAGE = Path(__file__).parents[2] / "docs/python.md"
PRINTED = """\
('eval', 'test', 'train') 40
(64, 96, 3) uint8 (64, 96, 4)
3
[]
Batch(images [4, 64, 96, 3] float32; targets [4, 64, 96, 4] uint8)
clouds.html
"""


def test_the_python_on_the_page(tmp_path):
    assert printed_by(PAGE, tmp_path) == PRINTED


def test_all_that_is_offered_is_told():
    page = PAGE.read_text(encoding="utf-8")
    for name in shardwright.__all__:
        assert f"`{name}" in page, name
