"""`order: exact`: the same tail from every step, the same batches for any number of hosts, every example once."""

import io
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from shardwright.dataset.random_access import RandomAccess
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.loader import load
from shardwright.loader.global_order import GlobalOrder, StepPlan
from shardwright.tfrecords.records import decode_example

CHANGES = ("flip_left_right", "flip_up_down", "brightness")


@pytest.fixture(scope="module")
def clouds(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("exact"), counts={"train": [5, 0, 4, 4], "eval": [3]})


def batches(dataset, batch_size=2, steps=None, **options):
    """Every batch as its bytes: image, target and, in an evaluation, weight."""
    options = {"order": "exact", "shuffle": True, "seed": 3, "shuffle_buffer": 4, **options}
    found = load(dataset, "train", batch_size, **options)
    return [[part.numpy() for part in batch] for batch in (found if steps is None else found.take(steps))]


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a, b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right, strict=True)
    )


@pytest.mark.slow
def test_training_restored_at_every_step_gives_the_same_tail(clouds):
    whole = batches(clouds, steps=15, repeat=True, augment=CHANGES)
    for step in range(15):
        assert same(batches(clouds, steps=15 - step, repeat=True, augment=CHANGES, start_step=step), whole[step:])


@pytest.mark.slow
def test_hosts_may_change_at_any_step(clouds):
    whole = batches(clouds, 4, steps=6, repeat=True, augment=CHANGES)
    for hosts in (2, 4):
        parts = [
            batches(clouds, 4 // hosts, 4, repeat=True, augment=CHANGES, host=h, hosts=hosts, start_step=2)
            for h in range(hosts)
        ]
        joined = [[np.concatenate(group) for group in zip(*step, strict=True)] for step in zip(*parts, strict=True)]
        assert same(joined, whole[2:])


def test_an_epoch_holds_every_example_once(clouds):
    in_order = {image.tobytes() for batch in load(clouds, "train", 1) for image in batch[0].numpy()}
    first = [image.tobytes() for batch in batches(clouds, 1, 13, repeat=True) for image in batch[0]]
    second = [image.tobytes() for batch in batches(clouds, 1, 13, repeat=True, start_step=13) for image in batch[0]]
    assert set(first) == set(second) == in_order
    assert len(in_order) == 13
    assert first != second


def test_without_shuffling_it_is_the_order_of_the_disk(clouds):
    stored = [decode_example(record)["image/encoded"][0] for _, record in ImageDataset.open(clouds).records("train")]
    found = [image for batch in batches(clouds, 1, shuffle=False, normalize="none") for image in batch[0]]
    for image, encoded in zip(found, stored, strict=True):
        assert np.array_equal(image, np.asarray(Image.open(io.BytesIO(encoded)), np.float32))


def test_ids_are_positions_in_the_split(clouds):
    found = load(clouds, "train", 1, order="exact", shuffle=False, ids=True)
    assert [batch[-1].numpy().tolist() for batch in found] == [[i] for i in range(13)]


def test_an_evaluation_fills_the_last_batch_up_with_what_does_not_count(clouds):
    parts = [batches(clouds, 2, shuffle=False, host=host, hosts=3) for host in range(3)]
    assert [len(part) for part in parts] == [3, 3, 3]
    weights = np.concatenate([batch[2] for step in zip(*parts, strict=True) for batch in step])
    assert weights.dtype == np.float32
    assert weights.tolist() == [1.0] * 13 + [0.0] * 5
    assert all(batch[0].shape[0] == 2 for part in parts for batch in part)


def test_shapes_are_static(clouds):
    image, target, weight = load(clouds, "train", 4, order="exact").element_spec
    assert image.shape == (4, *image.shape[1:])
    assert None not in [*image.shape, *target.shape, *weight.shape]


def test_a_damaged_record_is_named(clouds, tmp_path, small_dataset):
    broken = small_dataset(tmp_path, counts={"train": [2, 2], "eval": [1]})
    shard = ImageDataset.open(broken).shards("train")[1]
    data = bytearray(Path(shard.file).read_bytes())
    data[-60] ^= 1
    Path(shard.file).write_bytes(data)
    with pytest.raises(tf.errors.OpError, match=r"data-00001-of-00002.*record 1.*train/0004"):
        batches(broken, 1, shuffle=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start_step": -1}, "start_step: -1 is too small"),
        ({"shuffle": True, "hosts": 2}, "seed: None .* hosts=2 needs the same one"),
        ({"shuffle": True, "start_step": 1}, "seed: None .* start_step=1 needs the same one"),
        ({"start_step": 8}, "an epoch has 7 batches of 2"),
        ({"host": 2, "hosts": 2}, "host: 2 is not below hosts, 2"),
        ({"order": "fast", "start_step": 1}, "order='exact'"),
        ({"order": "quick"}, "Use fast or exact"),
    ],
)
def test_impossible_options_are_refused(clouds, options, message):
    with pytest.raises(UsageError, match=message):
        load(clouds, "train", 2, **{"order": "exact", **options})


def test_a_resumed_training_reads_nothing_of_what_came_before(clouds, monkeypatch):
    seen, read = [], RandomAccess.read
    monkeypatch.setattr(RandomAccess, "read", lambda self, records: seen.append(records) or read(self, records))
    batches(clouds, steps=1, repeat=True, start_step=2000)
    counts = tuple(shard.records for shard in ImageDataset.open(clouds).shards("train"))
    steps = StepPlan(GlobalOrder(counts, 3, 4), 2)
    ahead = 40  # Read ahead, decoded and finished meanwhile; not the 2,000 steps before.
    assert 1 <= len(seen) <= ahead
    expected = {tuple(map(tuple, steps.training(step))) for step in range(2000, 2000 + ahead)}
    assert {tuple(map(tuple, records)) for records in seen} <= expected


def test_a_shard_that_is_cut_during_an_epoch_is_named(small_dataset, tmp_path):
    broken = small_dataset(tmp_path, counts={"train": [2, 2], "eval": [1]})
    shard = ImageDataset.open(broken).shards("train")[1]
    for order in ("exact", "fast"):
        found = load(broken, "train", 1, order=order)
        whole = Path(shard.file).read_bytes()
        Path(shard.file).write_bytes(whole[:-50])
        with pytest.raises(tf.errors.OpError, match=r"data-00001-of-00002.*record 1.*at byte \d+, key .*train/0004"):
            list(found)
        Path(shard.file).write_bytes(whole)
