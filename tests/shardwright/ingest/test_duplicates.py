"""Ingest: equal images are found, kept or dropped as asked, logged, and never on two sides of a split."""

import io
from pathlib import Path

import numpy as np
import pytest
from ingesting import config, ledger, run, tree
from PIL import Image

from shardwright.errors import CheckFailed, ConfigError

FULL = {"verify": "full"}


def picture(number, size=(96, 128)):
    cells = np.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(cells).resize(size[::-1], Image.Resampling.BICUBIC)


def encoded(image, kind="jpeg", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path):
    """Class folders: five pictures each, and those that a test adds."""
    root = tmp_path / "images"
    for number in range(10):
        put(root, f"{'ab'[number % 2]}/{number}.jpg", encoded(picture(number), quality=92))
    return root


def put(root, name, data):
    file = Path(root, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def raw(root, duplicates=None, images=None, **sections):
    made = {"task": "classification", "input": {"images": str(root)}, **sections}
    return {**made, **({"duplicates": duplicates} if duplicates else {}), **({"images": images} if images else {})}


def dropped(out):
    return {key: (row.status, row.code) for key, row in ledger(out).items() if row.status != "written"}


def sides(out):
    return {key: row.split for key, row in ledger(out).items()}


def test_without_duplicates_nothing_is_logged_and_nothing_changes(tmp_path, folder):
    notes = []
    run(raw(folder), tmp_path / "plain", log=notes.append)
    run(raw(folder, {"exact": "keep"}), tmp_path / "kept")
    assert not any("duplicate" in note for note in notes)
    assert tree(tmp_path / "plain") == tree(tmp_path / "kept")


def test_exact_ones_are_kept_on_one_side_and_logged(tmp_path, folder):
    for copy in range(8):
        put(folder, f"a/copy-{copy}.jpg", (folder / "a/0.jpg").read_bytes())
    notes = []
    manifest = run(raw(folder), tmp_path / "out", log=notes.append)
    assert manifest.totals["written"] == 18
    where = sides(tmp_path / "out")
    assert len({where[f"a/copy-{copy}.jpg"] for copy in range(8)} | {where["a/0.jpg"]}) == 1
    assert [note for note in notes if "exact_duplicate: 9 images in 1 group, e.g. a/0.jpg = a/copy-0.jpg" in note]


def test_the_first_by_key_is_kept(tmp_path, folder):
    put(folder, "a/+.jpg", (folder / "a/0.jpg").read_bytes())
    put(folder, "a/x.jpg", (folder / "a/0.jpg").read_bytes())
    manifest = run(raw(folder, {"exact": "first"}), tmp_path / "out")
    assert dropped(tmp_path / "out") == dict.fromkeys(("a/0.jpg", "a/x.jpg"), ("duplicate", "exact_duplicate"))
    reason = ledger(tmp_path / "out")["a/x.jpg"].reason
    assert reason == "has the same bytes as a/+.jpg, which is kept"
    assert (manifest.totals["duplicate"], manifest.totals["duplicate/exact_duplicate"]) == (2, 2)
    assert manifest.totals["inputs"] == 12
    assert "rejected/exact_duplicate" not in manifest.totals


def test_they_may_end_the_run(tmp_path, folder):
    put(folder, "a/x.jpg", (folder / "a/0.jpg").read_bytes())
    with pytest.raises(CheckFailed, match=r"2 images in 1 group, e.g. a/0.jpg = a/x.jpg. duplicates.exact is fail"):
        run(raw(folder, {"exact": "fail"}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_rejected_is_no_duplicate(tmp_path, folder):
    for name in ("a/0first.bin", "a/0second.bin"):
        put(folder, name, b"no image")
    run(raw(folder, {"exact": "fail"}), tmp_path / "out")
    assert dropped(tmp_path / "out") == dict.fromkeys(("a/0first.bin", "a/0second.bin"), ("rejected", "not_an_image"))


def test_labels_that_disagree_are_logged(tmp_path, folder):
    put(folder, "b/x.jpg", (folder / "a/0.jpg").read_bytes())
    notes = []
    manifest = run(raw(folder, {"exact": "first"}), tmp_path / "first", log=notes.append)
    assert dropped(tmp_path / "first") == {"b/x.jpg": ("duplicate", "conflicting_duplicates")}
    assert ledger(tmp_path / "first")["b/x.jpg"].reason.endswith("a/0.jpg, which is kept; but its labels are b, not a")
    assert manifest.totals["duplicate/conflicting_duplicates"] == 1
    assert [note for note in notes if "conflicting_duplicates: 1 of these groups disagree on labels" in note]
    run(raw(folder), tmp_path / "kept", log=notes.append)
    assert not dropped(tmp_path / "kept")
    run(raw(folder, {"exact": "first", "conflicts": "reject"}), tmp_path / "reject")
    assert dropped(tmp_path / "reject") == dict.fromkeys(("a/0.jpg", "b/x.jpg"), ("rejected", "conflicting_duplicates"))
    with pytest.raises(CheckFailed, match="duplicates.conflicts is fail"):
        run(raw(folder, {"conflicts": "fail"}), tmp_path / "fail")


def test_masks_that_disagree_are_logged(tmp_path, image_input):
    made = image_input(tmp_path / "in", images=6)
    images, table = tmp_path / "in" / "images", tmp_path / "in" / "labels.csv"
    (images / "copy.jpg").write_bytes((images / "001.jpg").read_bytes())
    rows = table.read_text().splitlines()
    same = [row.replace("001.jpg", "copy.jpg") for row in rows if row.startswith("001.jpg")]
    table.write_text("\n".join([*rows, *same]))
    run({**made, "duplicates": {"exact": "first"}}, tmp_path / "same")
    assert dropped(tmp_path / "same") == {"copy.jpg": ("duplicate", "exact_duplicate")}
    table.write_text("\n".join([*rows, "copy.jpg_Fish,1 2", "copy.jpg_Sugar,"]))
    run({**made, "duplicates": {"exact": "first"}}, tmp_path / "other")
    assert dropped(tmp_path / "other") == {"copy.jpg": ("duplicate", "conflicting_duplicates")}


def test_equal_pixels_are_found_in_other_formats_and_orientations(tmp_path, folder):
    shown = Image.open(folder / "a/2.jpg")
    put(folder, "a/x.png", encoded(shown, "png"))
    turned = shown.transpose(Image.Transpose.ROTATE_180)
    put(
        folder,
        "a/y.png",
        encoded(turned, "png", exif=b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0"),
    )
    put(folder, "a/z.png", encoded(turned, "png"))
    run(raw(folder, {"exact": "first", "pixels": "first"}, FULL), tmp_path / "out")
    assert dropped(tmp_path / "out") == dict.fromkeys(("a/x.png", "a/y.png"), ("duplicate", "pixel_duplicate"))
    assert "the same pixels as a/2.jpg" in ledger(tmp_path / "out")["a/y.png"].reason


def test_near_ones_are_found_and_lie_on_one_side(tmp_path, folder):
    for number in range(10):
        whole = Image.open(folder / f"{'ab'[number % 2]}/{number}.jpg")
        put(folder, f"{'ab'[number % 2]}/small-{number}.jpg", encoded(whole.resize((64, 48)), quality=50))
    run(raw(folder, {"near": {"max_distance": 8}}, FULL), tmp_path / "kept")
    where = sides(tmp_path / "kept")
    assert len(where) == 20
    assert all(where[f"{'ab'[n % 2]}/{n}.jpg"] == where[f"{'ab'[n % 2]}/small-{n}.jpg"] for n in range(10))
    run(raw(folder, {"exact": "first", "near": {"max_distance": 8, "action": "first"}}, FULL), tmp_path / "first")
    wanted = {f"{'ab'[n % 2]}/small-{n}.jpg": ("duplicate", "near_duplicate") for n in range(10)}
    assert dropped(tmp_path / "first") == wanted
    assert "perceptual hash differs in" in ledger(tmp_path / "first")["a/small-0.jpg"].reason
    options = {
        "exact": "first",
        "near": {"max_distance": 8, "action": "first", "confirm_hash": "difference", "confirm_distance": 0},
    }
    confirmed = run(raw(folder, options, FULL), tmp_path / "confirmed")
    assert confirmed.totals["duplicate"] < 10
    with pytest.raises(CheckFailed, match=r"near_duplicate: 20 images in 10 groups.*duplicates.near.action is fail"):
        run(raw(folder, {"exact": "fail", "near": {"max_distance": 8, "action": "fail"}}, FULL), tmp_path / "fail")


@pytest.mark.parametrize("name", ["average", "difference", "wavelet"])
def test_any_hash_finds_near_ones(tmp_path, folder, name):
    put(folder, "a/x.jpg", encoded(Image.open(folder / "a/0.jpg"), quality=40))
    options = {"exact": "first", "near": {"max_distance": 6, "action": "first", "hash": name}}
    run(raw(folder, options, FULL), tmp_path / "out")
    assert dropped(tmp_path / "out") == {"a/x.jpg": ("duplicate", "near_duplicate")}
    assert f"its {name} hash differs" in ledger(tmp_path / "out")["a/x.jpg"].reason


@pytest.mark.parametrize(
    ("options", "images", "where"),
    [
        ({"near": {"max_distance": 4}}, None, "duplicates.near"),
        ({"pixels": "keep"}, None, "duplicates.pixels"),
        ({"near": {"max_distance": 17}}, FULL, "duplicates.near.max_distance"),
        ({"near": {"max_distance": -1}}, FULL, "duplicates.near.max_distance"),
        ({"exact": "last"}, None, "duplicates.exact"),
        ({"near": {"max_distance": 4, "action": "first"}}, FULL, "duplicates.near.action"),
        ({"pixels": "fail"}, FULL, "duplicates.pixels"),
        (
            {"exact": "first", "pixels": "keep", "near": {"max_distance": 4, "action": "fail"}},
            FULL,
            "duplicates.near.action",
        ),
        ({"near": {"action": "first"}}, FULL, "duplicates.near.max_distance"),
        ({"near": {"confirm_hash": "difference"}}, FULL, "duplicates.near.max_distance"),
        ({"near": {"max_distance": 4, "confirm_hash": "perceptual"}}, FULL, "duplicates.near.confirm_hash"),
        ({"near": {"max_distance": 4, "confirm_distance": 3}}, FULL, "duplicates.near.confirm_distance"),
        ({"conflicts": "ignore"}, None, "duplicates.conflicts"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, images, where):
    with pytest.raises(ConfigError) as error:
        config(raw("/images", options, images))
    assert error.value.path == where


def test_off_is_none():
    assert config(raw("/images", {"near": False, "pixels": False})).duplicates.near is None
