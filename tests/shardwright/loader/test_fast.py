"""`order: fast` over more shards than are open concurrently: sixteen records each, of sixteen shards in turns."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from shardwright.dataset.host_sharding import RecordRange
from shardwright.dataset.reader import ImageDataset
from shardwright.loader import load
from shardwright.loader.fast import read_ranges

COUNTS = (0, 1, 15, 16, 17, 33, 2, 40, 1, 1, 0, 5, 16, 3, 32, 7, 9, 48, 1, 20)


@pytest.fixture(scope="module")
def many_shards(small_dataset, tmp_path_factory) -> ImageDataset:
    folder = small_dataset(
        tmp_path_factory.mktemp("many"), task="classification", counts={"train": COUNTS}, size=lambda number: (2, 3)
    )
    return ImageDataset.open(folder)


def positions(dataset: ImageDataset, seed: int | None) -> list[int]:
    shards = dataset.shards("train")
    share = [RecordRange(number, 0, shard.records) for number, shard in enumerate(shards)]
    return [int(found["position"]) for found in read_ranges(shards, share, seed).as_numpy_iterator()]


def in_turns(counts: tuple[int, ...]) -> Iterator[int]:
    """The order by its definition: an empty place takes the next shard; one whose shard is at its end gives way."""
    begins = np.cumsum([0, *counts]).tolist()
    waiting = [
        [range(begin + low, min(begin + low + 16, begin + count)) for low in range(0, count, 16)]
        for begin, count in zip(begins, counts, strict=False)
    ]
    places: list[list[range] | None] = [None] * 16
    while waiting or any(place is not None for place in places):
        for number, place in enumerate(places):
            if place is None and waiting:
                places[number] = place = waiting.pop(0)
            row = place.pop(0) if place else range(0)
            yield from row
            if len(row) < 16:
                places[number] = None


def test_the_order_of_the_disk_is_rows_in_turns(many_shards):
    found = positions(many_shards, None)
    assert found == list(in_turns(COUNTS))
    assert found != sorted(found)


def test_a_seed_fixes_an_order_in_which_every_record_comes_once(many_shards):
    found = positions(many_shards, 3)
    assert sorted(found) == list(range(sum(COUNTS)))
    assert found == positions(many_shards, 3)
    assert found != positions(many_shards, 4)


def test_a_split_without_shards_has_no_records():
    assert list(read_ranges([], [], None)) == []


@pytest.mark.parametrize("order", ["fast", "exact"])
def test_nothing_is_optimized_again_for_a_shard_or_an_iterator(many_shards, order):
    found = load(many_shards.root, "train", 4, order=order, shuffle=True, seed=1, repeat=True)
    graph = tf.raw_ops.DatasetToGraphV2(
        input_dataset=found._variant_tensor, external_state_policy=1, strip_device_assignment=True
    )
    functions = tf.compat.v1.GraphDef.FromString(graph.numpy()).library.function
    ops = {node.op for function in functions for node in function.node_def}
    assert {"MapAndBatchDataset", "TakeWhileDataset"} <= ops
    assert "RewriteDataset" not in ops


def test_what_follows_damage_in_a_shard_is_empty_and_nothing_else(many_shards, tmp_path):
    shards = list(many_shards.shards("train"))
    hurt = COUNTS.index(40)
    data = bytearray(Path(shards[hurt].file).read_bytes())
    frame = len(data) // 40
    data[20 * frame + frame // 2] ^= 1
    copy = tmp_path / "hurt.tfrecord"
    copy.write_bytes(data)
    shards[hurt] = type(shards[hurt])(**{**vars(shards[hurt]), "file": str(copy)})
    share = [RecordRange(number, 0, shard.records) for number, shard in enumerate(shards)]
    found = read_ranges(shards, share, 3).as_numpy_iterator()
    empty = {int(record["position"]) for record in found if not record["record"]}
    begin = sum(COUNTS[:hurt])
    assert empty == set(range(min(empty), begin + 40))
    assert begin + 17 <= min(empty) <= begin + 22
