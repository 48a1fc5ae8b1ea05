"""The sample data set: the same every time, in the layout promised, and something a model can learn."""

import csv
import errno
import hashlib
import io
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from property_tests import tries

from shardwright.errors import StorageError, UsageError
from shardwright.masks import rle
from shardwright.sample import KINDS, write_sample
from shardwright.sample import sample_files as write
from shardwright.sample.cloud_outlines import draw_outline, frame_size, plan_regions
from shardwright.sample.scene import draw_masks, draw_picture, encode_jpeg
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.own_names import MARK

SMALL = {"height": 72, "width": 110, "quiet": True}


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_same_seed_same_bytes_whatever_the_workers(tmp_path):
    for name, workers in (("one", 1), ("again", None), ("two", 2)):
        write_sample(str(tmp_path / name), images=5, workers=workers, **SMALL)
    assert contents(tmp_path / "one") == contents(tmp_path / "again") == contents(tmp_path / "two")


def test_program_from_standard_input_draws_too(tmp_path):
    program = (
        f"from shardwright.sample import write_sample\nwrite_sample({str(tmp_path / 'set')!r}, images=2, workers=2,"
    )
    program += " height=64, width=64, quiet=True)\n"
    subprocess.run([sys.executable, "-"], input=program, text=True, check=True, timeout=120)
    assert len(list((tmp_path / "set" / "train_images").iterdir())) == 2


def test_another_seed_is_another_set(tmp_path):
    for seed in (0, 1):
        write_sample(str(tmp_path / str(seed)), images=2, seed=seed, **SMALL)
    zero, one = contents(tmp_path / "0"), contents(tmp_path / "1")
    assert not (set(zero) & set(one)) - {"train.csv"}
    assert not set(zero.values()) & set(one.values())


def test_an_image_does_not_depend_on_how_many_there_are(tmp_path):
    for count in (3, 6):
        write_sample(str(tmp_path / str(count)), images=np.int64(count), **SMALL)
    few, many = contents(tmp_path / "3"), contents(tmp_path / "6")
    rows = few.pop("train.csv").splitlines()
    assert set(rows) <= set(many.pop("train.csv").splitlines())
    assert few.items() <= many.items()


def test_layout(tmp_path):
    report = write_sample(str(tmp_path / "set"), images=6, **SMALL)
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == ["train.csv", "train_images"]
    with open(report.labels, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["Image_Label", "EncodedPixels"]
    names = sorted(p.name for p in Path(report.images).iterdir())
    assert len(names) == 6
    assert [row[0] for row in rows] == [f"{name}_{kind}" for name in names for kind in KINDS]
    # A class that is absent keeps its row, with an empty field and no quotes.
    absent = sum(1 for row in rows if not row[1])
    assert 0 < absent < len(rows)
    assert Path(report.labels).read_bytes().count(b",\n") == absent
    assert report.present == {k: sum(1 for r in rows if r[1] and r[0].endswith(f"_{k}")) for k in KINDS}
    assert report.image_bytes == sum(p.stat().st_size for p in Path(report.images).iterdir())
    for name in names:
        with Image.open(Path(report.images, name)) as image:
            assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (110, 72))


def test_csv_holds_the_masks(tmp_path):
    report = write_sample(str(tmp_path / "set"), images=5, seed=3, **SMALL)
    with open(report.labels, encoding="utf-8", newline="") as file:
        text = {row["Image_Label"]: row["EncodedPixels"] for row in csv.DictReader(file)}
    for index in range(5):
        for kind, mask in zip(KINDS, draw_masks(3, index, 72, 110), strict=True):
            runs = rle.parse_pairs(text[f"{write.image_name(3, index)}_{kind}"], height=72, width=110)
            np.testing.assert_array_equal(rle.draw(runs, 72, 110), mask)


def test_masks_are_the_same_on_every_stack():
    digest = hashlib.sha256()
    for seed, index, height, width in ((0, 0, 350, 525), (0, 1, 1400, 2100), (5, 17, 64, 64), (9, 4, 200, 90)):
        for mask in draw_masks(seed, index, height, width):
            digest.update(mask.tobytes())
    assert digest.hexdigest() == "40c25145470cf4ad9c9eec6b13800a320948d99665a92a95983e0789b379b590"


def test_names_differ():
    names = {write.image_name(0, index) for index in range(50_000)}
    assert len(names) == 50_000
    assert all(len(name) == len("00112233.jpg") for name in names)


@tries(40)
@given(
    seed=st.integers(0, 2**40), index=st.integers(0, 10_000), height=st.integers(64, 400), width=st.integers(64, 400)
)
def test_regions_of_any_picture(seed, index, height, width):
    regions = plan_regions(seed, index, height, width)
    kinds = [region.kind for region in regions]
    assert 1 <= len(kinds) <= 3
    assert kinds == sorted(set(kinds))
    for region in regions:
        mask = draw_outline(region.outline, height, width)
        assert mask.shape == (height, width)
        assert set(np.unique(mask)) == {0, 1}
        assert 0.08 < mask.mean() < 0.48


def test_a_ribbon_has_regions_too():
    for height, width in ((64, 4000), (4000, 64)):
        for index in range(8):
            assert any(mask.any() for mask in draw_masks(0, index, height, width))


@given(height=st.integers(64, 4000), width=st.integers(64, 4000))
def test_frame_has_the_proportions_of_the_picture(height, width):
    rows, columns = frame_size(height, width)
    assert rows / columns == pytest.approx(height / width, rel=0.01)


def test_same_regions_at_every_size():
    for index in range(6):
        for small, large in zip(draw_masks(0, index, 70, 105), draw_masks(0, index, 350, 525), strict=True):
            assert np.mean(small != large[2::5, 2::5]) < 0.02


@pytest.fixture(scope="module")
def masks_of_200():
    return np.array([draw_masks(0, index, 96, 144) for index in range(200)], bool)


def test_classes_are_balanced(masks_of_200):
    share = masks_of_200.any((2, 3)).mean(0)
    assert ((share >= 0.25) & (share <= 0.75)).all(), dict(zip(KINDS, share, strict=True))


def test_small_sets_have_every_class():
    for seed in range(5):
        present = np.array([[mask.any() for mask in draw_masks(seed, index, 64, 96)] for index in range(4)])
        assert present.any(0).all()


def test_overlaps_occur_and_leave_each_region_mostly_its_own(masks_of_200):
    overlap = (masks_of_200.sum(1) > 1).mean((1, 2))
    assert 0.2 < (overlap > 0.01).mean() < 0.8
    assert overlap.mean() < 0.1


def _describe(patch):
    """Brightness and its spread at three scales: what a convolution sees first."""
    gray = patch.astype(np.float64).mean(-1)
    features = [gray.mean(), gray.std()]
    for step in (1, 3, 9):
        features += [np.abs(gray[step:] - gray[:-step]).mean(), np.abs(gray[:, step:] - gray[:, :-step]).mean()]
    return np.log(np.array(features) + 1.0)


def _patches(indices, height, width, side):
    found = []
    for index in indices:
        masks = draw_masks(0, index, height, width)
        decoded = np.asarray(Image.open(io.BytesIO(encode_jpeg(draw_picture(0, index, masks)))))
        cover = np.array(masks)
        for top in range(0, height - side, side):
            for left in range(0, width - side, side):
                full = cover[:, top : top + side, left : left + side].mean((1, 2))
                patch = decoded[top : top + side, left : left + side]
                if full.sum() == 0:
                    found.append((len(KINDS), _describe(patch)))
                elif full.max() == 1 and full.sum() == 1:
                    found.append((int(full.argmax()), _describe(patch)))
    return np.array([kind for kind, _ in found]), np.array([features for _, features in found])


@pytest.mark.slow
@pytest.mark.parametrize(("height", "width", "side"), [(350, 525, 64), (176, 264, 32)])
def test_kinds_can_be_learned(height, width, side):
    known, train = _patches(range(24), height, width, side)
    truth, test = _patches(range(24, 40), height, width, side)
    mean, spread = train.mean(0), train.std(0)
    centers = np.array([((train[known == k] - mean) / spread).mean(0) for k in range(len(KINDS) + 1)])
    distance = np.linalg.norm(((test - mean) / spread)[:, None] - centers, axis=-1)
    recall = [float((distance.argmin(1)[truth == k] == k).mean()) for k in range(len(KINDS) + 1)]
    # Five classes, clear sky among them: chance is 0.2 each.
    assert np.mean(recall) > 0.7, recall
    assert min(recall) > 0.4, recall


@pytest.mark.parametrize("size", [(64, 64), (64, 300), (301, 67)])
def test_odd_sizes_have_contrast(size):
    for index in range(4):
        masks = draw_masks(0, index, *size)
        picture = draw_picture(0, index, masks)
        assert picture.shape == (*size, 3)
        assert picture.dtype == np.uint8
        inside = np.any(masks, axis=0)
        assert picture[inside].mean() > picture[~inside].mean() + 5


def test_takes_an_empty_folder_and_makes_parents(tmp_path):
    (tmp_path / "empty").mkdir()
    write_sample(str(tmp_path / "empty"), images=1, **SMALL)
    write_sample(str(tmp_path / "a" / "b"), images=1, **SMALL)
    assert contents(tmp_path / "empty") == contents(tmp_path / "a" / "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "empty"]


def test_a_call_after_a_kill_deletes_what_that_one_has_left(tmp_path):
    for number, code in ((1, None), (2, UsageError)):
        working = tmp_path / f".partial-{fingerprint('out')[:16]}"
        (working / "whole").mkdir(parents=True)
        (working / ".lock").write_bytes(MARK)
        (working / "whole/rest.jpg").write_bytes(b"half")
        with nullcontext() if code is None else pytest.raises(code):
            write_sample(str(tmp_path / "out"), images=number, height=64, width=96, quiet=True)
        assert [place.name for place in tmp_path.iterdir()] == ["out"]
    assert sorted(place.name for place in (tmp_path / "out").iterdir()) == ["train.csv", "train_images"]


def test_refuses_a_taken_place(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file", "file/inside"):
        with pytest.raises(UsageError, match=name):
            write_sample(str(tmp_path / name), images=1, **SMALL)
    assert contents(tmp_path) == {"full/mine.txt": b"mine", "file": b"mine"}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"images": 0}, "images: 0"),
        ({"height": 63}, "height: 63"),
        ({"width": 10}, "width: 10"),
        ({"height": 70_000}, "height: 70000"),
        ({"seed": -1}, "seed: -1"),
        ({"workers": 0}, "workers: 0"),
        ({"images": "3"}, "images: '3' is not a whole number"),
    ],
)
def test_refuses_numbers_out_of_range(tmp_path, wrong, named):
    with pytest.raises(UsageError, match=named):
        write_sample(str(tmp_path / "set"), **{"images": 1, **SMALL, **wrong})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (MemoryError("on purpose"), MemoryError, "on purpose"),
        (OSError(errno.ENOSPC, "full"), StorageError, r"set: cannot be written \(full\)\. Make room"),
    ],
)
def test_nothing_is_left_of_a_set_that_failed(tmp_path, monkeypatch, raised, expected, message):
    drawn = []

    def fails_on_the_third(picture):
        if len(drawn) == 2:
            raise raised
        drawn.append(1)
        return b"jpeg"

    monkeypatch.setattr(write, "encode_jpeg", fails_on_the_third)
    with pytest.raises(expected, match=message):
        write_sample(str(tmp_path / "set"), images=5, workers=1, **SMALL)
    assert len(drawn) == 2
    assert not list(tmp_path.iterdir())
