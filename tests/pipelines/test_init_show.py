"""`--show`: images under each reading of a question, of sets whose truth is known."""

import re
import sys

import numpy as np
import pytest
from PIL import Image

from shardwright.display.readings import CELL_HEIGHT, CELL_WIDTH, draw_row, label_map
from shardwright.ingest.trial import try_these
from shardwright.masks.dialects import Dialect
from shardwright.masks.rle import encode
from shardwright.pipelines.cli import main
from shardwright.pipelines.init.decide import detect_input

SIDE, COUNT = 40, 8
RLE = {"input.labels.columns.mask": "runs", "task": "segmentation"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def truth(number, side=SIDE):
    """The bright object of an image: wide, so that rows and columns differ."""
    mask = np.zeros((side, side), bool)
    mask[4 + number : 9 + number, 2 : side - 4] = True
    return mask


def runs_of_squares(root, side=SIDE):
    """Square images with a bright object each, and a table of its run lengths along the rows, of no known set."""
    (root / "data/images").mkdir(parents=True)
    rows = ["picture,runs"]
    for i in range(COUNT):
        mask = truth(i, side)
        Image.fromarray(np.where(mask, 250, 20).astype(np.uint8)).save(root / f"data/images/p{i}.png")
        rows.append(f"p{i}.png,{Dialect(order='row').format(encode(mask), height=side, width=side)}")
    (root / "data/t.csv").write_text("\n".join(rows) + "\n")


def masks_with_a_stray_pixel(root):
    for folder in ("images", "masks"):
        (root / "data" / folder).mkdir(parents=True)
    for i in range(COUNT):
        Image.fromarray(np.where(truth(i), 250, 20).astype(np.uint8)).save(root / f"data/images/p{i}.png")
        mask = np.where(truth(i), 255, 0).astype(np.uint8)
        mask[-1, -1] = 3 * (i == 5)
        Image.fromarray(mask).save(root / f"data/masks/p{i}.png")


def settings(*pairs):
    return [word for path, value in pairs for word in ("--set", f"{path}={value}")]


def cells(file, columns):
    """The pictures of a PNG: rows x columns x [H, W, 3]. A cell begins below its image's name."""
    pixels = np.asarray(Image.open(file).convert("RGB"))
    # Pictures fill the whole height of a cell, and text no line from edge to edge.
    left = [6 + number * (CELL_WIDTH + 8) for number in range(columns)]
    middle = pixels[:, left[0] + CELL_WIDTH // 2 - 60 : left[0] + CELL_WIDTH // 2 + 60]
    dense = (middle != 255).any(-1).all(-1)
    tops = [row for row in np.flatnonzero(dense) if not dense[row - 1] and dense[row : row + CELL_HEIGHT].all()]
    return [[pixels[top : top + CELL_HEIGHT, x : x + CELL_WIDTH] for x in left] for top in tops]


def test_the_right_reading_covers_the_object_and_the_other_does_not(here, capsys):
    runs_of_squares(here)
    assert main(["init", "data", *settings(*RLE.items()), "--show=x.png"]) == 2
    error = capsys.readouterr().err
    orders = re.findall(r"rle\.order=(\w+)", error)
    assert sorted(orders) == ["column", "row"]
    assert "x.png has images under each reading" in error
    rows = cells("x.png", 2)
    assert len(rows) == 3
    for row in rows:
        by_order = dict(zip(orders, row, strict=True))
        # Where nothing is tinted, an image is gray.
        tinted = {order: np.ptp(cell.astype(int), axis=-1) > 30 for order, cell in by_order.items()}
        bright = {order: cell.max(-1) > 180 for order, cell in by_order.items()}
        assert (tinted["row"] == (tinted["row"] & bright["row"])).mean() > 0.99
        assert (tinted["column"] & ~bright["column"]).mean() > 0.02


def test_a_map_of_labels_is_the_truth(here):
    runs_of_squares(here)
    for order, right in (("row", True), ("column", False)):
        decision = detect_input("data", None, {**RLE, "input.labels.rle.order": order})
        images = list(try_these(decision.input.surveyed, range(COUNT)))
        assert all(np.array_equal(label_map(one) == 2, truth(i)) == right for i, one in enumerate(images))


def test_the_image_where_readings_differ_comes_first(here, capsys):
    masks_with_a_stray_pixel(here)
    assert main(["init", "data", "--show=x.png"]) == 2
    capsys.readouterr()
    assert len(cells("x.png", 2)) == 3
    readings = [{"input.labels.threshold": 128}, {"input.classes": {"a": 255, "stray": 3}, "split.method": "hash"}]
    inputs = [detect_input("data", None, options).input.surveyed for options in readings]
    first = [next(try_these(one, [5])) for one in inputs]
    assert [(label_map(one) > 0).sum() - truth(5).sum() for one in first] == [0, 1]


def test_a_shift_by_one_pixel_is_enlarged(here):
    runs_of_squares(here, 500)
    options = {**RLE, "input.labels.rle.order": "row"}
    shifted = [
        next(try_these(detect_input("data", None, {**options, "input.labels.rle.start": start}).input.surveyed, [0]))
        for start in (0, 1)
    ]
    row = draw_row("p0.png", shifted, ["", ""])
    assert row.title == "p0.png, a part of it"
    assert (row.cells[0] != row.cells[1]).any(-1).sum() > 5 * 3 * 3


def test_the_terminal_draws_them(here, capsys, monkeypatch):
    runs_of_squares(here)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["init", "data", *settings(*RLE.items()), "--show"]) == 2
    out = capsys.readouterr().out
    assert out.count("\x1b[38;2;") > 1000
    assert "1. positions go " in out
    assert "2. positions go " in out
    assert not list(here.glob("*.png"))


def test_without_a_question_one_column_shows_what_is_read(here, capsys):
    runs_of_squares(here)
    order = ("input.labels.rle.order", "row")
    assert main(["init", "data", *settings(*RLE.items(), order), "--out", "c.yaml", "--show", "x.png"]) == 0
    assert len(cells("x.png", 1)) == 3
    assert main(["ingest", "c.yaml", "--out", "ds", "--show", "y.png"]) == 0
    assert not (here / "y.png").exists()


def test_a_question_of_ingest_shows_its_readings(here, capsys):
    runs_of_squares(here)
    (here / "c.yaml").write_text(
        "task: segmentation\ninput: {images: data/images, labels: {path: data/t.csv, columns: {mask: runs}}}\n"
    )
    assert main(["ingest", "c.yaml", "--out", "ds"]) == 2
    assert "Add --show" in capsys.readouterr().err
    assert main(["ingest", "c.yaml", "--out", "ds", "--show=x.png"]) == 2
    error = capsys.readouterr().err
    assert 'input.labels.rle.order: "row"' in error
    assert len(cells("x.png", 2)) == 3
    assert not (here / "ds").exists()


def test_a_question_on_splits_does_not_offer_pictures(here, capsys):
    runs_of_squares(here)
    (here / "data/images").rename(here / "photos")
    for folder, count in (("cat", 6), ("dog", 2)):
        (here / "photos" / folder).mkdir()
        for i in range(count):
            (here / f"photos/p{i + 6 * (folder == 'dog')}.png").rename(here / f"photos/{folder}/{i}.png")
    assert main(["init", "photos", "--out", "c.yaml"]) == 2
    error = capsys.readouterr().err
    assert "Choose one of" in error
    assert "--show" not in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--show", "data"], "data does not end with .png. Put --show last"),
        (["data", "--show=data/images/x.png"], "is below data, and would be one of the images"),
        (["data", "--show=old.png"], "old.png exists already"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(here, capsys, words, message):
    runs_of_squares(here)
    (here / "old.png").write_bytes(b"mine")
    with pytest.raises(SystemExit) if words[0] == "--show" else pytest.MonkeyPatch.context():
        assert main(["init", *words]) == 2
    assert message in capsys.readouterr().err
    assert (here / "old.png").read_bytes() == b"mine"
