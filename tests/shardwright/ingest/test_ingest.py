"""Ingest: the dataset contains the data of the table, in the order of the hash, and always the same bytes."""

import hashlib
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from ingesting import changed, config, examples, ledger, run, tree
from PIL import Image

from shardwright.dataset.dataset_schema import render_schema
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed
from shardwright.ingest import IngestRecipe, ingest_recipe, input_fingerprint, locate, plan, survey_input, tasks
from shardwright.ingest.recipe import CODE_FORMAT
from shardwright.masks import rle
from shardwright.storage.checksum import checksum_of
from shardwright.tfrecords.records import decode_example
from shardwright.verify import verify


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
        assert example["image/blake3"] == [checksum_of(stored).encode()]
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
    dataset = ImageDataset.open(tmp_path / "out")
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

    monkeypatch.setattr("os.scandir", Shuffled)
    there = changed(raw, images=str(moved / "images"), labels={"path": str(moved / "labels.csv")})
    second = run({**there, "name": "another"}, tmp_path / "out2", workers=workers)
    assert second == first
    assert tree(tmp_path / "out") == tree(tmp_path / "out2")


def test_detected_and_given_classes_make_the_same_dataset(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    detected = changed(raw, classes=None)
    assert survey_input(IngestRecipe.of(config(detected)), locate(config(detected))).survey.classes == ("Fish", "Sugar")
    assert run(detected, tmp_path / "detected") == run(raw, tmp_path / "given")


def test_both_severstal_layouts_hold_the_same_masks(tmp_path, image_input):
    shas = set()
    for layout in ("image_label", "image_id_class_id", "image_class"):
        manifest = run(image_input(tmp_path / layout, layout=layout), tmp_path / f"{layout}.out")
        shas.add(tuple(shard.checksum for shard in manifest.shards))
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
    assert now(**copied, unlisted_images="empty") != first


def test_a_recipe_survives_json_and_holds_no_path(tmp_path, image_input):
    raw = changed(image_input(tmp_path / "in"), classes={"Sugar": 2, "Fish": 1})
    text = ingest_recipe(config(raw), ["Fish", "Sugar"])
    assert str(tmp_path) not in text
    recipe = IngestRecipe.from_json(text)
    assert recipe == IngestRecipe.of(config(raw))
    assert list(recipe.input.classes) == ["Fish", "Sugar"]
    with pytest.raises(ValueError, match="code format 99"):
        IngestRecipe.from_json(text.replace(f'"code_format":{CODE_FORMAT}', '"code_format":99'))


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
def test_flowers_are_labeled_by_their_folder(tmp_path, shared_data):
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
        "rejects": {"max_fraction": 1.0},
    }
    manifest = run(raw, tmp_path / "out")
    rows = ledger(tmp_path / "out")
    assert sorted(rows) == names
    assert manifest.totals["inputs"] == manifest.totals["written"] + manifest.totals["rejected"] == len(names)
    assert manifest.totals["written"] > 40
    # A file that tools keep next to images is no image, so this row names none.
    assert rows["desktop.ini"].code == "missing_image"
    assert all(row.reason for row in rows.values() if row.status == "rejected")


def test_a_table_that_changes_after_it_was_hashed_makes_no_dataset(image_input, tmp_path, monkeypatch):
    """The dataset would have the fingerprint of the earlier labels, and contain the later ones."""
    raw = image_input(tmp_path / "in", layout="label_csv", images=6)
    table = tmp_path / "in" / "labels.csv"
    keep_tasks = tasks.keep_tasks

    def changed_behind(*given):
        table.write_text(table.read_text().replace("Fish", "Sugar", 1))
        keep_tasks(*given)

    monkeypatch.setattr(plan, "keep_tasks", changed_behind)
    with pytest.raises(CheckFailed, match=r"labels\.csv: the file has changed while the run was reading the input"):
        run(raw, tmp_path / "ds", workers=1)
    assert not (tmp_path / "ds").exists()
    monkeypatch.undo()
    assert run(raw, tmp_path / "ds", workers=1).totals["written"] == 6


def test_images_have_the_checksum_that_is_asked_for(tmp_path, image_input):
    """Only the feature and the recipe differ; checksums of files are BLAKE3 all the same."""
    raw = image_input(tmp_path / "in")
    run({**raw, "images": {"checksum": "sha256"}}, tmp_path / "out")
    dataset = ImageDataset.open(tmp_path / "out")
    manifest = dataset.manifest
    assert (manifest.checksum, manifest.image_checksum) == ("blake3", "sha256")
    assert manifest.recipe["images"] == {"checksum": "sha256"}
    assert "image/blake3" not in manifest.features
    for _, payload in dataset.records("train"):
        example = decode_example(payload)
        (stored,) = example["image/encoded"]
        assert example["image/sha256"] == [hashlib.sha256(stored).hexdigest().encode()]
        assert "image/blake3" not in example
    assert verify(tmp_path / "out", deep=True).findings == ()
    text = render_schema(manifest.task, manifest.classes, manifest.labels, manifest.features)
    assert "image/sha256" in text
    assert "image/blake3" not in text
