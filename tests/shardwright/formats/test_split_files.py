"""Annotations in one file for each split: lists, globs and mappings; nothing is read twice or mixed up."""

import json
import shutil

import layouts
import pytest
import yaml
from ingesting import changed, examples, ledger, run

from shardwright.config import load_config
from shardwright.config.yaml_config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, UsageError
from shardwright.ingest import ingest
from shardwright.pipelines.cli import main

SQUARE = [[2, 3, 12, 3, 12, 11, 2, 11]]


def coco(file, names, classes=("car", "road"), first=0):
    """Each file numbers its images and categories anew."""
    document = {
        "images": [{"id": i, "file_name": name, "height": 24, "width": 40} for i, name in enumerate(names)],
        "annotations": [
            {
                "id": i,
                "image_id": i,
                "category_id": first + i % len(classes),
                "segmentation": SQUARE,
                "bbox": [2, 3, 10, 8],
            }
            for i in range(len(names))
        ],
        "categories": [{"id": first + i, "name": name} for i, name in enumerate(classes)],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def roboflow(root):
    """A folder for each split with images and a file; images of two splits have one name."""
    for number, split in enumerate(("train", "valid", "test")):
        for i in range(4):
            layouts.image(root / split / f"i{i}.jpg", 4 * number + i)
        coco(root / split / "_annotations.coco.json", [f"i{i}.jpg" for i in range(4)])


def of_coco(root):
    """Folders and files with the year in their names."""
    for number, split in enumerate(("train2017", "val2017")):
        for i in range(4):
            layouts.image(root / split / f"i{i}.jpg", 4 * number + i)
        coco(root / f"annotations/instances_{split}.json", [f"i{i}.jpg" for i in range(4)], first=5 * number)


def counts(root):
    dataset = ImageDataset.open(root)
    return {split: len(dict(dataset.records(split))) for split in dataset.splits}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("draw", "path", "splits"),
    [
        (roboflow, "data/*/_annotations.coco.json", {"train": 4, "eval": 4, "test": 4}),
        (of_coco, "data/annotations/instances_*.json", {"train": 4, "eval": 4}),
    ],
)
def test_init_reads_the_files_of_all_splits_together(here, draw, path, splits):
    draw(here / "data")
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    labels = yaml.safe_load((here / "c.yaml").read_text())["input"]["labels"]
    assert f"{labels['path']}/{labels['files']['*']}" == path
    config = load_config("c.yaml")
    manifest = ingest(config, here / "out", quiet=True)
    assert manifest.totals["rejected"] == 0
    assert manifest.classes == ("car", "road")
    assert counts(here / "out") == splits
    for key, example in examples(here / "out").items():
        name = ("car", "road")[int(key[-5]) % 2]
        assert example[f"image/segmentation/{name}/area"] == [80], key


@pytest.mark.parametrize(
    "path",
    [
        ["annotations/instances_train2017.json", "annotations/instances_val2017.json"],
        {"train": "annotations/instances_train2017.json", "eval": "annotations/instances_val2017.json"},
        "annotations/instances_*2017.json",
    ],
)
def test_a_list_a_mapping_and_a_glob_mean_the_same(tmp_path, path):
    of_coco(tmp_path / "data")

    def absolute(one):
        return str(tmp_path / "data" / one)

    whole = (
        list(map(absolute, path))
        if isinstance(path, list)
        else absolute(path)
        if isinstance(path, str)
        else {split: absolute(one) for split, one in path.items()}
    )
    source = {"images": str(tmp_path / "data"), "labels": {"path": whole}}
    split = {"method": "predefined", "ratios": {"train": 0.5, "eval": 0.5}}
    run({"input": source, "split": split, "evaluator": {"split": "eval"}}, tmp_path / "out")
    assert counts(tmp_path / "out") == {"train": 4, "eval": 4}


def test_a_split_of_the_mapping_counts_more_than_the_name_of_the_file(tmp_path):
    of_coco(tmp_path / "data")
    files = {"train": "instances_val2017.json", "eval": "instances_train2017.json"}
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(tmp_path / "data/annotations"), "files": files}}
    coco(tmp_path / "data/annotations/instances_val2017.json", [f"val2017/i{i}.jpg" for i in range(4)])
    coco(tmp_path / "data/annotations/instances_train2017.json", [f"train2017/i{i}.jpg" for i in range(4)])
    split = {"method": "predefined", "ratios": {"train": 0.5, "eval": 0.5}}
    run({"input": source, "split": split, "evaluator": {"split": "eval"}}, tmp_path / "out")
    keys = {key for key, _ in ImageDataset.open(tmp_path / "out").records("train")}
    assert keys == {f"val2017/i{i}.jpg" for i in range(4)}


def test_classes_are_those_of_all_files(tmp_path):
    of_coco(tmp_path / "data")
    coco(tmp_path / "data/annotations/instances_val2017.json", [f"i{i}.jpg" for i in range(4)], ("tree", "car"))
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(tmp_path / "data/annotations/*.json")}}
    with pytest.raises(UsageError, match="has the classes tree, and the files of train have car, road") as asked:
        run({"input": source}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (answer,) = (reading.options["input.classes"] for reading in asked.value.readings)
    manifest = run({"input": {**source, "classes": answer}}, tmp_path / "out")
    assert manifest.classes == ("car", "road", "tree")
    found = examples(tmp_path / "out")
    assert found["val2017/i0.jpg"]["image/class/text"] == [b"tree"]
    assert found["train2017/i1.jpg"]["image/class/text"] == [b"road"]


def test_tables_are_read_together(tmp_path):
    for number, split in enumerate(("train", "val")):
        for i in range(4):
            layouts.image(tmp_path / "data" / split / f"{split}{i}.jpg", 4 * number + i)
        rows = [f"{split}{i}.jpg,{layouts.CLASSES[i % 2]}" for i in range(4)]
        layouts.lines(tmp_path / f"{split}.csv", "image,label", *rows)
    labels = {"path": {"train": str(tmp_path / "train.csv"), "val": str(tmp_path / "val.csv")}}
    raw = {"task": "classification", "input": {"images": str(tmp_path / "data"), "labels": labels}}
    assert run(raw, tmp_path / "out").totals["written"] == 8
    # The content of every file is part of the fingerprint.
    text = (tmp_path / "val.csv").read_text()
    (tmp_path / "val.csv").write_text(text.replace("val0.jpg,car", "val0.jpg,road"))
    with pytest.raises(UsageError, match="out"):
        run(raw, tmp_path / "out")


def test_an_image_in_two_files_is_rejected(tmp_path):
    of_coco(tmp_path / "data")
    shutil.copy(tmp_path / "data/train2017/i0.jpg", tmp_path / "data/x.jpg")
    layouts.image(tmp_path / "data/x.jpg", 40)
    for split in ("train2017", "val2017"):
        coco(tmp_path / f"data/annotations/instances_{split}.json", ["i1.jpg", "x.jpg"])
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(tmp_path / "data/annotations/*.json")}}
    run({"input": {**source, "unlisted_images": "reject"}}, tmp_path / "out")
    row = ledger(tmp_path / "out")["x.jpg"]
    assert row.code == "annotated_twice"
    assert row.reason == "instances_train2017.json and instances_val2017.json both annotate it"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"path": []}, "names no file"),
        ({"path": [5]}, "input.labels.path"),
        ({"path": ["/a/x.json", "/b/y.json"]}, "no folder in common"),
        ({"path": ["a.json"], "files": {"b": "b.json"}}, "input.labels.files: given"),
        ({"path": "a", "files": {"b": "../b.json"}}, "does not lead to a file below"),
        ({"path": "a", "files": {"b": "/b.json"}}, "does not lead to a file below"),
        ({"files": {"b": "b.json"}}, "needs the folder"),
        ({"path": ["a", "b"], "format": "mask_images"}, "mask_images is not in several files"),
    ],
)
def test_what_names_no_files_is_refused(labels, message):
    with pytest.raises(ConfigError, match=message):
        parse_config({"input": {"images": "x", "labels": labels}}, base="/")


def test_files_of_two_formats_are_refused(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    coco(tmp_path / "in/b.json", ["000.jpg"])
    labels = {"path": [str(tmp_path / "in/labels.csv"), str(tmp_path / "in/b.json")]}
    with pytest.raises(UsageError, match=r"b\.json is coco_json, and labels\.csv is rle_csv|labels.csv is rle_csv"):
        run(changed(raw, labels=labels), tmp_path / "out")


def test_a_glob_without_files_is_refused(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    with pytest.raises(UsageError, match=r"input\.labels\.path: .*matches no file|input\.labels\.path"):
        run(changed(raw, labels={"path": str(tmp_path / "in/*.json")}), tmp_path / "out")
