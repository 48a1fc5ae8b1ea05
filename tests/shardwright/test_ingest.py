"""Ingest: the same bytes whatever the circumstances, every input accounted for, clear words where it cannot be done."""

import hashlib
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shardwright import rle
from shardwright.config import parse_config
from shardwright.dataset import Dataset
from shardwright.errors import CheckFailed, ConfigError, DatasetError, UsageError
from shardwright.ingest import IngestRecipe, ingest, ingest_recipe, input_fingerprint, locate, resolve_classes
from shardwright.records import decode_example


def config(raw, **changes):
    merged = {**raw, **changes}
    return parse_config(merged, base="/")


def changed(raw, **options):
    return {**raw, "input": {**raw["input"], **options}}


def tree(root):
    free = ("build.json", "lineage.json")
    return {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in Path(root).rglob("*")
        if p.is_file() and p.name not in free
    }


def examples(root):
    dataset = Dataset.open(root)
    return {key: decode_example(data) for split in dataset.splits for key, data in dataset.records(split)}


def ledger(root):
    return {row.key: row for row in Dataset.open(root).ledger()}


def run(raw, out, **options):
    return ingest(config(raw), out, quiet=True, **options)


# --- what is written -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["image_label", "image_id_class_id", "image_class"])
def test_masks_are_those_of_the_table(tmp_path, image_input, layout):
    raw = image_input(tmp_path / "in", layout=layout)
    manifest = run(raw, tmp_path / "out")
    assert manifest.totals["written"] == manifest.totals["inputs"] == 24
    assert manifest.classes == ("Fish", "Sugar")
    found = examples(tmp_path / "out")
    for number in range(24):
        example = found[f"{number:03d}.jpg"]
        stored = (tmp_path / "in" / "images" / f"{number:03d}.jpg").read_bytes()
        generator = np.random.default_rng([0, number])
        generator.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        present = []
        for index, name in enumerate(manifest.classes):
            mask = (generator.random((20 + number % 5, 30)) < 0.3) & bool((number + index) % 3)
            runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
            assert (rle.draw(runs, *mask.shape) == mask).all()
            assert example[f"image/segmentation/{name}/area"].tolist() == [mask.sum()]
            present += [index] if mask.any() else []
        assert example["image/encoded"] == [stored]
        assert example["image/sha256"] == [hashlib.sha256(stored).hexdigest().encode()]
        assert example["image/key"] == example["image/filename"] == [f"{number:03d}.jpg".encode()]
        assert example["image/format"] == [b"jpeg"]
        sizes = [example[f"image/{name}"].tolist() for name in ("height", "width", "channels", "orientation")]
        assert sizes == [[20 + number % 5], [30], [3], [1]]
        assert example["image/class/label"].tolist() == present
        assert example["image/class/text"] == [manifest.classes[i].encode() for i in present]


@pytest.mark.parametrize("layout", ["label_csv", "class_folders"])
def test_labels_are_those_of_the_input(tmp_path, image_input, layout):
    manifest = run(image_input(tmp_path / "in", layout=layout), tmp_path / "out")
    found = examples(tmp_path / "out")
    assert len(found) == 24
    for key, example in found.items():
        label = int(Path(key).stem) % 2
        assert example["image/class/label"].tolist() == [label]
        assert example["image/class/text"] == [manifest.classes[label].encode()]
        assert example["image/filename"] == [Path(key).name.encode()]


def test_the_manifest_names_every_feature_and_its_type(tmp_path, image_input):
    for layout in ("image_label", "label_csv"):
        out = tmp_path / layout / "out"
        manifest = run(image_input(tmp_path / layout / "in", layout=layout), out)
        for example in examples(out).values():
            kinds = {n: "bytes" if isinstance(v, list) else v.dtype.name for n, v in example.items() if len(v)}
            assert {name: manifest.features[name] for name in kinds} == kinds
            assert sorted(example) == sorted(manifest.features)


def test_records_of_a_split_are_ordered_by_hash_and_shards_are_even(tmp_path, image_input):
    raw = image_input(tmp_path / "in", images=60)
    manifest = run(raw, tmp_path / "out")
    dataset = Dataset.open(tmp_path / "out")
    for split in dataset.splits:
        keys = [key for key, _ in dataset.records(split)]
        assert keys == sorted(keys, key=lambda key: hashlib.sha256(f"\0{key}".encode()).digest())
        counts = [shard.records for shard in dataset.shards(split)]
        assert max(counts) - min(counts) <= 1
        assert max(counts) <= 7
    assert sum(shard.records for shard in manifest.shards) == 60
    rows = ledger(tmp_path / "out")
    shard = dataset.shards("train")[1]
    assert (rows[shard.first_key].shard, rows[shard.first_key].index) == (1, 0)


def test_several_rows_of_a_class_are_joined(tmp_path, image_input):
    raw = image_input(tmp_path / "in", images=1)
    (tmp_path / "in" / "labels.csv").write_text(
        "Image_Label,EncodedPixels\n000.jpg_Fish,1 4\n000.jpg_Sugar,\n000.jpg_Fish,3 5 20 1\n"
    )
    run(raw, tmp_path / "out")
    example = examples(tmp_path / "out")["000.jpg"]
    assert example["image/segmentation/Fish/rle"].tolist() == [0, 7, 19, 1]
    assert example["image/segmentation/Fish/area"].tolist() == [8]
    assert example["image/segmentation/Sugar/rle"].tolist() == []


# --- the same bytes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "workers", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)]
)
def test_workers_order_times_and_place_change_nothing(tmp_path, image_input, monkeypatch, workers):
    raw = image_input(tmp_path / "in")
    first = run(raw, tmp_path / "out", workers=1)
    moved = tmp_path / "elsewhere" / "deep"
    shutil.copytree(tmp_path / "in", moved)
    for number, file in enumerate(sorted(moved.rglob("*"))):
        os.utime(file, (number * 1e6, number * 1e6))
    scandir = os.scandir

    class Shuffled:
        def __init__(self, path):
            with scandir(path) as entries:
                self.entries = list(entries)
            random.Random(7).shuffle(self.entries)

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            return None

    monkeypatch.setattr("shardwright.storage.os.scandir", Shuffled)
    there = changed(raw, images=str(moved / "images"), labels={"path": str(moved / "labels.csv")})
    second = run({**there, "name": "another"}, tmp_path / "out2", workers=workers)
    assert second == first
    assert tree(tmp_path / "out") == tree(tmp_path / "out2")


def test_told_and_given_classes_make_the_same_dataset(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    told = changed(raw, classes=None)
    assert resolve_classes(config(told), locate(config(told)))[0] == ("Fish", "Sugar")
    assert run(told, tmp_path / "told") == run(raw, tmp_path / "given")


def test_both_severstal_layouts_hold_the_same_masks(tmp_path, image_input):
    shas = set()
    for layout in ("image_label", "image_id_class_id", "image_class"):
        manifest = run(image_input(tmp_path / layout, layout=layout), tmp_path / f"{layout}.out")
        shas.add(tuple(shard.sha256 for shard in manifest.shards))
    assert len(shas) == 1


def test_the_fingerprint_of_an_input_is_its_content(tmp_path, image_input):
    raw = image_input(tmp_path / "in")

    def now(**options):
        read = config(changed(raw, **options))
        return input_fingerprint(read, locate(read))

    first = now()
    shutil.copytree(tmp_path / "in", tmp_path / "copy")
    copied = {"images": str(tmp_path / "copy/images"), "labels": {"path": str(tmp_path / "copy/labels.csv")}}
    assert now(**copied) == first
    image = tmp_path / "copy" / "images" / "000.jpg"
    before = image.stat()
    data = image.read_bytes()
    image.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    os.utime(image, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert now(**copied) != first
    image.write_bytes(data)
    assert now(**copied) == first
    table = tmp_path / "copy" / "labels.csv"
    text = table.read_bytes()
    table.write_bytes(text.replace(b"_Fish,1 1", b"_Fish,1 2", 1) if b"_Fish,1 1" in text else text + b"\n")
    assert now(**copied) != first
    table.write_bytes(text)
    image.rename(image.with_name("zzz.jpg"))
    assert now(**copied) != first


def test_a_recipe_survives_json_and_holds_no_path(tmp_path, image_input):
    raw = changed(image_input(tmp_path / "in"), classes={"Sugar": 2, "Fish": 1})
    text = ingest_recipe(config(raw), ["Fish", "Sugar"])
    assert str(tmp_path) not in text
    recipe = IngestRecipe.from_json(text)
    assert recipe == IngestRecipe.of(config(raw))
    assert list(recipe.classes) == ["Fish", "Sugar"]
    with pytest.raises(ValueError, match="code format 99"):
        IngestRecipe.from_json(text.replace('"code_format":1', '"code_format":99'))


# --- what is not written ---------------------------------------------------------------------------------------------


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
    (images / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0")
    (images / ".DS_Store").write_bytes(b"x")
    manifest = run(raw, tmp_path / "out")
    found = ledger(tmp_path / "out")
    rejected = {key: row.code for key, row in found.items() if row.status == "rejected"}
    assert rejected == {
        "001.jpg": "bad_rle",
        "002.jpg": "bad_rle",
        "004.jpg": "bad_rle",
        "005.jpg": "truncated",
        "006.jpg": "not_an_image",
        "Thumbs.db": "not_an_image",
        "lost.jpg": "missing_image",
    }
    place = f"labels.csv, row {by_key['002.jpg_Sugar'] + 1}, column EncodedPixels, class Sugar: "
    assert found["002.jpg"].reason.startswith(place)
    assert "99999" in found["002.jpg"].reason
    assert found["001.jpg"].split in manifest.splits
    assert manifest.totals["inputs"] == len(found) == 26
    assert manifest.totals["written"] == 19
    assert manifest.totals["rejected/bad_rle"] == 3
    assert len(examples(tmp_path / "out")) == 19


def test_more_rejects_than_allowed_publish_nothing(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    for number in range(11):
        (tmp_path / "in" / "images" / f"{number:03d}.jpg").write_bytes(b"GIF89a")
    with pytest.raises(CheckFailed, match=r"11 of 24 inputs were rejected, 10 are allowed .*unsupported_format 11"):
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert run({**raw, "rejects": {"max": 0.5}}, tmp_path / "out").totals["written"] == 13


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


def test_images_without_a_row(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    table = tmp_path / "in" / "labels.csv"
    kept = [row for row in table.read_text().splitlines() if row[:3] not in ("003", "005", "007", "009")]
    table.write_text("\n".join(kept))
    with pytest.raises(CheckFailed, match=r"4 of 24 images have no row in labels.csv: 003.jpg, 005.jpg, 007.jpg, …"):
        run(raw, tmp_path / "fail")
    manifest = run(changed(raw, unlisted="reject"), tmp_path / "reject")
    assert manifest.totals["rejected/unlisted"] == 4
    assert run(changed(raw, unlisted="empty"), tmp_path / "empty").totals["written"] == 24
    assert examples(tmp_path / "empty")["003.jpg"]["image/class/label"].tolist() == []
    with pytest.raises(ConfigError, match="not in this version"):
        run(changed(raw, unlisted="unlabelled"), tmp_path / "x")


def test_severstal_images_without_a_row_have_no_defects(tmp_path, image_input):
    raw = image_input(tmp_path / "in", layout="image_class")
    table = tmp_path / "in" / "labels.csv"
    table.write_text("\n".join(row for row in table.read_text().splitlines() if not row.startswith("003")))
    assert run(raw, tmp_path / "out").totals["written"] == 24
    with pytest.raises(ConfigError, match="'empty' means no masks"):
        run(changed(image_input(tmp_path / "c", layout="label_csv"), unlisted="empty"), tmp_path / "x")


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
    from shardwright.ingest import inputs

    hash_file = inputs.hash_file
    monkeypatch.setattr(inputs, "hash_file", lambda path: None if path.endswith("004.jpg") else hash_file(path))
    assert run(raw, tmp_path / "out").totals["rejected/unreadable"] == 1
    assert ledger(tmp_path / "out")["004.jpg"].code == "unreadable"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw, root: changed(raw, images=str(root / "absent")), "absent does not exist"),
        (lambda raw, root: changed(raw, images=str(root / "empty")), "holds no files"),
        (lambda raw, root: changed(raw, labels={"path": str(root / "absent.csv")}), "absent.csv does not exist"),
        (lambda raw, root: changed(raw, classes=["Fish"]), "row 3: the class 'Sugar' is not in input.classes"),
        (lambda raw, root: changed(raw, images="gs://bucket/images"), "not in this version"),
        (lambda raw, root: changed(raw, images=str(root / "texts"), labels={"path": None}), "input.labels.path"),
        (lambda raw, root: changed(raw, images=str(root / "texts")), "no images below .*a.txt .not_an_image"),
    ],
)
def test_a_wrong_call_is_said_before_anything_is_written(tmp_path, image_input, change, message):
    raw = image_input(tmp_path / "in")
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("x")
    with pytest.raises(UsageError, match=message):
        run(change(raw, tmp_path), tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "in", "texts"]


def test_a_wrong_output_is_refused(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    with pytest.raises(UsageError, match="lies inside the input folder"):
        run(raw, tmp_path / "in" / "images" / "out")
    with pytest.raises(UsageError, match="is not empty"):
        run(raw, tmp_path / "in")
    with pytest.raises(UsageError, match="--workers: 0"):
        run(raw, tmp_path / "out", workers=0)
    first = run(raw, tmp_path / "out")
    assert run(raw, tmp_path / "out") == first
    with pytest.raises(UsageError, match="holds another dataset"):
        run({**raw, "shards": {"records": 3}}, tmp_path / "out")


def test_what_was_told_is_told(tmp_path, image_input):
    notes = []
    run(changed(image_input(tmp_path / "in", layout="image_class"), classes=None), tmp_path / "out", tell=notes.append)
    assert any("rle_csv" in note for note in notes)
    assert any("2 classes told: 1, 2" in note for note in notes)


def test_a_file_that_changes_under_the_run_is_noticed(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    from shardwright.ingest import run as module

    def meddling(plan, staging, workers):
        (tmp_path / "in" / "images" / "000.jpg").write_bytes(b"other")
        return write_all(plan, staging, workers)

    write_all = module._write_all
    monkeypatch.setattr(module, "_write_all", meddling)
    with pytest.raises(CheckFailed, match="000.jpg: the file has changed"):
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_annotations_are_partitioned_in_bounded_memory(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    whole = run(raw, tmp_path / "whole")
    monkeypatch.setattr("shardwright.ingest.tasks._BUFFERED_CHARACTERS", 100)
    assert run(raw, tmp_path / "small") == whole
    assert tree(tmp_path / "small") == tree(tmp_path / "whole")


# --- kill and resume -------------------------------------------------------------------------------------------------

KILLED = """
import json, os, signal, sys
from pathlib import Path
from shardwright import staging
from shardwright.config import parse_config
from shardwright.ingest import ingest
left = int(sys.argv[3])

def counted(function):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call

os.rename, os.link, os.fsync = counted(os.rename), counted(os.link), counted(os.fsync)
Path.replace, Path.mkdir, Path.rename = counted(Path.replace), counted(Path.mkdir), counted(Path.rename)
staging.RecordWriter.write = counted(staging.RecordWriter.write)
ingest(parse_config(json.loads(sys.argv[1]), base="/"), sys.argv[2], quiet=True)
print("done")
"""


@pytest.mark.slow
def test_a_killed_ingest_shows_nothing_and_resumes_to_the_same_bytes(tmp_path, image_input):
    import json

    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "whole")
    whole = tree(tmp_path / "whole")
    survived = False
    for moment in range(1, 400, 16):
        out = tmp_path / f"at-{moment}" / "out"
        out.parent.mkdir()
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, json.dumps(raw), str(out), str(moment)], capture_output=True, text=True
        )
        survived = "done" in killed.stdout
        assert survived or killed.returncode == -9, killed.stderr
        if not out.exists():
            with pytest.raises(DatasetError):
                Dataset.open(out)
        run(raw, out)
        assert tree(out) == whole
        left = {p.name for p in out.parent.iterdir()} - {"out"}
        assert left <= {".out.staging"}
        if survived:
            break
    assert survived
    assert moment > 100


def test_a_resumed_ingest_reads_no_finished_shard_again(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    from shardwright.ingest import run as module

    def stop_after_two(plan, staging, workers):
        done = write_all(plan, staging, workers)
        yield next(done)
        yield next(done)
        raise KeyboardInterrupt

    write_all = module._write_all
    monkeypatch.setattr(module, "_write_all", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(module, "_write_all", write_all)
    written = []
    write_shard = module.write_shard
    monkeypatch.setattr(module, "write_shard", lambda *args: written.append(args[0]) or write_shard(*args))
    resumed = run(raw, tmp_path / "out")
    assert len(written) == len(resumed.shards) - 2
    assert resumed == run(raw, tmp_path / "whole")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out", "whole"}


# --- real data -------------------------------------------------------------------------------------------------------


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("table", "classes"),
    [
        ("image_label.csv", None),
        ("image_class.csv", {"Inclusion": 1, "Patches": 2, "Scratches": 3}),
        ("image_class.csv", ["Inclusion", "Patches", "Scratches"]),
    ],
)
def test_steel_defects_equal_the_truth_pixel_by_pixel(tmp_path, shared_data, table, classes):
    steel = shared_data / "steel_defects"
    raw = {"input": {"images": str(steel / "images"), "labels": {"path": str(steel / table)}, "classes": classes}}
    manifest = run(raw, tmp_path / "out")
    assert manifest.totals["written"] == manifest.totals["inputs"] == 840
    for key, example in examples(tmp_path / "out").items():
        truth = np.asarray(Image.open(steel / "masks" / Path(key).with_suffix(".png").name))
        drawn = np.zeros_like(truth)
        for index, name in enumerate(manifest.classes):
            drawn[rle.draw(rle.from_flat(example[f"image/segmentation/{name}/rle"]), *truth.shape) == 1] = index + 1
        assert (drawn == truth).all(), key


@pytest.mark.shared_data
def test_flowers_are_labelled_by_their_folder(tmp_path, shared_data):
    raw = {"task": "classification", "input": {"images": str(shared_data / "flowers")}}
    manifest = run(raw, tmp_path / "out")
    assert manifest.totals["written"] == 300
    assert manifest.classes == ("daisy", "dandelion", "rose", "sunflower", "tulip")
    for key, example in examples(tmp_path / "out").items():
        assert example["image/class/text"] == [key.split("/")[0].encode()]


@pytest.mark.shared_data
def test_hostile_files_are_written_or_rejected_and_nothing_crashes(tmp_path, shared_data):
    hostile = shared_data / "hostile"
    names = sorted(str(p.relative_to(hostile)) for p in hostile.rglob("*") if p.is_file())
    table = tmp_path / "labels.csv"
    rows = "".join(f'"{name}",x\n' for name in names)
    table.write_text(f"image,label\n{rows}", encoding="utf-8")
    raw = {
        "task": "classification",
        "input": {"images": str(hostile), "labels": {"path": str(table)}},
        "rejects": {"max": 1.0},
    }
    manifest = run(raw, tmp_path / "out")
    rows = ledger(tmp_path / "out")
    assert sorted(rows) == names
    assert manifest.totals["inputs"] == manifest.totals["written"] + manifest.totals["rejected"] == len(names)
    assert manifest.totals["written"] > 40
    assert rows["desktop.ini"].code == "not_an_image"
    assert all(row.reason for row in rows.values() if row.status == "rejected")
