"""Near hashes are found like by comparing each with each, at a cost that stays far below that."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.duplicates import clusters as hamming
from shardwright.duplicates.clusters import equal_clusters, near_clusters
from shardwright.union_find import UnionFind

WORDS = st.integers(0, 2**64 - 1)


def distances(one, other):
    return np.array([[(int(a) ^ int(b)).bit_count() for b in other] for a in one]).reshape(len(one), len(other))


def brute_force(near):
    """First member of each connected component of a symmetric matrix, by walking."""
    firsts = np.full(len(near), -1)
    for start in range(len(near)):
        if firsts[start] >= 0:
            continue
        todo = [start]
        while todo:
            here = todo.pop()
            if firsts[here] < 0:
                firsts[here] = start
                todo.extend(np.flatnonzero(near[here]).tolist())
    return firsts


def crowded(count, seed, groups=0.3, flips=5):
    """Random hashes, a part of them a few flipped bits away from another one."""
    random = np.random.default_rng(seed)
    hashes = random.integers(0, 2**64, count, dtype=np.uint64)
    copies = random.permutation(count)[: int(count * groups)]
    for i in copies:
        changed = int(hashes[random.integers(count)])
        for bit in random.integers(0, 64, random.integers(0, flips + 1)):
            changed ^= 1 << int(bit)
        hashes[i] = changed
    return hashes


@given(st.lists(WORDS, max_size=40))
def test_bits_are_counted(values):
    assert hamming.bit_counts(np.array(values, np.uint64)).tolist() == [value.bit_count() for value in values]


@given(st.lists(WORDS, max_size=40))
def test_bits_are_counted_without_numpy_two(values):
    before, hamming._COUNTS_BITS = hamming._COUNTS_BITS, False
    try:
        assert hamming.bit_counts(np.array(values, np.uint64)).tolist() == [value.bit_count() for value in values]
    finally:
        hamming._COUNTS_BITS = before


@given(st.lists(st.integers(0, 7) | st.integers(2**64 - 8, 2**64 - 1) | WORDS, max_size=30), st.integers(0, 20))
def test_pairs_are_those_of_comparing_each_with_each(values, limit):
    hashes = np.array(values, np.uint64)
    found = set()
    for one, other in hamming.pairs_within(hashes, limit):
        found |= set(zip(np.minimum(one, other).tolist(), np.maximum(one, other).tolist(), strict=True))
    near = distances(hashes, hashes) <= limit
    assert found == {(i, j) for i in range(len(values)) for j in range(i + 1, len(values)) if near[i, j]}


@pytest.mark.parametrize("limit", [0, 1, 3, 6, 10, 16])
@pytest.mark.parametrize("bands", [1, 2, 3, 5, 8])
def test_any_number_of_bands_finds_all_pairs(limit, bands, monkeypatch):
    hashes = crowded(300, seed=limit)
    wanted = np.triu(distances(hashes, hashes) <= limit, 1)
    monkeypatch.setattr(hamming, "_WIDEST_BAND", 64 // bands + 1 if bands > 2 else 22)
    monkeypatch.setattr(hamming, "_MOST_BANDS", bands)
    found = np.zeros_like(wanted)
    for one, other in hamming.pairs_within(hashes, limit):
        found[np.minimum(one, other), np.maximum(one, other)] = True
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("at_once", [1, 7, 64])
def test_the_size_of_a_step_changes_nothing(at_once, monkeypatch):
    hashes = crowded(200, seed=3)
    whole = near_clusters(hashes, 8)
    monkeypatch.setattr(hamming, "_AT_ONCE", at_once)
    assert np.array_equal(near_clusters(hashes, 8), whole)


@given(st.lists(WORDS | st.integers(0, 40), max_size=40), st.integers(0, 12), st.integers(0, 12), st.data())
def test_clusters_are_connected_components(values, limit, confirm_limit, data):
    hashes = np.array(values, np.uint64)
    near = distances(hashes, hashes) <= limit
    assert near_clusters(hashes, limit).tolist() == brute_force(near).tolist()
    others = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values))), np.uint64)
    near &= distances(others, others) <= confirm_limit
    assert near_clusters(hashes, limit, others, confirm_limit).tolist() == brute_force(near).tolist()


@pytest.mark.one_stack
@pytest.mark.parametrize(("count", "limit"), [(3_000, 0), (3_000, 4), (10_000, 8), (3_000, 12)])
def test_thousands_of_hashes_cluster_as_by_brute_force(count, limit):
    hashes = crowded(count, seed=limit)
    near = np.empty((len(hashes), len(hashes)), np.bool_)
    bits = np.unpackbits(hashes.view(np.uint8).reshape(-1, 8), axis=1).astype(np.float32)
    for begin in range(0, len(hashes), 1000):
        part = bits[begin : begin + 1000]
        differing = part.sum(1)[:, None] + bits.sum(1)[None, :] - 2 * part @ bits.T
        near[begin : begin + 1000] = differing <= limit
    assert near_clusters(hashes, limit).tolist() == brute_force(near).tolist()


@given(
    st.lists(st.integers(0, 40) | WORDS, min_size=2, max_size=40), st.sets(st.integers(0, 63), max_size=8), st.data()
)
def test_the_price_of_a_band_is_that_of_its_table_of_its_patterns_and_of_the_pairs_in_its_buckets(values, bits, data):
    band = tuple(bits)
    radius = data.draw(st.integers(0, len(band)))
    buckets = [tuple(value >> bit & 1 for bit in band) for value in values]
    shared = sum(one == other for one in buckets for other in buckets)
    patterns = sum(sum(pattern) <= radius for pattern in itertools.product((0, 1), repeat=len(band)))
    each = hamming._PATTERN + hamming._VISIT * len(values) + shared / 2
    hashes = np.array(values, np.uint64)
    assert hamming._band_cost(hashes, band, radius) == 2 ** len(band) + patterns * each
    # No fewer than it takes: of a pattern, a pair is compared once.
    compared = 0

    def counted(differing):
        nonlocal compared
        compared += len(differing)
        return bit_counts(differing)

    bit_counts = hamming.bit_counts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hamming, "bit_counts", counted)
        list(hamming._pairs_in_band(hashes, 3, band, radius))
    assert compared <= patterns * shared / 2


def test_few_hashes_are_compared_each_with_each():
    hashes = np.random.default_rng(4).integers(0, 2**64, 60, dtype=np.uint64)
    assert hamming._plan(hashes, 6) == [((), 0)]


def test_flat_images_cost_next_to_nothing():
    random = np.random.default_rng(0)
    flat = np.zeros(200_000, np.uint64)
    flat[::1000] = random.integers(0, 2**64, 200, dtype=np.uint64)
    assert hamming.search_cost(np.unique(flat), 8) < 1e6
    assert (near_clusters(flat, 8) == 1).sum() >= 199_800


def test_equal_in_one_hash_is_searched_by_the_other():
    random = np.random.default_rng(1)
    alike = np.zeros(100_000, np.uint64)
    apart = random.integers(0, 2**64, len(alike), dtype=np.uint64)
    apart[77_777] = apart[5] ^ np.uint64(8)
    firsts = near_clusters(alike, 6, apart, 3)
    assert np.flatnonzero(firsts != np.arange(len(alike))).tolist() == [77_777]
    assert firsts[77_777] == 5


def test_bits_that_never_differ_do_not_crowd_the_buckets():
    random = np.random.default_rng(2)
    hashes = random.integers(0, 2**40, 100_000, dtype=np.uint64)
    assert hamming.search_cost(hashes, 3) < 1e8


@given(st.integers(1, 60), st.data())
def test_joined_members_have_the_same_first(count, data):
    member = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.tuples(member, member), max_size=80))
    components = UnionFind(count)
    near = np.eye(count, dtype=np.bool_)
    for one, other in pairs:
        components.join(np.array([one]), np.array([other]))
        near[one, other] = near[other, one] = True
    assert components.firsts().tolist() == brute_force(near).tolist()


def test_a_long_chain_is_one_group():
    components = UnionFind(50_000)
    components.join(np.arange(1, 50_000), np.arange(49_999))
    assert not components.firsts().any()


@given(st.lists(st.none() | st.integers(0, 5), max_size=30))
def test_equal_digests_are_grouped(values):
    digests = np.zeros((len(values), 32), np.uint8)
    # Some begin alike, as of a million digests a few may.
    digests[:, 0] = [(value or 0) % 3 for value in values]
    digests[:, 31] = [value or 0 for value in values]
    there = np.array([value is not None for value in values], np.bool_)
    wanted = [i if value is None else values.index(value) for i, value in enumerate(values)]
    assert equal_clusters(digests, there).tolist() == wanted


def test_looking_for_equal_digests_takes_little_more_than_the_digests_themselves():
    count = 50_000
    digests = np.random.default_rng(0).integers(0, 256, (count, 32), dtype=np.uint8)
    digests[-1] = digests[0]
    tracemalloc.start()
    try:
        firsts = equal_clusters(digests, np.ones(count, np.bool_))
        assert tracemalloc.get_traced_memory()[1] < 70 * count
    finally:
        tracemalloc.stop()
    assert firsts.tolist() == [*range(count - 1), 0]
