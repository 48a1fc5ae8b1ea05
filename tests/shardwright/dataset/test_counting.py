"""Counting records: by manifest, index, name and headers."""

import gzip
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingesting import run

from shardwright.dataset.counting import count_records
from shardwright.errors import DatasetError
from shardwright.tfrecords.records import frame


@pytest.fixture
def dataset(tmp_path, image_input):
    run(image_input(tmp_path, layout="label_csv"), tmp_path / "out")
    return tmp_path / "out"


def _shards(root):
    return sorted(root.glob("Split-*/*"))


def test_a_manifest_is_believed_without_reading_a_record(dataset, monkeypatch):
    from shardwright.dataset import counting

    monkeypatch.setattr(counting, "_of_headers", None)
    monkeypatch.setattr(counting, "_of_index", None)
    assert count_records(_shards(dataset)) == 24
    assert sum(count_records(shard) for shard in _shards(dataset)) == 24
    assert count_records(str(shard) for shard in _shards(dataset)) == 24


def test_an_index_is_believed_where_there_is_no_manifest(dataset, monkeypatch):
    from shardwright.dataset import counting

    (dataset / "manifest.json").unlink()
    monkeypatch.setattr(counting, "_of_headers", None)
    assert count_records(_shards(dataset)) == 24


@pytest.mark.parametrize("damage", ["", "{}\n", '{"offset": 0, "length": 5}\n', "no json"])
def test_an_index_that_does_not_fit_is_not(dataset, damage):
    (dataset / "manifest.json").unlink()
    for index in (dataset / "index").rglob("*.jsonl"):
        index.write_text(damage)
    assert count_records(_shards(dataset)) == 24


def test_a_manifest_of_other_files_is_not_believed(dataset):
    shard = max(_shards(dataset), key=lambda file: file.stat().st_size)
    before = count_records(shard)
    with shard.open("ab") as file:
        file.write(frame(b"one more"))
    assert count_records(shard) == before + 1


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("flowers00-230.tfrec", 230),
        ("00-512x512-798.tfrec", 798),
        ("train00-512x512-0.tfrec", 0),
        ("data-00000-of-00004.tfrec", 1),
        ("data-0-of-4.tfrec", 1),
        ("train-230.tfrec", 1),
        ("train00-00230.tfrec", 1),
        ("flowers00-230.tfrecord", 1),
        ("flowers00-99999999.tfrec", 1),
    ],
)
def test_names_are_believed_where_they_are_kaggles(tmp_path, name, count):
    (tmp_path / name).write_bytes(frame(b"x" * 20_000))
    assert count_records(tmp_path / name) == count


def test_names_by_a_pattern_of_ours_are_true(tmp_path, image_input):
    raw = image_input(tmp_path, layout="label_csv")
    raw["shards"] = {"records": 7, "filename_template": "{split}{index:02d}-{count}.tfrec"}
    run(raw, tmp_path / "out")
    for shard in _shards(tmp_path / "out"):
        shutil.copy(shard, tmp_path / shard.name)
    assert count_records(tmp_path.glob("*.tfrec")) == 24


@given(payloads=st.lists(st.binary(max_size=40), max_size=20))
def test_headers_are_counted(tmp_path_factory, payloads):
    file = tmp_path_factory.mktemp("count") / "a.tfrecord"
    file.write_bytes(b"".join(map(frame, payloads)))
    assert count_records(file) == len(payloads)


@pytest.mark.parametrize(
    "data",
    [frame(b"abc")[:-1], frame(b"abc") + b"x", b"text", gzip.compress(frame(b"abc"), mtime=0), b"\0" * 40],
    ids=["cut", "more", "text", "gzip", "zeros"],
)
def test_files_that_cannot_be_counted_are_named(tmp_path, data):
    file = tmp_path / "a.tfrecord"
    file.write_bytes(data)
    with pytest.raises(DatasetError, match=r"a\.tfrecord: record \d at offset"):
        count_records([file])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match="none.tfrecord: cannot be read"):
        count_records(tmp_path / "none.tfrecord")
