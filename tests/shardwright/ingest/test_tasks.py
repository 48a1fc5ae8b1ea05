"""Task files: blocks of any size make the same dataset; a file that has changed since is noticed."""

import tracemalloc

import numpy as np
import pytest
from ingesting import run, tree

from shardwright import storage
from shardwright.config import ImagesConfig
from shardwright.errors import CheckFailed
from shardwright.ingest import write_shards as write
from shardwright.ingest.known_files import FileHashes
from shardwright.ingest.tasks import cost_of
from shardwright.staging import ranges
from shardwright.storage import FileHash


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("most", [1, 3, 7])
@pytest.mark.parametrize("verify", ["full", "header"])
def test_ranges_of_any_size_make_the_same_dataset(tmp_path, image_input, monkeypatch, most, workers, verify):
    raw = {**image_input(tmp_path / "in"), "images": {"verify": verify}}
    run(raw, tmp_path / "whole", workers=1)
    monkeypatch.setattr(ranges, "_MOST_IMAGES", most)
    monkeypatch.setattr(ranges, "_SMALL", 0)
    run(raw, tmp_path / "out", workers=workers)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_a_shard_of_many_images_is_cut_and_a_large_image_is_a_range():
    shards = [np.arange(2000), np.arange(2000, 2003)]
    sizes = np.full(2003, 2_000)
    sizes[2000:] = 1 << 30
    cuts = ranges.Cut.of(shards, sizes, cost_of(ImagesConfig(verify="header"), sizes), "/").bounds
    assert len(cuts[0]) > 5
    assert [cuts[0][0], cuts[0][-1]] == [0, 2000]
    assert max(np.diff(cuts[0])) <= 512
    assert cuts[1] == (0, 1, 2, 3)


def test_a_file_that_changes_between_hashing_and_writing_ends_the_run(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    read_each = storage.read_each

    def flipped(root, items, path_of, *more):
        for task, data in read_each(root, items, path_of, *more):
            bad = path_of(task).endswith("007.jpg")
            yield task, data[:-1] + bytes([data[-1] ^ 1]) if bad else data

    monkeypatch.setattr(write, "read_each", flipped)
    with pytest.raises(CheckFailed, match=r"007.jpg: the file has changed"):
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_hashes_of_many_files_take_little_memory():
    tracemalloc.start()
    try:
        contents = FileHashes(100_000)
        for number in range(100_000):
            if number % 1000 != 7:
                contents.set(number, FileHash(number.to_bytes(32, "big"), number))
        assert tracemalloc.get_traced_memory()[0] < 100_000 * 56
    finally:
        tracemalloc.stop()
    assert len(list(contents)) == 100_000
    assert contents.unknown() == list(range(7, 100_000, 1000))
    assert contents.get(7) is None
    assert contents.get(99_999) == FileHash((99_999).to_bytes(32, "big"), 99_999)
