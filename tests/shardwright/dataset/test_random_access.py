"""Records by index: the same as read in order, damage named."""

import json
from pathlib import Path

import numpy as np
import pytest

from shardwright.dataset.random_access import RandomAccess, RecordIndices
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.loader.global_order import GlobalOrder


@pytest.fixture
def dataset(tmp_path, small_dataset):
    return ImageDataset.open(small_dataset(tmp_path, task="classification", counts={"train": [3, 0, 4]}))


def all_records(*counts):
    places = [(shard, record) for shard, count in enumerate(counts) for record in range(count)]
    return RecordIndices(*np.array(places, np.int64).T)


def test_every_record_is_what_it_is_in_order(dataset):
    access = RandomAccess(dataset.shards("train"))
    assert access.read(all_records(3, 0, 4)) == [payload for _, payload in dataset.records("train")]


def test_any_order_will_do(dataset):
    in_order = [payload for _, payload in dataset.records("train")]
    shards = dataset.shards("train")
    records = GlobalOrder(tuple(shard.records for shard in shards), 5, 3).at(np.arange(21))
    begins = np.array([0, 3, 3])
    assert RandomAccess(shards).read(records) == [
        in_order[i] for i in (begins[records.shard] + records.record).tolist()
    ]


def test_an_index_may_be_written_in_another_style(dataset):
    expected = RandomAccess(dataset.shards("train")).read(all_records(3, 0, 4))
    for shard in dataset.shards("train"):
        index = Path(shard.index)
        rows = [json.loads(line) for line in index.read_text().splitlines()]
        # A key that looks like the end of a line.
        odd = [{**row, "note": ',"length":1,"offset":2}'} for row in rows]
        index.write_text("".join(json.dumps(row) + "\n" for row in odd))
    assert RandomAccess(dataset.shards("train")).read(all_records(3, 0, 4)) == expected


def test_a_damaged_record_is_named(dataset):
    shard = dataset.shards("train")[2]
    index = [json.loads(line) for line in shard.index_file.read_text().splitlines()]
    data = bytearray(Path(shard.file).read_bytes())
    data[index[1]["offset"] + 40] ^= 1
    Path(shard.file).write_bytes(data)
    access = RandomAccess(dataset.shards("train"))
    access.read(all_records(3, 0, 1))
    with pytest.raises(DatasetError, match=rf"data-00002-of-00003.*record 1.*{index[1]['key']}"):
        access.read(all_records(3, 0, 4))


@pytest.mark.parametrize("damage", ["", "{}\n" * 3, "not json\n" * 3])
def test_a_damaged_index_is_refused(dataset, damage):
    file = dataset.shards("train")[0].index_file
    file.write_text(damage)
    with pytest.raises(DatasetError, match="data-00000-of-00003"):
        RandomAccess(dataset.shards("train"))
