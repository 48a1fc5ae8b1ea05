"""Differences of two datasets with a wrong index; for others see the tests of the command."""

import json
import shutil

import pytest

from shardwright.dataset.reader import ImageDataset
from shardwright.edit.diff_datasets import find_differences
from shardwright.errors import DatasetError


@pytest.fixture(scope="module")
def pair(small_dataset, tmp_path_factory):
    """A dataset and a copy of it."""
    folder = tmp_path_factory.mktemp("differences")
    one = small_dataset(folder / "one", counts={"train": [4], "eval": [2], "test": [2]})
    shutil.copytree(one, folder / "other")
    return one, folder / "other"


@pytest.mark.parametrize("wrong", ["7", 1.5, None, [0], True, -16, 0, 10**12])
def test_an_offset_that_is_none_is_named(pair, tmp_path, wrong):
    one, other = pair
    shutil.copytree(one, tmp_path / "one")
    dataset = ImageDataset.open(tmp_path / "one")
    (shard,) = dataset.shards("train")
    lines = shard.index_file.read_text().splitlines()
    row = {**json.loads(lines[1]), "offset": wrong}
    shard.index_file.write_text("\n".join([lines[0], json.dumps(row), *lines[2:]]) + "\n")
    with pytest.raises(DatasetError, match=row["key"]) as caught:
        find_differences(dataset, ImageDataset.open(other))
    assert str(shard.index_file) in str(caught.value)
