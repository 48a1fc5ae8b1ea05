"""Shares of hosts: disjoint, complete, even."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.dataset.host_sharding import RecordRange, host_ranges, padded_steps, share_sizes

counts = st.lists(st.integers(0, 40), min_size=1, max_size=20)


def records(share):
    return [(shard, first + n) for shard, first, number in share for n in range(number)]


@given(counts, st.sampled_from((1, 2, 3, 4, 8, 16, 32)))
def test_every_record_is_read_by_one_host(counts, hosts):
    shares = [host_ranges(counts, host, hosts) for host in range(hosts)]
    seen = [record for share in shares for record in records(share)]
    assert sorted(seen) == [(shard, n) for shard, count in enumerate(counts) for n in range(count)]
    assert share_sizes(counts, hosts) == [len(records(share)) for share in shares]
    assert all(stretch.records > 0 for share in shares for stretch in share)


@given(counts, st.sampled_from((1, 2, 3, 4, 8, 16, 32)))
def test_shares_are_even(counts, hosts):
    sizes = share_sizes(counts, hosts)
    assert max(sizes) - min(sizes) <= max(1, len(counts) // hosts)


@given(st.integers(0, 50), st.integers(1, 8), st.sampled_from((1, 2, 4)))
def test_planned_shards_are_shared_out_whole(least, each, hosts):
    shards = [least + (number % 3 == 0) for number in range(each * hosts)]
    for host in range(hosts):
        share = host_ranges(shards, host, hosts)
        assert share == [RecordRange(n, 0, shards[n]) for n in range(host, len(shards), hosts) if shards[n]]


@given(counts, st.sampled_from((1, 2, 3, 4, 8, 16, 32)), st.integers(1, 9))
def test_padded_steps_are_the_fewest_that_hold_every_share(counts, hosts, batch):
    steps, sizes = padded_steps(counts, hosts, batch), share_sizes(counts, hosts)
    assert all(size <= steps * batch for size in sizes)
    assert steps == 0 or max(sizes) > (steps - 1) * batch


def test_fewer_shards_than_hosts_are_cut():
    assert [host_ranges([5, 4], host, 4) for host in range(4)] == [
        [RecordRange(0, 0, 2)],
        [RecordRange(0, 2, 2)],
        [RecordRange(0, 4, 1), RecordRange(1, 0, 1)],
        [RecordRange(1, 1, 3)],
    ]


@pytest.mark.parametrize("host", [-1, 2])
def test_a_host_that_cannot_be_is_refused(host):
    with pytest.raises(ValueError, match=f"host {host} of 2"):
        host_ranges([3], host, 2)
