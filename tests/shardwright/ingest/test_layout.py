"""Shards and features of an ingest: names, balance, hosts, presets, in whole datasets."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from ingesting import config, examples, ledger, run, tree

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError
from shardwright.tfrecords.records import decode_example, read_records
from shardwright.verify import verify


def _records(root, path):
    return [decode_example(data) for _, data in read_records(Path(root, path))]


def test_shards_are_named_by_the_records_they_really_have(tmp_path, image_input):
    raw = image_input(tmp_path, layout="label_csv")
    # A shard is planned with this image, and written without it.
    (tmp_path / "images/007.jpg").write_bytes(b"\xff\xd8\xff")
    raw["shards"] = {"records": 5, "filename_template": "{split}{index:02d}-of{of}-{count}.tfrec"}
    run(raw, tmp_path / "out")
    dataset = ImageDataset.open(tmp_path / "out")
    assert sum(shard.records for shard in dataset.manifest.shards) == 23
    for shard in dataset.manifest.shards:
        split, of, count = re.fullmatch(r"Split-(\w+)/\w+\d\d-of(\d+)-(\d+)\.tfrec", shard.path).groups()
        assert (split, int(count)) == (shard.split, shard.records)
        assert int(of) == len(dataset.shards(split))
        assert len(_records(tmp_path / "out", shard.path)) == shard.records
    on_disk = {p.relative_to(tmp_path / "out").as_posix() for p in tmp_path.glob("out/Split-*/*")}
    assert on_disk == {shard.path for shard in dataset.manifest.shards}
    assert set(dataset.manifest.parts) - {"ledger/part-00000-of-00001.jsonl"} == {
        f"{folder}/{path[:-6]}.{kind}" for path in on_disk for folder, kind in (("index", "jsonl"), ("facts", "json"))
    }
    assert len(examples(tmp_path / "out")) == 23
    assert ledger(tmp_path / "out")["007.jpg"].code == "truncated"


def test_names_change_no_record(tmp_path, image_input):
    raw = image_input(tmp_path)
    run(raw, tmp_path / "plain")
    run({**raw, "shards": {**raw["shards"], "filename_template": "{index}.rec"}}, tmp_path / "named")
    plain, named = (sorted(tree(tmp_path / out).items()) for out in ("plain", "named"))
    contents = [sorted(digest for path, digest in found if "Split-" in path) for found in (plain, named)]
    assert contents[0] == contents[1]


def test_a_resumed_run_gives_the_same_names(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path)
    raw["shards"] = {"records": 5, "filename_template": "{index}-{count}.rec"}
    run(raw, tmp_path / "out")
    from shardwright.ingest import run_ingest as running

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "commit_ingest", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(raw, tmp_path / "again")
    monkeypatch.undo()
    run(raw, tmp_path / "again")
    assert tree(tmp_path / "out") == tree(tmp_path / "again")


def test_balanced_shards_hold_every_class_equally_often_in_the_order_of_the_split(tmp_path, image_input):
    raw = image_input(tmp_path, layout="label_csv", images=60)
    raw["split"] = {"ratios": {"train": 0.7, "eval": 0.2, "test": 0.1}}
    raw["shards"] = {"count": 4}
    run(raw, tmp_path / "plain")
    raw["shards"] = {"count": 4, "balance": "class"}
    run(raw, tmp_path / "balanced")
    plain, balanced = (ImageDataset.open(tmp_path / out) for out in ("plain", "balanced"))
    for split in balanced.splits:
        counts = []
        place = {key: i for i, (key, _) in enumerate(plain.records(split))}
        for shard in balanced.shards(split):
            records = _records(balanced.root, shard.path)
            counts.append(Counter(int(record["image/class/label"][0]) for record in records))
            order = [place.pop(record["image/key"][0].decode()) for record in records]
            assert order == sorted(order)
        assert not place
        for label in (0, 1):
            assert max(c[label] for c in counts) - min(c[label] for c in counts) <= 1
        assert max(c.total() for c in counts) - min(c.total() for c in counts) <= 1


def test_masks_are_balanced_by_the_set_of_classes_that_an_image_shows(tmp_path, image_input):
    raw = image_input(tmp_path, images=60)
    raw["shards"] = {"count": 3, "balance": "class"}
    run(raw, tmp_path / "out")
    dataset = ImageDataset.open(tmp_path / "out")
    shown = [
        Counter(tuple(record["image/class/label"]) for record in _records(dataset.root, shard.path))
        for shard in dataset.shards("train")
    ]
    assert len(shown) == 3
    for classes in {*shown[0], *shown[1], *shown[2]}:
        held = [counter[classes] for counter in shown]
        assert max(held) - min(held) <= 1


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"filename_template": "{split}.rec"}, "shards.filename_template"),
        ({"filename_template": "{index}.gz"}, "shards.filename_template"),
        ({"hosts": 0}, "shards.hosts"),
        ({"hosts": 4, "count": 4}, "shards.hosts"),
        ({"hosts": 4, "records": 4}, "shards.hosts"),
        ({"balance": "label"}, "shards.balance"),
    ],
)
def test_nonsense_about_shards_is_refused(section, message):
    with pytest.raises(ConfigError, match=message):
        config({"input": {"images": "x"}, "shards": section})


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"preset": "coco"}, "features.preset"),
        ({"map": {"image/key": ""}}, "features.map.image/key"),
        ({"map": {"image/key": "a\nb"}}, "features.map.image/key"),
    ],
)
def test_nonsense_about_features_is_refused(section, message):
    with pytest.raises(ConfigError, match=message):
        config({"input": {"images": "x"}, "features": section})


def test_unknown_names_and_collisions_end_an_ingest_before_it_writes(tmp_path, image_input):
    raw = image_input(tmp_path)
    for renamed in ({"image/segmentation/Bird/rle": "bird"}, {"image/key": "image/filename"}):
        with pytest.raises(ConfigError, match="features.map"):
            run({**raw, "features": {"map": renamed}}, tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


def test_the_manifest_has_the_names_of_features(tmp_path, image_input):
    raw = image_input(tmp_path, layout="label_csv")
    run(raw, tmp_path / "plain")
    assert ImageDataset.open(tmp_path / "plain").manifest.names == {}
    raw["features"] = {"preset": "kaggle_flowers", "map": {"image/blake3": "sha256"}}
    manifest = run(raw, tmp_path / "out")
    assert manifest.recipe["features"] == raw["features"]
    assert manifest.names == {
        "image/class/label": "class",
        "image/class/text": "label",
        "image/encoded": "image",
        "image/key": "id",
        "image/blake3": "sha256",
    }
    record = _records(tmp_path / "out", manifest.shards[0].path)[0]
    assert set(record) == set(manifest.features)
    kinds = {name: "bytes" if isinstance(values, list) else values.dtype.name for name, values in record.items()}
    assert kinds == manifest.features
    assert record["one_hot_class"].argmax() == record["class"][0]


def test_rle_text_stores_the_text_of_the_table(tmp_path, image_input):
    raw = image_input(tmp_path)
    raw["features"] = {"preset": "rle_text"}
    run(raw, tmp_path / "out")
    rows = dict(line.split(",") for line in (tmp_path / "labels.csv").read_text().splitlines()[1:])
    found = examples(tmp_path / "out")
    assert len(found) == 24
    for key, record in found.items():
        for name in ("Fish", "Sugar"):
            assert record[f"image/segmentation/{name}/rle_text"] == [rows[f"{key}_{name}"].encode()]
            assert f"image/segmentation/{name}/rle" not in record


def test_rle_text_writes_the_usual_dialect_where_masks_are_no_run_lengths(tmp_path, image_input):
    raw = image_input(tmp_path, images=3)
    polygon = {"segmentation": [[2, 3, 8, 3, 8, 9, 2, 9]], "image_id": 1, "category_id": 1, "id": 1, "iscrowd": 0}
    coco = {
        "images": [{"id": i, "file_name": f"00{i}.jpg", "height": 20 + i, "width": 30} for i in range(3)],
        "annotations": [polygon],
        "categories": [{"id": 1, "name": "Fish"}, {"id": 2, "name": "Sugar"}],
    }
    (tmp_path / "labels.json").write_text(json.dumps(coco))
    raw["input"]["labels"] = {"path": str(tmp_path / "labels.json")}
    run(raw, tmp_path / "plain")
    run({**raw, "features": {"preset": "rle_text"}}, tmp_path / "text")
    plain, text = examples(tmp_path / "plain"), examples(tmp_path / "text")
    runs = plain["001.jpg"]["image/segmentation/Fish/rle"].reshape(-1, 2) + np.array([1, 0])
    assert len(runs)
    assert text["001.jpg"]["image/segmentation/Fish/rle_text"] == [" ".join(map(str, np.ravel(runs))).encode()]
    assert text["002.jpg"]["image/segmentation/Fish/rle_text"] == [b""]


@pytest.mark.parametrize(
    ("features", "deep"),
    [
        ({"preset": "tfds"}, False),
        ({"preset": "kaggle_flowers", "map": {"image/blake3": "hash"}}, True),
        ({"map": {"image/blake3": "image/key", "image/key": "image/blake3"}}, True),
    ],
)
def test_datasets_under_other_names_can_be_verified(tmp_path, image_input, features, deep):
    raw = image_input(tmp_path, layout="label_csv")
    raw |= {"features": features, "shards": {"records": 7, "filename_template": "{split}{index:02d}-{count}.tfrec"}}
    run(raw, tmp_path / "out")
    report = verify(tmp_path / "out", deep=deep)
    assert (report.findings, report.records) == ((), 24)
    shard = next(tmp_path.glob("out/Split-train/train00-*.tfrec"))
    index = json.loads(
        (tmp_path / "out/index/Split-train" / shard.name).with_suffix(".jsonl").read_text().splitlines()[0]
    )
    damaged = bytearray(shard.read_bytes())
    damaged[100] ^= 1
    shard.write_bytes(damaged)
    assert {finding.key for finding in verify(tmp_path / "out").findings if finding.record == 0} == {index["key"]}
