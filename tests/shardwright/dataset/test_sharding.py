"""Shard plans: counts and bounds for sizes from nothing to ImageNet."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shardwright.dataset.sharding import deal_classes, shard_bounds, shard_count

MB = 1_000_000


@pytest.mark.parametrize(
    ("name", "records", "size", "shards"),
    [
        ("nothing", 0, 0, 1),
        ("one image", 1, 200_000, 1),
        ("a few", 200, 30 * MB, 1),
        ("just one shard", 1000, 200 * MB, 1),
        ("just two", 1000, 201 * MB, 2),
        ("Severstal train", 12_568, 1_700 * MB, 9),
        ("Understanding Clouds train", 5_546, 3_900 * MB, 20),
        ("ImageNet train", 1_281_167, 138_000 * MB, 690),
        ("two huge images", 2, 900 * MB, 2),
    ],
)
def test_real_sizes(name, records, size, shards):
    assert shard_count(records, size, target_size=150 * MB) == shards


@given(st.integers(200, 10**7), st.integers(0, 10**14), st.integers(1, 10**10))
def test_shards_have_two_thirds_to_four_thirds_of_the_target_on_average(records, size, target):
    count = shard_count(records, size, target_size=target)
    assert 1 <= count <= records
    if count < records:
        assert 3 * size <= 4 * target * count
    if count > 1:
        assert 3 * size >= 2 * target * count


@given(st.integers(0, 10**6), st.integers(1, 5000))
def test_bounds_cover_everything_in_equal_counts(records, count):
    bounds = shard_bounds(records, count)
    sizes = [b - a for a, b in itertools.pairwise(bounds)]
    assert (bounds[0], bounds[-1], len(sizes)) == (0, records, count)
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_records_per_shard_is_a_limit(records, limit):
    count = shard_count(records, 1, records_per_shard=limit)
    assert count >= 1
    assert (count - 1) * limit < max(records, 1) <= max(count * limit, 1)


def test_a_count_is_taken_at_its_word():
    assert shard_count(3, 10**12, count=8) == 8


@pytest.mark.parametrize("options", [{}, {"count": 1, "target_size": 1}, {"count": 1, "records_per_shard": 1}])
def test_one_option_is_needed(options):
    with pytest.raises(ValueError, match="exactly one"):
        shard_count(1, 1, **options)


@pytest.mark.parametrize(
    ("name", "size", "hosts", "shards"),
    [
        ("large enough", 8_000 * MB, 8, 80),
        ("the target asks for more, rounded up to equal shares", 138_000 * MB, 8, 696),
        ("just not large enough: shards of 10 MB, equal shares", 799 * MB, 8, 72),
        ("small: one a host", 80 * MB, 8, 8),
        ("too small for one a host", 79 * MB, 8, 7),
        ("too small for two", 19 * MB, 8, 1),
        ("one host", 150 * MB, 1, 10),
    ],
)
def test_hosts_get_ten_shards_each_where_the_data_is_large_enough(name, size, hosts, shards):
    assert shard_count(10**6, size, target_size=150 * MB, hosts=hosts) == shards


@given(st.integers(0, 10**7), st.integers(0, 10**13), st.integers(1, 10**10), st.integers(1, 5000))
@example(10**6, 10**12, 10**9, 64)
def test_shards_for_hosts_never_fall_below_ten_megabytes_nor_behind_the_target(records, size, target, hosts):
    alone = shard_count(records, size, target_size=target)
    count = shard_count(records, size, target_size=target, hosts=hosts)
    assert alone <= count <= max(1, records)
    if count > alone:
        assert count * 10 * MB <= size
    if size >= 10 * hosts * 10 * MB and records >= 10 * hosts:
        assert count >= min(records, 10 * hosts)


@given(st.integers(10_000, 10**7), st.integers(0, 10**13), st.integers(1, 500))
def test_hosts_share_the_shards_equally_unless_there_are_too_few(records, size, hosts):
    count = shard_count(records, size, target_size=150 * MB, hosts=hosts)
    if size >= hosts * 200 * MB and count < records:
        assert count % hosts == 0


def test_hosts_are_for_a_target_size():
    with pytest.raises(ValueError, match="hosts"):
        shard_count(10, 10, count=2, hosts=2)


@given(st.lists(st.sampled_from(["a", "b", "c", None, frozenset({0, 1})]), max_size=200), st.integers(1, 30))
def test_dealing_gives_every_shard_every_class_equally_often(classes, count):
    shards = deal_classes(classes, count)
    assert len(shards) == count
    assert sorted(np.concatenate(shards).tolist()) == list(range(len(classes)))
    for name in {*classes}:
        held = [sum(classes[i] == name for i in shard.tolist()) for shard in shards]
        assert max(held) - min(held) <= 1
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    assert all((np.diff(shard) > 0).all() for shard in shards)


def test_dealing_keeps_rare_classes_apart():
    shards = deal_classes(["common"] * 94 + ["rare"] * 6, 6)
    assert [Counter("rare" if i >= 94 else "common" for i in shard.tolist())["rare"] for shard in shards] == [1] * 6
