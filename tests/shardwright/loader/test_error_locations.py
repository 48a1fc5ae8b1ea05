"""A record that cannot be loaded ends a stream in its place, by name, even if no record can be loaded."""

from itertools import islice
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.dataset.random_access import RandomAccess, SameDataset
from shardwright.dataset.reader import ImageDataset, iter_records
from shardwright.dataset.source import source
from shardwright.errors import DatasetError, StorageError
from shardwright.loader import load
from shardwright.loader.error_context import ReadErrors, require, with_error_context
from shardwright.tfrecords.records import read_records

PLAIN = {"normalize": "none", "dtype": "uint8"}
WRONG = tf.errors.InvalidArgumentError


@pytest.fixture(scope="module")
def one_shard(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("one"), task="classification", counts={"train": [40]})


@pytest.mark.parametrize("order", ["fast", "exact"])
def test_an_endless_stream_in_which_all_is_wrong_ends(small_dataset, tmp_path, order):
    def change(number, example):
        return {**example, "image/encoded": example["image/encoded"][:-40]}

    folder = small_dataset(tmp_path, counts={"train": [9, 9]}, change=change)
    batches = iter(load(folder, "train", 4, order=order, repeat=True, shuffle=True, seed=1))
    # The error comes again at every further attempt.
    for _ in range(3):
        with pytest.raises(WRONG, match=r"tfrecord, record \d at byte \d+, key train/\d{4}: cannot be decoded"):
            next(batches)


def test_the_error_of_a_failed_read_is_passed_on(one_shard, monkeypatch):
    def away(self, records):
        raise StorageError("the store is away")

    monkeypatch.setattr(RandomAccess, "read", away)
    batches = iter(load(one_shard, "train", 4, order="exact", repeat=True))
    with pytest.raises(WRONG, match=r"assertion failed: \[the store is away\]"):
        next(batches)


def test_the_last_error_is_returned_once():
    errors = ReadErrors()

    def read(number):
        raise {0: StorageError("away"), 1: KeyError("odd")}[number]

    for number, message in enumerate(["away", "KeyError('odd')"]):
        with pytest.raises((StorageError, KeyError)):
            errors.watched(read)(number)
        assert [errors.why(), errors.why()] == [message, ""]


def test_of_a_broken_shard_the_record_is_named_that_breaks_it(one_shard, tmp_path):
    """A record behind it may come first, although it is sound."""
    shard = ImageDataset.open(one_shard).shards("train")[0]
    offset = [offset for offset, _ in read_records(shard.file)][20]
    data = Path(shard.file).read_bytes()
    try:
        Path(shard.file).write_bytes(data[: offset + 50] + bytes([data[offset + 50] ^ 1]) + data[offset + 51 :])
        for seed in range(5):
            with pytest.raises(WRONG, match=rf"record 20 at byte {offset}, key train/0020: the record is damaged"):
                list(load(one_shard, "train", 4, shuffle=True, seed=seed, **PLAIN))
    finally:
        Path(shard.file).write_bytes(data)


def test_iterators_of_one_dataset_do_not_meet(one_shard):
    dataset = load(one_shard, "train", 4, ids=True, **PLAIN)
    pairs = list(zip(dataset, dataset, strict=True))
    assert len(pairs) == 10
    assert all((one[2].numpy() == other[2].numpy()).all() for one, other in pairs)
    # Nor does an iterator that was left in the middle matter.
    for _ in range(3):
        assert len(list(islice(dataset, 3))) == 3
    assert len(list(dataset)) == 10


@tries(12)
@given(
    st.integers(0, 60),
    st.none() | st.integers(1, 12),
    st.booleans(),
    st.none() | st.integers(0, 70),
    st.integers(1, 4),
)
def test_all_before_an_error_comes_and_nothing_behind_it(count, batch, drop, wrong, threads):
    asked = []

    def make(number, record):
        sound = tf.not_equal(record["position"], -1 if wrong is None else 1000 + wrong)
        return require(sound, "wrong", number), record["position"]

    def explain(positions):
        asked.append(positions)
        return "named" if wrong is not None and 1000 + wrong in positions else ""

    records = tf.data.Dataset.zip({"position": tf.data.Dataset.range(1000, 1000 + count)})
    # Nothing is dropped where examples come one by one.
    drop = drop and batch is not None
    found = with_error_context(records, make, explain, count=count, threads=threads, batch=batch, drop_remainder=drop)
    each = batch or 1
    whole = [list(range(low, min(low + each, count))) for low in range(0, count, each)]
    whole = [numbers for numbers in whole if len(numbers) == each or not drop]
    sound = next((place for place, numbers in enumerate(whole) if wrong in numbers), len(whole))
    batches = iter(found)
    for expected in whole[:sound]:
        numbers, positions = (tf.reshape(part, [-1]).numpy().tolist() for part in next(batches))
        assert (numbers, positions) == (expected, [1000 + number for number in expected])
    if sound == len(whole):
        assert next(batches, None) is None
        assert asked == []
        return
    with pytest.raises(WRONG, match=r"assertion failed: \[named\]"):
        next(batches)
    # Only records that were in progress are read again.
    assert 1000 + wrong in asked[0]
    assert asked[0] == sorted(asked[0])
    assert min(asked[0]) >= 1000 + sound * each
    assert len(asked[0]) <= 64 + 16 * each


_MADE = {"task": "classification", "classes": ("cat", "dog"), "counts": {"train": [4, 4]}}


def _replaced(small_dataset, tmp_path):
    """A dataset, the same one again, and another one of the same names and sizes, as raw pixels always have."""

    def other(number, example):
        return {**example, "image/class/label": 1 - number % 2}

    root = small_dataset(tmp_path, **_MADE)
    again = small_dataset(tmp_path / "again", **_MADE)
    changed = small_dataset(tmp_path / "changed", change=other, **_MADE)
    assert [shard.bytes for shard in ImageDataset.open(root).shards("train")] == [
        shard.bytes for shard in ImageDataset.open(changed).shards("train")
    ]
    return root, again, changed


@pytest.mark.parametrize("options", [{}, {"order": "exact"}, {"host": 1, "hosts": 4}], ids=str)
def test_another_dataset_in_the_same_folder_is_noticed_and_the_same_one_is_not(small_dataset, tmp_path, options):
    folder, again, changed = _replaced(small_dataset, tmp_path)
    # A link, since what it leads to is replaced in one step.
    root, new = tmp_path / "link", tmp_path / "new"
    root.symlink_to(folder)
    # All of an epoch's shards are opened at its beginning, and the epochs do not end.
    batches = iter(load(root, "train", 8, repeat=True, shuffle=False, **options, **PLAIN))
    first = [part.numpy().tobytes() for part in next(batches)]
    new.symlink_to(again)
    new.replace(root)
    assert all([part.numpy().tobytes() for part in next(batches)] == first for _ in range(9))
    new.symlink_to(changed)
    new.replace(root)
    with pytest.raises(WRONG, match=f"{root}: contains another dataset now than when it was loaded"):
        list(islice(batches, 99))


def test_another_dataset_is_noticed_at_the_end_of_an_epoch_and_by_random_access(small_dataset, tmp_path, monkeypatch):
    root, _, changed = _replaced(small_dataset, tmp_path)
    items = source(root, "train")
    assert items[0]["label"] == 0
    opened, check = ImageDataset.open(root), SameDataset.check

    def replaced(self):
        """Checks, and replaces the dataset before the shard is opened."""
        check(self)
        if self._state is not None and changed.exists():
            root.rename(tmp_path / "old")
            changed.rename(root)

    batches = load(root, "train", 8, **PLAIN)
    monkeypatch.setattr(SameDataset, "check", replaced)
    with pytest.raises(WRONG, match="contains another dataset now"):
        list(batches)
    monkeypatch.undo()
    with pytest.raises(DatasetError, match="contains another dataset now"):
        items[0]
    # It was replaced after its manifest was read, and before anything else was.
    with pytest.raises(DatasetError, match="contains another dataset now"):
        SameDataset(opened.shards("train"))
    items, opened = source(root, "train"), ImageDataset.open(root)
    root.rename(tmp_path / "gone")
    with pytest.raises(DatasetError, match="named by the manifest, but missing"):
        list(iter_records(opened.shards("train")[0].file, None))
    with pytest.raises(DatasetError, match="the dataset was deleted while it was read"):
        items[0]
