"""`stats` and `diff`: every figure and every difference against datasets whose content is known."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from damage import name_indexes
from ingesting import ledger, run

from shardwright.dataset.reader import ImageDataset
from shardwright.display.histograms import Histogram, Scale, plain_number
from shardwright.edit.diff_datasets import find_differences
from shardwright.masks import rle
from shardwright.pipelines.cards import _images
from shardwright.pipelines.cli import main
from shardwright.pipelines.commands.stats import _lines, figures_of
from shardwright.tfrecords.encode import ints


@pytest.fixture(scope="module")
def one(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("one"), counts={"train": [6], "eval": [3]})


def halved(number, example):
    """The first image has another mask, the second is brighter, the third has another class."""
    key = example["image/key"].decode()
    if key == "eval/0000":
        mask = np.zeros((24, 36), np.uint8)
        mask[:12] = 1
        runs = rle.encode(mask)
        example |= {"image/segmentation/Fish/rle": ints(runs.reshape(-1)), "image/segmentation/Fish/area": 432}
    if key == "eval/0001":
        example["image/encoded"] = example["image/encoded"] + b" "
    if key == "eval/0002":
        example["image/class/label"] = ints([])
    if key == "train/0008":
        example["image/key"] = b"train/new"
    return example


def test_a_page_goes_to_this_machine(one, tmp_path, capsys):
    other = shutil.copytree(one, tmp_path / "other")
    for place, output in (
        ("gs://bucket/d.html", "written to this machine"),
        (f"{one}/d.html", "is inside the dataset"),
        (f"{other}/d.html", "is inside the dataset"),
    ):
        assert main(["diff", str(one), str(other), "--html", place]) == 2
        assert output in capsys.readouterr().err


def test_no_difference(one, capsys):
    assert main(["diff", str(one), str(one)]) == 0
    assert "9 images in both, 9 in the first, 9 in the second\nno difference" in capsys.readouterr().out


def test_another_order_of_the_classes_is_a_difference(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=6)
    classes = list(run(raw, tmp_path / "one", workers=1).classes)
    raw["input"]["classes"] = classes[::-1]
    run(raw, tmp_path / "other", workers=1)
    call = ["diff", str(tmp_path / "one"), str(tmp_path / "other")]
    assert main(call) == 1
    expected = f"classes, whose order gives their numbers: {', '.join(classes)} -> {', '.join(classes[::-1])}"
    assert expected in capsys.readouterr().out
    assert main([*call, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["classes"] == {"first": classes, "second": classes[::-1]}


def test_every_kind_of_difference(one, small_dataset, tmp_path, capsys):
    other = small_dataset(tmp_path, counts={"train": [7], "eval": [3]}, change=halved)
    code = main(["diff", str(one), str(other), "--json", "--html", str(tmp_path / "d.html")])
    result = json.loads(capsys.readouterr().out)
    assert code == 1
    assert result["images"] == {"both": 9, "first": 9, "second": 10}
    assert result["counts"]["added"] == result["counts"]["changed"] == 1
    rows = {(row["key"], row["way"]): row for row in result["rows"]}
    assert ("train/0009", "added") in rows
    assert ("eval/0001", "changed") in rows
    assert rows["eval/0002", "relabeled"]["after"] == "none"
    before = ImageDataset.open(one)
    (key, payload), *_ = before.records("eval")
    assert key == "eval/0000"
    from shardwright.tfrecords.records import decode_example

    fish = rle.draw(rle.from_flat(decode_example(payload)["image/segmentation/Fish/rle"]), 24, 36)
    new = np.zeros((24, 36), np.uint8)
    new[:12] = 1
    assert rows["eval/0000", "masks"]["iou"] == pytest.approx((fish & new).sum() / (fish | new).sum(), abs=1e-6)
    assert result["iou"] == rows["eval/0000", "masks"]["iou"]
    page = (tmp_path / "d.html").read_text()
    assert "Images whose masks differ" in page
    assert "<script" not in page
    back = find_differences(ImageDataset.open(other), before)
    assert back.counts["removed"] == 1
    assert back.images == (9, 10, 9)
    assert main(["diff", str(one), str(other)]) == 1
    assert "added      1\n  train/0009: train" in capsys.readouterr().out


def test_damage_of_either_is_named(one, tmp_path, capsys):
    shutil.copytree(one, tmp_path / "ds")
    dataset = ImageDataset.open(tmp_path / "ds")
    shard = dataset.shards("train")[0]
    key, offset = next(dataset.entries(shard))
    data = bytearray(Path(shard.file).read_bytes())
    data[offset + 40] ^= 1
    Path(shard.file).write_bytes(data)
    for pair in ((tmp_path / "ds", one), (one, tmp_path / "ds")):
        assert main(["diff", *map(str, pair)]) == 1
        assert str(tmp_path / "ds") in capsys.readouterr().err
    assert main(["diff", str(tmp_path / "ds"), str(one)]) == 1
    assert f"at offset {offset}: the record of {key!a} cannot be read, or is damaged" in capsys.readouterr().err
    Path(shard.file).write_bytes(Path(ImageDataset.open(one).shards("train")[0].file).read_bytes())
    # An index that calls two records by one name.
    lines = shard.index_file.read_text().splitlines(keepends=True)
    twice = json.loads(lines[1]) | {"key": key}
    shard.index_file.write_text("".join([lines[0], json.dumps(twice) + "\n", *lines[2:]]))
    name_indexes(tmp_path / "ds")
    assert main(["diff", str(one), str(tmp_path / "ds")]) == 1
    assert "is named twice by an index" in capsys.readouterr().err


def test_moved_images(image_input, tmp_path):
    raw = image_input(tmp_path / "in", layout="label_csv", images=20)
    run(raw, tmp_path / "one", workers=1)
    run({**raw, "split": {"ratios": {"train": 0.4, "eval": 0.3, "test": 0.3}}}, tmp_path / "other", workers=1)
    found = find_differences(ImageDataset.open(tmp_path / "one"), ImageDataset.open(tmp_path / "other"))
    before, after = ledger(tmp_path / "one"), ledger(tmp_path / "other")
    moved = {key for key, row in before.items() if after[key].split != row.split}
    assert moved
    assert {row.key for row in found.rows} == moved
    back = find_differences(ImageDataset.open(tmp_path / "other"), ImageDataset.open(tmp_path / "one"))
    assert found.counts == back.counts == {"moved": len(moved)}
    # Renamed images of the same bytes are neither new nor gone, and are compared.
    table = tmp_path / "in" / "labels.csv"
    label = re.search(r"00(3.jpg,)(\w+)", table.read_text())
    text = table.read_text().replace(label[0], f"00{label[1]}{'Sugar' if label[2] == 'Fish' else 'Fish'}")
    table.write_text(text.replace("\n00", "\nzoo/00"))
    (tmp_path / "in/images/zoo").mkdir()
    for number in range(10):
        (tmp_path / f"in/images/00{number}.jpg").rename(tmp_path / f"in/images/zoo/00{number}.jpg")
    (tmp_path / "in/images/019.jpg").write_bytes(b"broken")
    run({**raw, "rejects": {"max_fraction": 0.1}}, tmp_path / "renamed", workers=1)
    found = find_differences(ImageDataset.open(tmp_path / "one"), ImageDataset.open(tmp_path / "renamed"))
    after = ledger(tmp_path / "renamed")
    moved = {f"zoo/00{n}.jpg" for n in range(10) if after[f"zoo/00{n}.jpg"].split != before[f"00{n}.jpg"].split}
    assert found.images == (19, 20, 19)
    assert found.counts == {"renamed": 10, "moved": len(moved), "relabeled": 1, "removed": 1}
    # An image that was not written has its reason.
    place, reason = before["019.jpg"].split, "rejected (not_an_image)"
    assert found.rows[0] == ("019.jpg", "removed", place, reason, None)
    back = find_differences(ImageDataset.open(tmp_path / "renamed"), ImageDataset.open(tmp_path / "one"))
    assert back.rows[0] == ("019.jpg", "added", reason, place, None)
    assert {(row.key, row.before) for row in found.rows if row.way == "renamed"} == {
        (f"zoo/00{number}.jpg", f"00{number}.jpg") for number in range(10)
    }
    assert {row.key for row in found.rows if row.way == "moved"} == moved != set()
    assert [row.key for row in found.rows if row.way == "relabeled"] == ["zoo/003.jpg"]


def test_stats(one, capsys):
    assert main(["stats", str(one), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["images"] == {"eval": 3, "train": 6}
    assert result["sizes"] == {"24x36": 9}
    assert result["formats"] == {"png": 9}
    assert result["measured"] == {"images": 9, "of": 9}
    assert result["measures"]["brightness"]["count"] == 9
    assert result["classes"]["Fish"]["train"] <= 6
    assert main(["stats", str(one)]) == 0
    text = capsys.readouterr().out
    assert "images        9 (eval 3, train 6)" in text
    assert "sizes         24x36 9" in text
    assert "pixels        mean 864, middle half 864 to 864; of 9 images" in text
    assert "near groups not searched for" in text


def collected(sizes=(), covered=()):
    """A dataset of one class as `stats` reads it, with the images of each size, and parts that masks cover."""
    cover = Histogram("coverage/0", Scale(1e-6, 1, log=True))
    cover.add("train", covered)
    manifest = SimpleNamespace(task="segmentation", classes=("Fish",), fingerprint="f", totals={}, shards=[])
    found = SimpleNamespace(
        dataset=SimpleNamespace(manifest=manifest), histograms={"coverage/0": cover}, images={"train": 60},
        unlabeled={}, sizes=Counter(dict(sizes)), formats={}, measured=60, total=60, class_count=lambda label, split: 5,
    )  # fmt: skip
    return found, SimpleNamespace(exact=0, near=None, leaks=0, conflicts=0)


def test_sizes_that_are_not_listed_are_counted():
    figures = figures_of(collected({(height, 9): 5 for height in range(10, 22)} | {None: 3}))
    assert (len(figures["sizes"]), figures["further_sizes"]) == (10, {"sizes": 2, "images": 13})
    ends = "18x9 5, 19x9 5; 2 further sizes of 13 images"
    assert _lines(figures)[2].endswith(ends)
    assert any(f"{ends}." in paragraph for paragraph in _images(figures))
    figures = figures_of(collected({(10, 9): 60}))
    assert figures["further_sizes"] == {"sizes": 0, "images": 0}
    assert _lines(figures)[2].endswith("10x9 60")


def test_the_part_of_a_single_pixel_is_not_zero():
    figures = figures_of(collected(covered=[1 / 2_940_000] * 5))
    assert figures["classes"]["Fish"]["mask_part"] == 3.40136e-07
    assert _lines(figures)[4].endswith("masks cover 3.4e-05 % of these images")


def test_large_figures_are_written_out():
    assert [plain_number(value) for value in (0.04, 12.3456, 999.94, 40_000.4, 2_940_000)] == [
        "0.04",
        "12.35",
        "999.9",
        "40,000",
        "2,940,000",
    ]


def test_what_is_no_dataset(tmp_path, capsys):
    for command in (["stats", str(tmp_path)], ["diff", str(tmp_path), str(tmp_path)]):
        assert main(command) == 1
        assert "no manifest.json" in capsys.readouterr().err
