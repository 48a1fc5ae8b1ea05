"""Looking at datasets, files and records: whole, foreign, damaged and hostile ones."""

import gzip
import re

import build
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import find_feature, frame
from shardwright.verify.describe import draw, record_of_file, view_dataset, view_file, view_record


def shard(tmp_path, payloads, name="a.tfrecord"):
    file = tmp_path / name
    file.write_bytes(b"".join(map(frame, payloads)))
    return str(file)


def test_a_dataset_is_described_by_its_manifest(dataset):
    view = view_dataset(str(dataset))
    assert (view.kind, view.task, view.labels, view.classes) == ("ingest", "segmentation", "masks", ("Fish", "Sugar"))
    assert [(s.name, s.records, s.shards, s.least, s.most) for s in view.splits] == [
        ("eval", 2, 1, 2, 2),
        ("train", 5, 2, 2, 3),
    ]
    assert view.features["image/encoded"] == "bytes"
    assert view.totals["written"] == 7


def test_a_half_written_dataset_is_refused(dataset):
    (dataset / "manifest.json").unlink()
    with pytest.raises(DatasetError, match=r"no manifest\.json, so it is not a finished dataset"):
        view_dataset(str(dataset))


def test_a_file_is_walked_to_its_end(dataset):
    view = view_file(str(dataset / "Split-train" / "data-00000-of-00002.tfrecord"))
    assert (view.records, view.looked_into, view.damaged, view.others, view.compressed) == (3, 3, 0, [], False)
    encoded = view.features["image/encoded"]
    assert (encoded.kinds, encoded.records, encoded.least, encoded.most) == (("bytes",), 3, 1, 1)
    assert encoded.shown == "png 24 x 36, 3 channels"
    assert encoded.largest > 100


def test_features_that_come_and_go_have_ranges(tmp_path):
    file = shard(
        tmp_path, [encode_example({"a": 1}), encode_example({"a": [1, 2, 3], "b": 0.5}), encode_example({"a": b"x"})]
    )
    view = view_file(file)
    assert (view.features["a"].kinds, view.features["a"].least, view.features["a"].most) == (("bytes", "int64"), 1, 3)
    assert (view.features["b"].records, view.features["b"].shown) == (1, "0.5")


def test_a_compressed_file_is_read_too(tmp_path):
    file = tmp_path / "a.tfrecord.gz"
    file.write_bytes(gzip.compress(frame(encode_example({"a": 1}))))
    view = view_file(str(file))
    assert (view.compressed, view.records) == (True, 1)
    assert record_of_file(str(file), 0) == encode_example({"a": 1})


def test_damage_is_named_and_the_rest_is_read(tmp_path):
    payload = encode_example({"image/key": b"one"})
    file = tmp_path / "a.tfrecord"
    data = bytearray(frame(payload) * 3)
    data[len(frame(payload)) + 20] ^= 1
    file.write_bytes(data)
    view = view_file(str(file))
    assert (view.records, view.damaged) == (2, 1)
    assert view.others[0].startswith("record 1 at offset ")
    assert record_of_file(str(file), 2) == payload
    with pytest.raises(DatasetError, match="record 1 at offset .* checksum"):
        record_of_file(str(file), 1)
    with pytest.raises(UsageError, match="no record 3; 2 can be read"):
        record_of_file(str(file), 3)


def test_other_payloads_are_described(tmp_path):
    file = shard(tmp_path, [b"plain text", encode_example({"a": 1})])
    view = view_file(file)
    assert view.records == 2
    assert "not a tf.train.Example: text ('plain text')" in view.others[0]


@pytest.mark.parametrize(
    ("content", "problem"), [(b"", "it is empty"), (b"\xff\xd8\xff" * 100, "does not begin with a record")]
)
def test_other_files_are_refused(tmp_path, content, problem):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UsageError, match=problem):
        view_file(str(tmp_path / "x"))
    with pytest.raises(UsageError, match="not a TFRecord file"):
        record_of_file(str(tmp_path / "x"), 0)
    with pytest.raises(UsageError, match="cannot be read"):
        view_file(str(tmp_path / "nothing"))


def test_a_record_shows_its_image_and_no_control_characters():
    image, mask = build.encoded(np.zeros((4, 6, 3))), build.encoded(np.zeros((4, 6)))
    example = {"a": b"\x1b[2J", "image": image, "image/segmentation/x": mask, "n": list(range(9)), "z": b""}
    view = view_record(encode_example(example), "here")
    features = {feature.name: feature for feature in view.features}
    assert view.image == "image"
    assert features["a"].shown.isprintable()
    assert features["image"].shown == "png 4 x 6, 3 channels"
    assert (features["n"].values, features["n"].shown) == (9, "0, 1, 2, 3, 4, 5, ...")
    assert features["z"].shown == ""


@tries(40)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
        st.one_of(
            st.lists(st.binary(max_size=80), min_size=1, max_size=3),
            st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_is_stored_can_be_printed(example):
    view = view_record(encode_example(example), "here")
    assert [feature.name for feature in view.features] == sorted(example)
    for feature in view.features:
        assert feature.values == len(example[feature.name])
        assert feature.shown.isprintable()


def test_a_record_is_found_by_its_key(dataset):
    opened = ImageDataset.open(dataset)
    stored = {key: payload for split in opened.splits for key, payload in opened.records(split)}
    for key, payload in stored.items():
        found = ImageDataset.open(str(dataset)).fetch(key)
        assert (found.key, found.payload) == (key, payload)
        assert found.shard.startswith(f"Split-{found.split}/")
        assert find_feature(record_of_file(str(dataset / found.shard), found.record), "image/key") == [key.encode()]


def test_a_key_that_is_not_there_names_near_ones(dataset):
    with pytest.raises(UsageError, match=r"no record has the key '0003'\. There is 'train/0003'\."):
        ImageDataset.open(str(dataset)).fetch("0003")
    with pytest.raises(UsageError, match=r"A key is the image's path"):
        ImageDataset.open(str(dataset)).fetch("nothing of it")
    # A command line may hold any bytes.
    with pytest.raises(UsageError, match=r"no record has the key 'a\\udcff'"):
        ImageDataset.open(str(dataset)).fetch("a\udcff")


def test_a_rejected_input_has_a_reason(tmp_path):
    from shardwright.staging import commit, staging

    place = staging.Staging.open(tmp_path / "staging", "0" * 64)
    planned = staging.PlannedShard("train", 0, 1)
    bad = staging.RecordResult("bad.jpg", None, "rejected", "truncated", "the file is cut off")
    place.write_shard(planned, [staging.RecordResult("good.jpg", encode_example({"a": 1})), bad])
    shared = {"kind": "ingest", "task": "segmentation", "classes": (), "recipe": {}, "parent": "0" * 64}
    plan = commit.DatasetPlan(**shared, features={"a": "int64"}, inputs=2, shards=(planned,), max_rejects=1)
    commit.commit(place, plan, tmp_path / "out", {})
    with pytest.raises(UsageError, match=r"It was not written: rejected, truncated: the file is cut off\."):
        ImageDataset.open(str(tmp_path / "out")).fetch("bad.jpg")


def test_a_damaged_record_is_named(dataset):
    found = ImageDataset.open(str(dataset)).fetch("train/0003")
    file = dataset / found.shard
    data = bytearray(file.read_bytes())
    start = data.index(found.payload)
    data[start + 5] ^= 1
    file.write_bytes(data)
    with pytest.raises(DatasetError, match=r"record \d+ at offset \d+ \(key 'train/0003'\)"):
        ImageDataset.open(str(dataset)).fetch("train/0003")


def test_a_damaged_index_is_named(dataset):
    index = next((dataset / "index" / "Split-eval").iterdir())
    index.write_text('{"key":"x","broken\n')
    with pytest.raises(DatasetError, match="not a readable index"):
        ImageDataset.open(str(dataset)).fetch("x")


@tries(40)
@given(height=st.integers(1, 40), width=st.integers(1, 40), columns=st.integers(1, 30), rows=st.integers(1, 20))
def test_a_picture_fits_its_place(height, width, columns, rows):
    text = draw(build.encoded(np.full((height, width, 3), 200)), columns, rows)
    lines = text.split("\n")
    assert 1 <= len(lines) <= rows
    assert {line.count("\N{UPPER HALF BLOCK}") for line in lines} == {lines[0].count("\N{UPPER HALF BLOCK}")}
    assert 1 <= lines[0].count("\N{UPPER HALF BLOCK}") <= columns
    assert all(line.endswith("\x1b[0m") for line in lines)


def test_a_picture_has_the_colors_of_its_pixels():
    text = draw(build.encoded([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [9, 9, 9]]]), 10, 10)
    assert re.findall(r"38;2;([\d;]+);48;2;([\d;]+)m", text) == [("255;0;0", "0;0;255"), ("0;255;0", "9;9;9")]


@pytest.mark.parametrize("data", [b"", b"text", b"\xff\xd8\xff\xe0 cut"])
def test_what_is_no_picture_is_not_drawn(data):
    assert draw(data, 10, 10) == ""


@pytest.mark.shared_data
def test_records_of_others_are_read(shared_data):
    path = str(shared_data / "golden" / "object_detection.record")
    view = view_file(path)
    assert (view.records, view.damaged, view.others) == (40, 0, [])
    assert view.features["image/object/class/text"].shown == "raccoon"
    record = view_record(record_of_file(path, 1), path)
    assert record.image == "image/encoded"
    assert {feature.name: feature.shown for feature in record.features}["image/encoded"] == "jpeg 452 x 602, 3 channels"
