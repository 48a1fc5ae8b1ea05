"""The splits that an input states are the default; a hash is for images without any, or on request."""

import json

import numpy as np
import pytest
from ingesting import config, run
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.ingest import ingest

PLACES = {"train": 10, "val": 4, "test": 4}


def draw(file, number):
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(number).integers(0, 256, (8, 9, 3), dtype=np.uint8)).save(file)


def class_folders(root, places=PLACES):
    """Images of two classes in each split: `train/cat/0.png`."""
    number = 0
    for place, count in places.items():
        for i in range(count):
            draw(root / place / ("cat", "dog")[i % 2] / f"{i}.png", number := number + 1)
    return {"task": "classification", "input": {"images": str(root)}}


def splits(out):
    dataset = ImageDataset.open(out)
    return {split: sorted(key for key, _ in dataset.records(split)) for split in dataset.splits}


def stated_by(out):
    """Which folder's images are in which split."""
    return {(split, key.split("/")[0]) for split, keys in splits(out).items() for key in keys}


@pytest.mark.parametrize(
    "places",
    [PLACES, {"Training": 9, "validation": 5}, {"train2017": 8, "val2017": 4}, {"seg_train": 8, "seg_val": 4}],
)
def test_folders_of_splits_are_splits(tmp_path, places):
    run(class_folders(tmp_path / "in", places), tmp_path / "out")
    meant = {name: name.lower().removeprefix("seg_")[:2] for name in places}
    assert {(split, meant[folder]) for split, folder in stated_by(tmp_path / "out")} <= {
        ("train", "tr"),
        ("eval", "va"),
        ("test", "te"),
    }
    assert sum(map(len, splits(tmp_path / "out").values())) == sum(places.values())


def test_images_of_a_folder_of_the_test_are_not_learned_from_without_a_question(tmp_path):
    for i in range(12):
        draw(tmp_path / "in" / ("photos", "test")[i % 3 == 0] / f"{i}.png", i)
    (tmp_path / "labels.csv").write_text("image,label\n" + "".join(f"{i}.png,{'ab'[i % 2]}\n" for i in range(12)))
    raw = {"task": "classification", "input": {"images": str(tmp_path / "in")}}
    raw["input"]["labels"] = {"path": str(tmp_path / "labels.csv")}
    with pytest.raises(UsageError, match=r"states the split of 4 images \(test 4\), and none of 8") as caught:
        run(raw, tmp_path / "out")
    taken = caught.value.readings[0].options
    run({**raw, "split": {key.partition(".")[2]: value for key, value in taken.items()}}, tmp_path / "out")
    assert stated_by(tmp_path / "out") == {("train", "photos"), ("test", "test")}


def test_a_hash_on_request_says_how_many_images_it_moves(tmp_path):
    raw = class_folders(tmp_path / "in")
    notes = []
    ingest(config({**raw, "split": {"method": "hash"}}), tmp_path / "out", quiet=True, log=notes.append)
    moved = sum(
        {"train": "train", "val": "eval", "test": "test"}[key.split("/")[0]] != split
        for split, keys in splits(tmp_path / "out").items()
        for key in keys
    )
    leaked = sum(key.startswith("test/") for key in splits(tmp_path / "out")["train"])
    assert moved
    assert leaked
    note = f"split: {moved} images are in another split than the input states, since split.method is hash"
    assert f"{note}; {leaked} of the input's test are in train" in notes


def test_a_column_of_splits_is_the_split(tmp_path):
    rows = []
    for i in range(12):
        draw(tmp_path / "in" / f"{i}.png", i)
        rows.append(f"{i}.png,{'cat' if i % 2 else 'dog'},{('train', 'val', 'test')[i % 3]}")
    (tmp_path / "labels.csv").write_text("\n".join(["image,label,Split", *rows]))
    labels = {"path": str(tmp_path / "labels.csv")}
    run({"task": "classification", "input": {"images": str(tmp_path / "in"), "labels": labels}}, tmp_path / "out")
    found = splits(tmp_path / "out")
    assert {split: {int(key[:-4]) % 3 for key in keys} for split, keys in found.items()} == {
        "train": {0},
        "eval": {1},
        "test": {2},
    }


def test_files_of_splits_are_splits(tmp_path):
    files = {}
    for number, (split, names) in enumerate({"train": range(8), "eval": range(8, 12)}.items()):
        lines = ["image,label"]
        for i in names:
            draw(tmp_path / "in" / f"{i}.png", i)
            lines.append(f"{i}.png,{'cat' if i % 2 else 'dog'}")
        (tmp_path / f"part{number}.csv").write_text("\n".join(lines))
        files[split] = str(tmp_path / f"part{number}.csv")
    raw = {"task": "classification", "input": {"images": str(tmp_path / "in"), "labels": {"path": files}}}
    run(raw, tmp_path / "out")
    assert {split: len(keys) for split, keys in splits(tmp_path / "out").items() if keys} == {"train": 8, "eval": 4}


@pytest.mark.parametrize("further", ["extra", "new/ones"])
def test_images_without_a_split_next_to_others_with_one_are_a_question(tmp_path, further):
    raw = class_folders(tmp_path / "in")
    raw["input"]["labels"] = {"format": "file_name", "regex": "/(?P<label>cat|dog)/"}
    for i in range(3):
        draw(tmp_path / "in" / further / "cat" / f"{i}.png", 100 + i)
    with pytest.raises(UsageError, match=r"states the split of 18 images .* and none of 3: ") as error:
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for number, reading in enumerate(error.value.readings):
        section = {path.removeprefix("split."): value for path, value in reading.options.items()}
        run({**raw, "split": section}, tmp_path / f"out{number}")
        found = splits(tmp_path / f"out{number}")
        assert sum(map(len, found.values())) == 21
        unlisted = section.get("unlisted_images")
        if unlisted:
            assert sum(key.startswith(further) for key in found[unlisted]) == 3
    assert len(error.value.readings) == 4


def test_official_test_images_without_a_split_of_that_name_are_a_question(tmp_path):
    raw = class_folders(tmp_path / "in")
    raw["split"] = {"ratios": {"train": 0.8, "eval": 0.2}}
    raw["evaluator"] = {"split": "eval"}
    with pytest.raises(UsageError, match=r"which belong to test, and split.ratios does not name that") as error:
        run(raw, tmp_path / "out")
    options = error.value.readings[0].options
    raw["split"] = {path.removeprefix("split."): value for path, value in options.items()}
    run(raw, tmp_path / "out")
    assert stated_by(tmp_path / "out") == {("train", "train"), ("eval", "val"), ("test", "test")}


def test_a_class_that_is_called_train_is_no_split(tmp_path):
    for number, name in enumerate(["bus", "car", "train"] * 8):
        draw(tmp_path / "in" / name / f"{number}.png", number)
    manifest = run({"task": "classification", "input": {"images": str(tmp_path / "in")}}, tmp_path / "out")
    assert manifest.classes == ("bus", "car", "train")
    assert len({folder for split, folder in stated_by(tmp_path / "out") if split == "train"}) == 3


def test_splits_that_annotations_state_are_the_default(tmp_path):
    document = {"version": 1}
    del document
    images = "".join(
        f'<image id="{i}" name="{i}.png" subset="{"Train" if i < 8 else "Validation"}" width="9" height="8">'
        '<polygon label="cat" points="1,1;6,1;6,6;1,6"/></image>'
        for i in range(12)
    )
    for i in range(12):
        draw(tmp_path / "in" / f"{i}.png", i)
    (tmp_path / "cvat.xml").write_text(f"<annotations><version>1.1</version>{images}</annotations>")
    run({"input": {"images": str(tmp_path / "in"), "labels": {"path": str(tmp_path / "cvat.xml")}}}, tmp_path / "out")
    assert {split: len(keys) for split, keys in splits(tmp_path / "out").items() if keys} == {"train": 8, "eval": 4}
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["totals"]["written"] == 12
