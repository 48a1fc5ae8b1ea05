"""Datasets on object stores: the same records as from a folder, read in ranges or copied first."""

import fcntl
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.dataset import random_access as same_dataset
from shardwright.dataset.host_sharding import RecordRange
from shardwright.dataset.random_access import RandomAccess
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.loader import ShardCache, load, shard_cache
from shardwright.loader.error_context import with_plain_errors
from shardwright.loader.fast import _pieces
from shardwright.storage import buckets

pytestmark = pytest.mark.slow
PLAIN = {"normalize": "none", "dtype": "uint8"}


@pytest.fixture(scope="module")
def local(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("stores"), counts={"train": [5, 0, 4], "eval": [3]})


@pytest.fixture
def place(stores, local):
    """The URL of the dataset on a store."""

    def copied(scheme):
        url = f"{stores.bucket(scheme)}/data"
        stores.copy_of(local, url)
        return url

    return copied


@pytest.fixture(autouse=True)
def _no_locks():
    """Releases the locks: the process of the tests stands for many users of the copies, one after another."""
    yield
    for descriptor in shard_cache._held.values():
        os.close(descriptor)
    shard_cache._held.clear()


def stream(root, split="train", **options):
    return sorted(
        image.tobytes() + target.tobytes()
        for images, targets, *_ in load(root, split, 1, **PLAIN, **options).as_numpy_iterator()
        for image, target in zip(images, targets, strict=True)
    )


@pytest.mark.parametrize("scheme", ["gs", "s3"])
def test_records_are_read_in_ranges(place, local, scheme, stores, small_dataset, tmp_path, monkeypatch):
    url = place(scheme)
    expected = stream(local)
    assert stream(url, copies=False) == expected
    assert stream(url, copies=False, order="exact", shuffle=True, seed=1) == expected
    parts = [stream(url, copies=False, host=host, hosts=2, shuffle=True) for host in range(2)]
    assert sorted(parts[0] + parts[1]) == expected
    assert [len(part) for part in parts] == [4, 5]
    opened = ImageDataset.open(url)
    access = RandomAccess(opened.shards("train"))
    assert access.read_range(2, 1, 2) == [payload for _, payload in opened.records("train")][6:8]
    monkeypatch.setattr(same_dataset, "_SECONDS_BETWEEN_REQUESTS", 0.0)
    assert stream(url, copies=False) == expected
    access = RandomAccess(opened.shards("train"))
    other = small_dataset(tmp_path, counts={"train": [5, 0, 4], "eval": [2]}, change=lambda number, example: example)
    stores.copy_of(other, url)
    with pytest.raises(DatasetError, match=f"{url}: contains another dataset now than when it was loaded"):
        access.read_range(2, 1, 2)


def test_copies_are_made_once_and_only_of_what_is_read(place, local, stores, tmp_path):
    url, copies = place("s3"), ShardCache(str(tmp_path / "copies"))
    assert stream(url, "eval", copies=copies) == stream(local, "eval")
    copied = [file.name for file in (tmp_path / "copies").rglob("*.tfrecord")]
    assert copied == ["data-00000-of-00001.tfrecord"]
    stores.requests.clear()
    assert stream(url, "eval", copies=copies) == stream(local, "eval")
    assert not [path for method, path in stores.requests if method == "GET" and path.endswith(".tfrecord")]


def test_a_copy_that_is_not_what_was_written_is_refused(place, stores, tmp_path):
    url = place("s3")
    name = f"{url}/Split-train/data-00000-of-00003.tfrecord"
    data = bytearray(buckets.read(name))
    data[100] ^= 1
    stores.write(name, bytes(data))
    with pytest.raises(DatasetError, match=r"data-00000-of-00003\.tfrecord: its BLAKE3 is not the manifest's"):
        load(url, "train", 1, copies=ShardCache(str(tmp_path / "copies")))
    assert not list((tmp_path / "copies").rglob("data-00000*.tfrecord"))
    assert not list((tmp_path / "copies").rglob(".fetching*"))


def test_room_is_made_where_nobody_reads(place, local, tmp_path):
    url = place("s3")
    size = ImageDataset.open(local).shards("eval")[0].bytes
    old = tmp_path / "copies" / ("0123" * 8)
    for used in (True, False):
        (old / "Split-train").mkdir(parents=True, exist_ok=True)
        (old / "Split-train/data.tfrecord").write_bytes(bytes(size))
        with open(old / "lock", "w") as lock:
            copies = ShardCache(str(tmp_path / "copies"), size + size // 2)
            if used:
                fcntl.flock(lock, fcntl.LOCK_SH)
                with pytest.raises(UsageError, match="do not fit: .* GB are in use there"):
                    load(url, "eval", 1, copies=copies)
                assert (old / "Split-train/data.tfrecord").is_file()
            else:
                load(url, "eval", 1, copies=copies)
                assert not old.exists()


def test_a_damaged_record_on_a_store_is_named(place, stores):
    url = place("gs")
    name = f"{url}/Split-train/data-00000-of-00003.tfrecord"
    data = bytearray(buckets.read(name))
    data[-30] ^= 1
    stores.write(name, bytes(data))
    with pytest.raises(DatasetError, match=r"data-00000-of-00003\.tfrecord, record 4.*at byte \d+, key 'train/0007'"):
        list(with_plain_errors(iter(load(url, "train", 1, **PLAIN))))


@given(st.lists(st.integers(1, 3 << 20), min_size=1, max_size=40), st.data())
def test_pieces_are_the_whole_stretch(lengths, data):
    first = data.draw(st.integers(0, len(lengths) - 1))
    records = data.draw(st.integers(1, len(lengths) - first))
    pieces = _pieces(RecordRange(7, first, records), np.array(lengths))
    assert [n for piece in pieces for n in range(piece.first, piece.first + piece.records)] == list(
        range(first, first + records)
    )
    for piece in pieces:
        own = lengths[piece.first : piece.first + piece.records]
        assert len(own) == 1 or sum(own) - max(own[0], own[-1]) <= 4 << 20


def test_copies_need_room():
    with pytest.raises(UsageError, match="most_bytes is 0"):
        ShardCache("/tmp", 0)
