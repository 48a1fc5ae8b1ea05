"""What processes share: a dataset has the same bytes whether tasks are in files or in memory that forks inherit."""

import json
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingesting import config, run, tree
from property_tests import tries

from shardwright.formats.rows import CsvFormat
from shardwright.ingest import plan, run_ingest
from shardwright.ingest.recipe import IngestRecipe, locate
from shardwright.ingest.survey import survey_input
from shardwright.staging import ranges

# Rows as tables have them: masks, none, several of an image, none of it, a field in quotes with a line end or a
# comma, too few fields, a number, nothing, and a byte order mark where none belongs.
_ROWS = (
    "000.png_a,1 3",
    '"000.png_b","1 2 7 2"',
    "001.png_a,",
    "001.png_b,2 2",
    '"001.png_b","4\n 2"',
    "gone.png_a,1 1",
    '"gone, too.png_a","1 1"',
    "000.png_a",
    "",
    "\ufeff002.png_a,1 1",
    "002.png_a,3 1",
)


@pytest.fixture(scope="module")
def images(tmp_path_factory, images_of_one_size):
    return images_of_one_size(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def images_of_one_size():
    from PIL import Image

    def made(folder):
        for number in range(4):
            Image.fromarray(np.full((4, 5, 3), 40 * number, np.uint8)).save(folder / f"{number:03}.png")
        return folder

    return made


def _surveyed(images, table):
    raw = {
        "task": "segmentation",
        "input": {
            "images": str(images),
            "labels": {"path": str(table), "rle": {"encoding": "absolute", "order": "column", "start": 1}},
            "unlisted_images": "empty",
        },
    }
    options = config(raw)
    return survey_input(IngestRecipe.of(options), locate(options))


@given(st.lists(st.sampled_from(_ROWS), max_size=12), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
@tries(60)
def test_rows_of_some_images_are_those_of_a_pass_over_all(images, rows, end, last_end, mark):
    table = images.parent / "masks.csv"
    lines = ["image_label,EncodedPixels", "003.png_a,1 2", *rows]
    text = end.join(line.replace("\n", end) for line in lines) + (end if last_end else "")
    table.write_text(text, encoding="utf-8-sig" if mark else "utf-8", newline="")
    source = _surveyed(images, table).source
    assert isinstance(source, CsvFormat)
    read, every = source.reader(), list(source.annotations())
    for some in ([0], [1, 2], [3, 0], [0, 1, 2, 3], []):
        assert list(read(some)) == [annotation for annotation in every if annotation.image in some]


def test_a_table_with_lines_that_end_with_a_carriage_return_alone_is_read_in_passes(images):
    table = images.parent / "masks.csv"
    table.write_bytes(b"image_label,EncodedPixels\r000.png_a,1 2\r001.png_a,1 2\r")
    source = _surveyed(images, table).source
    assert source.reader() is None
    assert [annotation.image for annotation in source.annotations()] == [0, 1]


# In a process that may fork, which this one with its threads may not.
_WITHOUT_FILES = """
import json, sys
from shardwright.config import parse_config
from shardwright.ingest import identify, ingest, plan, tasks
from shardwright.running import processes
from shardwright.staging import ranges
assert processes.can_fork()
ranges._MOST_IMAGES, ranges._SMALL = 6, 0
identify._WORTH_PROCESSES, identify._TOGETHER = 0, 16
plan.write_images = plan.write_labels = None
ingest(parse_config(json.loads(sys.argv[1]), base="/"), sys.argv[2], workers=int(sys.argv[3]), quiet=True)
assert not tasks._kept
"""


def test_tasks_in_files_and_in_memory_make_the_same_dataset(tmp_path, image_input, monkeypatch):
    raw = {**image_input(tmp_path / "in", images=40), "shards": {"count": 2}}
    run(raw, tmp_path / "whole", workers=1)
    for workers in ("1", "3"):
        call = [sys.executable, "-c", _WITHOUT_FILES, json.dumps(raw), str(tmp_path / workers), workers]
        subprocess.run(call, check=True)
        assert tree(tmp_path / workers) == tree(tmp_path / "whole")
    written, stage, write = [], plan.PreparedIngest.stage, plan.write_images
    monkeypatch.setattr(plan, "write_images", lambda *given: written.append(1) or write(*given))
    monkeypatch.setattr(plan.PreparedIngest, "stage", lambda prepared, staging, inherited: stage(prepared, staging))
    run(raw, tmp_path / "files", workers=1)
    assert written
    assert tree(tmp_path / "files") == tree(tmp_path / "whole")


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_is_smooth_with_two_shards_and_counts_every_image_once(tmp_path, image_input, monkeypatch, workers):
    raw = {**image_input(tmp_path / "in", images=40), "shards": {"count": 1}}
    steps, totals = [], []

    class _Shown:
        def advance(self, amount, size):
            steps.append((amount, size))

    @contextmanager
    def shown(total, label, *, quiet, size):
        totals.append((total, size))
        yield _Shown()

    monkeypatch.setattr(run_ingest, "progress", shown)
    monkeypatch.setattr(ranges, "_MOST_IMAGES", 4)
    monkeypatch.setattr(ranges, "_SMALL", 0 if workers > 1 else 10**12)
    manifest = run(raw, tmp_path / "out", workers=workers)
    ((images, size),) = totals
    assert images == manifest.totals["written"] + manifest.totals["rejected"]
    assert sum(amount for amount, _ in steps) == images
    assert max(amount for amount, _ in steps) <= 4
    assert abs(sum(more for _, more in steps) - size) <= len(steps)
