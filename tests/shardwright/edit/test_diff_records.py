"""`diff` compares all that a record holds: ignored pixels, boxes, captions, the order of classes, any feature."""

import shutil

import numpy as np
import pytest

from shardwright.dataset.reader import ImageDataset
from shardwright.edit.diff_datasets import find_differences
from shardwright.masks import rle
from shardwright.pipelines.cli import main
from shardwright.tfrecords.encode import byte_strings, floats, ints
from shardwright.tfrecords.records import decode_example

KEY = "eval/0000"


def square(size):
    mask = np.zeros((24, 36), np.uint8)
    mask[:size, :size] = 1
    return ints(rle.encode(mask).reshape(-1))


def whole(number, example):
    """A record with all that records may hold."""
    return example | {
        "image/segmentation/ignore/rle": square(4),
        "image/segmentation/ignore/area": 16,
        "image/object/bbox/xmin": floats([0.25, 0.5]),
        "image/object/class/label": ints([1, 2]),
        "image/object/class/text": byte_strings([b"Fish", b"Sugar"]),
        "image/object/difficult": ints([0, 1]),
        "image/caption/text": byte_strings([b"a fish", b"two fish"]),
        "image/meta/depth": 3,
        "image/meta/score": floats([float("nan")]),
    }


def changed(name, value):
    def change(number, example):
        return whole(number, example) | ({name: value} if example["image/key"] == KEY.encode() else {})

    return change


@pytest.fixture(scope="module")
def one(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("one"), counts={"train": [2], "eval": [2]}, change=whole)


@pytest.mark.parametrize(
    ("name", "value", "after"),
    [
        ("image/object/bbox/xmin", floats([0.25, 0.75]), "0.25, 0.75"),
        ("image/object/class/label", ints([2, 2]), "2, 2"),
        ("image/object/difficult", ints([1, 1]), "1, 1"),
        ("image/caption/text", byte_strings([b"two fish", b"a fish"]), "two fish, a fish"),
        ("image/caption/text", byte_strings([]), "none"),
        ("image/meta/depth", 4, "4"),
        ("image/filename", b"other.png", "other.png"),
        ("image/blake3", b"0" * 64, "0000"),
        ("image/orientation", 6, "6"),
    ],
)
def test_any_feature_of_a_record(one, small_dataset, tmp_path, name, value, after):
    other = small_dataset(tmp_path, counts={"train": [2], "eval": [2]}, change=changed(name, value))
    found = find_differences(ImageDataset.open(one), ImageDataset.open(other))
    assert found.counts == {"features": 1}
    assert found.features == {name: 1}
    (row,) = found.rows
    assert (row.key, row.way) == (KEY, "features")
    assert row.before.startswith(f"{name}: ")
    assert row.after.startswith(f"{name}: {after}")


def test_ignored_pixels(one, small_dataset, tmp_path, capsys):
    change = changed("image/segmentation/ignore/rle", square(2))
    other = small_dataset(tmp_path, counts={"train": [2], "eval": [2]}, change=change)
    assert main(["diff", str(one), str(other)]) == 1
    out = capsys.readouterr().out
    assert f"masks      1\n  {KEY}: ignore: IoU 0.2500" in out
    assert "no difference" not in out


def test_the_same_is_no_difference(one, tmp_path, capsys):
    other = shutil.copytree(one, tmp_path / "other")
    assert main(["diff", str(one), str(other), "--html", str(tmp_path / "d.html")]) == 0
    assert "no difference" in capsys.readouterr().out


def test_order_and_repeats_of_classes(small_dataset, tmp_path):
    def labeled(labels):
        texts = [[b"a", b"b"][label] for label in labels]
        return lambda number, example: (
            example | {"image/class/label": ints(labels), "image/class/text": byte_strings(texts)}
        )

    roots = [
        small_dataset(
            tmp_path / str(number),
            task="classification",
            classes=("a", "b"),
            counts={"train": [1]},
            change=labeled(labels),
        )
        for number, labels in enumerate(([0, 1, 0], [1, 0, 0], [1, 0]))
    ]
    one, other, fewer = map(ImageDataset.open, roots)
    assert find_differences(one, other).counts == {"relabeled": 1}
    assert find_differences(one, other).labels == {"a, b, a -> b, a, a": 1}
    assert find_differences(other, fewer).counts == {"relabeled": 1}


def test_features_that_only_one_dataset_stores(one, small_dataset, tmp_path, capsys):
    other = small_dataset(tmp_path, counts={"train": [2], "eval": [2]})
    found = find_differences(ImageDataset.open(other), ImageDataset.open(one))
    assert found.only[0] == []
    assert {"image/caption/text", "image/object/bbox/xmin", "image/meta/depth"} <= set(found.only[1])
    assert main(["diff", str(other), str(one), "--html", str(tmp_path / "d.html")]) == 1
    assert "features only in the second: image/caption/text" in capsys.readouterr().out
    assert "image/caption/text" in (tmp_path / "d.html").read_text()


def test_classes_in_another_order_are_the_same(small_dataset, tmp_path):
    names = ("Fish", "Sugar")

    def swapped(number, example):
        example = whole(number, example)
        example["image/object/class/label"] = ints([2, 1])
        present = [name for name in reversed(names) if example[f"image/segmentation/{name}/area"]]
        numbers = [names[::-1].index(name) for name in present]
        return example | {
            "image/class/label": ints(numbers),
            "image/class/text": byte_strings([name.encode() for name in present]),
        }

    counts = {"train": [3]}
    one = small_dataset(tmp_path / "one", counts=counts, change=whole)
    again = {}
    for key, payload in ImageDataset.open(one).records("train"):
        again[key] = decode_example(payload)

    def taken(number, example):
        key = example["image/key"].decode()
        return {
            **swapped(number, example),
            **{name: ints(again[key][name]) for name in again[key] if name.endswith(("/rle", "/area"))},
        }

    other = small_dataset(tmp_path / "other", counts=counts, classes=names[::-1], change=taken)
    found = find_differences(ImageDataset.open(one), ImageDataset.open(other))
    assert (found.counts, found.only) == ({}, ([], []))
