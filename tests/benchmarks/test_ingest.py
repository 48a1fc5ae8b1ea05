"""The benchmark of the ingest: every figure is measured on what its note names; no test checks a speed."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from benchmarks import ingest, masks
from benchmarks.figures import AT_LEAST, AT_MOST, Figure
from benchmarks.photographs import photographs


def test_a_verdict_states_whether_the_target_is_reached():
    found = [
        Figure("a", 2.0, "x", AT_LEAST, 2),
        Figure("b", 1.99, "x", AT_LEAST, 2),
        Figure("c", 2.0, "s", AT_MOST, 2),
        Figure("d", 2.01, "s", AT_MOST, 2),
        Figure("e", None, "x", AT_LEAST, 2, "not installed"),
        Figure("f", 3, "s"),
    ]
    assert [figure.verdict for figure in found] == ["ok", "short", "ok", "short", "", ""]
    assert found[0].row == ("a", "2 x", ">= 2 x", "ok", "")
    assert found[4].row == ("e", "-", ">= 2 x", "", "not installed")


@pytest.mark.slow
def test_photographs_differ_in_bytes_and_twenty_share_their_pixels(tmp_path):
    source = photographs(tmp_path, 23, height=96, width=128)
    assert len(source.names) == 23
    files = [Path(path).read_bytes() for path in source.paths]
    assert len({hashlib.sha256(data).digest() for data in files}) == 23
    assert source.bytes == sum(map(len, files))
    pixels = {Image.open(path).tobytes() for path in source.paths}
    assert len(pixels) == 2
    before = Path(source.masks).stat().st_mtime_ns
    assert photographs(tmp_path, 23, height=96, width=128) == source
    assert Path(source.labels).read_text().splitlines()[20:23] == [
        "00000-19.jpg,Fish",
        "00001-00.jpg,Flower",
        "00001-01.jpg,Flower",
    ]
    assert Path(source.masks).stat().st_mtime_ns == before


@pytest.mark.slow
def test_every_figure_of_masks_is_measured(monkeypatch):
    for name, value in (("HEIGHT", 140), ("WIDTH", 210), ("ROWS", 40), ("_DRAWN_IMAGES", 4), ("_COMPARED", 5)):
        monkeypatch.setattr(masks, name, value)
    figures = masks.mask_figures()
    assert [figure.value is not None and figure.value > 0 for figure in figures[:2]] == [True, True]
    assert figures[2].value is not None or figures[2].note == "pycocotools is not installed"


FIGURES = """
import json, sys
from pathlib import Path
from benchmarks import ingest

take, own = ingest._turn, sys.executable

def turn(way, *given):
    # A fork takes the notebook's way, since it has TensorFlow. It is nobody's child: its processor time is unknown.
    sys.executable = sys.argv[2] if way == "notebook" else own
    taken = take(way, *given)
    return taken._replace(processor=taken.wall) if way == "notebook" else taken

ingest._ROUNDS, ingest._SMALL, ingest._turn = 1, 6, turn
command = (sys.argv[2], "-m", "shardwright.pipelines.cli")
figures = ingest.ingest_figures(Path(sys.argv[1]), 6, command, (96, 128))
print(json.dumps([[figure.name, figure.value, figure.note] for figure in figures]))
"""


@pytest.mark.slow
def test_every_figure_of_the_ingest_is_measured(tmp_path):
    """In a process of its own, since it becomes the parent of all that its children leave behind."""
    # Starts the server of forks: below, it would be a child that a turn has left behind.
    subprocess.run([sys.executable, "-c", "import shardwright.components"], check=True)
    call = [sys.executable, "-c", FIGURES, str(tmp_path), sys.executable]
    done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=180)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert len({name for name, _, _ in figures}) == len(figures) == 13
    assert all(value > 0 for _, value, _ in figures)
    assert "6 photographs of" in figures[0][2]
    assert all(f" {way} " in figures[1][2] for way in ingest.WAYS)
