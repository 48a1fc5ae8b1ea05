"""Shard plans: counts and bounds for sizes from nothing to ImageNet."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.sharding import shard_bounds, shard_count

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
