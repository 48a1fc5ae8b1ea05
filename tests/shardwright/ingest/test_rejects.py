"""Ingest: every input is accounted for; an impossible run has a clear message and publishes nothing."""

import os
import re
import shutil

import pytest
from ingesting import changed, examples, ledger, run, tree
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.edit.export_dataset import export
from shardwright.errors import CheckFailed, ConfigError, UsageError
from shardwright.ingest.select_spans import becomes_input


def test_what_is_wrong_goes_to_the_ledger_by_name(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    images, table = tmp_path / "in" / "images", tmp_path / "in" / "labels.csv"
    rows = table.read_text().splitlines()
    by_key = {row.rsplit(",", 1)[0]: i for i, row in enumerate(rows)}
    rows[by_key["001.jpg_Fish"]] = "001.jpg_Fish,1 2 3"
    rows[by_key["002.jpg_Sugar"]] = "002.jpg_Sugar,1 99999"
    rows[by_key["004.jpg_Fish"]] = "004.jpg_Fish,many fish"
    rows.append("lost.jpg_Fish,1 1")
    table.write_text("\n".join(rows))
    data = (images / "005.jpg").read_bytes()
    (images / "005.jpg").write_bytes(data[: len(data) // 2])
    (images / "006.jpg").write_bytes(b"<html>404</html>")
    Image.new("L", (30, 25)).save(images / "007.jpg")
    raw["images"] = {"max_pixels": 24 * 30}
    (images / "notes.db").write_bytes(b"SQLite format 3\0")
    for name in ("Thumbs.db", ".DS_Store"):
        (images / name).write_bytes(b"\xd0\xcf\x11\xe0")
    notes: list[str] = []
    manifest = run(raw, tmp_path / "out", log=notes.append)
    # Files that belong next to images are neither images nor rejects; those of systems are not even listed.
    assert "images: other files are ignored: .db 1" in notes
    found = ledger(tmp_path / "out")
    rejected = {key: row.code for key, row in found.items() if row.status == "rejected"}
    assert rejected == {
        "001.jpg": "bad_rle",
        "002.jpg": "bad_rle",
        "004.jpg": "bad_rle",
        "005.jpg": "truncated",
        "006.jpg": "not_an_image",
        "007.jpg": "too_large",
        "lost.jpg": "missing_image",
    }
    place = f"labels.csv, row {by_key['002.jpg_Sugar'] + 1}, column EncodedPixels, class Sugar: "
    assert found["002.jpg"].reason.startswith(place)
    assert "99999" in found["002.jpg"].reason
    assert found["001.jpg"].split in manifest.splits
    assert manifest.totals["inputs"] == len(found) == 25
    assert manifest.totals["written"] == 18
    assert manifest.totals["rejected/bad_rle"] == 3
    assert len(examples(tmp_path / "out")) == 18


@pytest.mark.parametrize(
    ("share", "rejects", "allowed"), [(None, 1, 0), (0, 1, 0), (0.04, 1, 0), (0.42, 11, 10)], ids=str
)
def test_more_rejects_than_allowed_publish_nothing(tmp_path, image_input, share, rejects, allowed):
    """Nothing is free: with 0, or a share of less than one image, a single reject ends the run."""
    raw = {**image_input(tmp_path / "in"), "rejects": {} if share is None else {"max_fraction": share}}
    for number in range(rejects):
        (tmp_path / "in" / "images" / f"{number:03d}.jpg").write_bytes(b"GIF89a")
    problem = rf"{rejects} of 24 inputs were rejected, {allowed} are allowed .*unsupported_format {rejects}"
    with pytest.raises(CheckFailed, match=problem) as error:
        run(raw, tmp_path / "out")
    assert "\n  000.jpg: " in str(error.value)
    assert not (tmp_path / "out").exists()
    advised = float(re.search(r"\{max_fraction: ([\d.]+)\}", str(error.value))[1])
    made = run({**raw, "rejects": {"max_fraction": advised}}, tmp_path / "out")
    assert made.totals["written"] == 24 - rejects


def test_nothing_matched_shows_names_of_both_sides(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    table = tmp_path / "in" / "labels.csv"
    table.write_text(table.read_text().replace(".jpg_", ".png_"))
    with pytest.raises(CheckFailed) as error:
        run(raw, tmp_path / "out")
    assert "names 000.png, 001.png, 002.png" in str(error.value)
    assert "images are 000.jpg, 001.jpg, 002.jpg" in str(error.value)
    table.write_text("Image_Label,EncodedPixels\n")
    with pytest.raises(CheckFailed, match="0 rows below the header"):
        run(raw, tmp_path / "out")
    table = table.with_suffix(".json")
    raw["input"]["labels"] = {"path": str(table), "format": "label_studio"}
    for content, message in (
        ("[]", r"labels.json: contains no annotations of images\. Give a file with annotations"),
        (
            '[{"data": {}, "annotations": [{"result": []}]}]',
            r"labels.json: names no image\..* problem: labels.json, task 1: names no",
        ),
    ):
        table.write_text(content)
        with pytest.raises(CheckFailed, match=message):
            run(raw, tmp_path / "out")


def test_images_that_are_left_out_on_request_are_no_failure(tmp_path, image_input):
    raw = {**image_input(tmp_path / "in"), "rejects": {"max_fraction": 0}}
    table = tmp_path / "in" / "labels.csv"
    table.write_text("\n".join(row for row in table.read_text().splitlines() if not "004" < row[:3] <= "023"))
    manifest = run(changed(raw, unlisted_images="reject"), tmp_path / "out")
    assert (manifest.totals["written"], manifest.totals["rejected/unlisted"]) == (5, 19)


def test_images_without_a_row(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    table = tmp_path / "in" / "labels.csv"
    kept = [row for row in table.read_text().splitlines() if row[:3] not in ("003", "005", "007", "009")]
    table.write_text("\n".join(kept))
    with pytest.raises(CheckFailed, match=r"4 of 24 images have no row in labels.csv: 003.jpg, 005.jpg, 007.jpg, …"):
        run(raw, tmp_path / "fail")
    manifest = run(changed(raw, unlisted_images="reject"), tmp_path / "reject")
    assert manifest.totals["rejected/unlisted"] == 4
    assert run(changed(raw, unlisted_images="empty"), tmp_path / "empty").totals["written"] == 24
    assert examples(tmp_path / "empty")["003.jpg"]["image/class/label"].tolist() == []
    with pytest.raises(
        ConfigError, match="'unlabeled' is for images of one class; here an image without masks is labeled"
    ):
        run(changed(raw, unlisted_images="unlabeled"), tmp_path / "x")


def test_severstal_images_without_a_row_have_no_defects(tmp_path, image_input):
    raw = image_input(tmp_path / "in", layout="image_class")
    table = tmp_path / "in" / "labels.csv"
    table.write_text("\n".join(row for row in table.read_text().splitlines() if not row.startswith("003")))
    assert run(raw, tmp_path / "out").totals["written"] == 24
    with pytest.raises(ConfigError, match="'empty' means no masks"):
        run(changed(image_input(tmp_path / "c", layout="label_csv"), unlisted_images="empty"), tmp_path / "x")


def test_the_table_may_lie_among_the_images(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    table = tmp_path / "in" / "images" / "labels.csv"
    shutil.move(tmp_path / "in" / "labels.csv", table)
    assert run(changed(raw, labels={"path": str(table)}), tmp_path / "out").totals["inputs"] == 24


def test_what_cannot_be_opened_is_accounted_for_once(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    (tmp_path / "in" / "images" / os.fsdecode(b"\xff.jpg")).write_bytes(b"x")
    os.symlink("/etc/hostname", tmp_path / "in" / "images" / "999.jpg")
    with (tmp_path / "in" / "labels.csv").open("a") as table:
        table.write("999.jpg_Fish,1 1\n")
    assert run(raw, tmp_path / "out").totals["rejected"] == 2
    assert ledger(tmp_path / "out")["999.jpg"].code == "outside_root"
    assert ledger(tmp_path / "out")["\\xff.jpg"].code == "bad_name"


def test_a_file_that_cannot_be_read_is_rejected(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    from shardwright import storage
    from shardwright.ingest import known_files

    hash_file = storage.hash_file
    monkeypatch.setattr(
        known_files, "hash_file", lambda path, *pin: None if path.endswith("004.jpg") else hash_file(path)
    )
    assert run(raw, tmp_path / "out").totals["rejected/unreadable"] == 1
    assert ledger(tmp_path / "out")["004.jpg"].code == "unreadable"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw, root: changed(raw, images=str(root / "absent")), "absent does not exist"),
        (lambda raw, root: changed(raw, images=str(root / "empty")), "contains no files"),
        (lambda raw, root: changed(raw, labels={"path": str(root / "absent.csv")}), "absent.csv does not exist"),
        (lambda raw, root: changed(raw, classes=["Fish"]), "row 3: the class 'Sugar' is not in input.classes"),
        (lambda raw, root: changed(raw, images="ftp://host/images"), "ftp:// is not known"),
        (lambda raw, root: changed(raw, images=str(root / "texts"), labels={"path": None}), "input.labels.path"),
        (lambda raw, root: changed(raw, images=str(root / "texts")), "no images below .*a.txt .not_an_image"),
    ],
)
def test_a_wrong_call_is_reported_before_anything_is_written(tmp_path, image_input, change, message):
    raw = image_input(tmp_path / "in")
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("x")
    with pytest.raises(UsageError, match=message):
        run(change(raw, tmp_path), tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "in", "texts"]


def test_a_wrong_output_is_refused(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    with pytest.raises(UsageError, match="is inside the input folder"):
        run(raw, tmp_path / "in" / "images" / "out")
    with pytest.raises(UsageError, match="is not empty"):
        run(raw, tmp_path / "in")
    with pytest.raises(UsageError, match="--workers: 0"):
        run(raw, tmp_path / "out", workers=0)
    with pytest.raises(UsageError, match="workers: '2' is not a whole number"):
        run(raw, tmp_path / "out", workers="2")
    first = run(raw, tmp_path / "out")
    assert run(raw, tmp_path / "out") == first
    with pytest.raises(UsageError, match="contains another dataset"):
        run({**raw, "shards": {"records": 3}}, tmp_path / "out")
    with pytest.raises(UsageError, match=f"is inside the dataset {tmp_path}/out"):
        run(raw, tmp_path / "out" / "below" / "it")
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "manifest.json").write_text('{"name": "of another program"}')
    assert run(raw, tmp_path / "web" / "out") == first
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for call in (lambda: run(raw, "."), lambda: export(ImageDataset.open(tmp_path / "out"), ".")):
        with pytest.raises(UsageError, match="is the current folder, which cannot be replaced"):
            call()
    for name, other in (("one", "other"), ("other", "one")):
        (tmp_path / name).symlink_to(other)
    for name in ("one", "one/below"):
        with pytest.raises(UsageError, match="its links lead to each other"):
            run(raw, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "in", "one", "other", "out", "web"]


def test_datasets_and_runs_among_the_images_are_left_out(tmp_path, image_input):
    raw, notes = image_input(tmp_path / "in"), []
    expected = run(raw, tmp_path / "out").fingerprint
    for name in ("ds", "deep/ds"):
        shutil.copytree(tmp_path / "out", tmp_path / "in/images" / name)
    (tmp_path / "in/images/runs").mkdir()
    for name in ("metadata.sqlite", "report.bin"):
        (tmp_path / "in/images/runs" / name).write_bytes(b"x")
    assert run(raw, tmp_path / "again", log=notes.append).fingerprint == expected
    files = 2 * sum(path.is_file() for path in (tmp_path / "out").rglob("*")) + 2
    note = f"images: {files} files are of datasets or runs, and left out: deep/ds, ds, runs"
    assert [one for one in notes if one.startswith("images:")] == [note]


@pytest.mark.parametrize(
    ("images", "inside"),
    [
        ("in", ["in", "in/a", "in/a/b", "in/7", "in/7/x", "link/a"]),
        ("in/*", ["in"]),
        ("in/*/*", ["in", "in/a", "in/7", "link/a"]),
        ("in/**", ["in", "in/a", "in/a/b", "in/7", "in/7/x", "link/a"]),
        ("in/**/*.jpg", []),
        ("in/{SPAN}", ["in/7", "in/7/x"]),
        ("in/{SPAN}/*.png", []),
    ],
)
def test_an_output_that_would_be_listed_is_recognized(tmp_path, images, inside):
    (tmp_path / "in" / "7").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "in")
    places = ["in", "in/a", "in/a/b", "in/.a", "in/a/.b", "in/7", "in/7/x", "inner", "link/a"]
    assert [place for place in places if becomes_input(str(tmp_path / place), str(tmp_path / images))] == inside
    assert not becomes_input("gs://bucket/in/a", str(tmp_path / images))


def test_what_was_detected_is_logged(tmp_path, image_input):
    notes = []
    run(changed(image_input(tmp_path / "in", layout="image_class"), classes=None), tmp_path / "out", log=notes.append)
    assert any("rle_csv" in note for note in notes)
    assert any("2 classes detected: 1, 2" in note for note in notes)


def test_a_file_that_changes_under_the_run_is_noticed(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    from shardwright.ingest import run_ingest as module

    def meddling(*arguments):
        (tmp_path / "in" / "images" / "000.jpg").write_bytes(b"other")
        return write_all(*arguments)

    write_all = module.map_processes
    monkeypatch.setattr(module, "map_processes", meddling)
    with pytest.raises(CheckFailed, match="000.jpg: the file has changed"):
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_annotations_are_partitioned_in_bounded_memory(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    whole = run(raw, tmp_path / "whole")
    monkeypatch.setattr("shardwright.ingest.tasks._BYTES", 100)
    assert run(raw, tmp_path / "small") == whole
    assert tree(tmp_path / "small") == tree(tmp_path / "whole")


def test_what_is_rejected_too_much_already_ends_a_run_before_it_writes(tmp_path, image_input, monkeypatch):
    from shardwright.ingest import run_ingest as module

    raw = {**image_input(tmp_path / "in"), "images": {"verify": "full"}, "duplicates": {"pixels": "keep"}}
    few, enough = ({**raw, "rejects": {"max_fraction": share}} for share in (0.42, 0.5))
    for number in range(11):
        (tmp_path / "in" / "images" / f"{number:03d}.jpg").write_bytes(b"GIF89a")
    monkeypatch.setattr(module, "write_range", None)
    with pytest.raises(CheckFailed, match=r"11 of 24 inputs were rejected, 10 are allowed .*\n  000.jpg: "):
        run(few, tmp_path / "out")
    assert [path.name for path in tmp_path.glob(".out.staging/*")] == ["probed"]
    monkeypatch.undo()
    made = run(enough, tmp_path / "out")
    assert run(few, tmp_path / "out") == made
