"""The global order: every record once an epoch, the same from any step and for any number of hosts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.loader.global_order import GlobalOrder, StepPlan

HOSTS = (1, 2, 3, 4, 8, 16, 32)
counts = st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any).map(tuple)
GOLDEN = [(2, 0), (2, 3), (2, 1), (2, 2), (0, 1), (0, 3), (0, 0), (0, 2), (1, 2), (1, 0), (0, 4), (1, 1)]
orders = st.builds(GlobalOrder, counts, st.none() | st.integers(0, 2**70), st.integers(1, 60))


def pairs(records):
    return list(zip(records.shard.tolist(), records.record.tolist(), strict=True))


def everything(order):
    return sorted((shard, record) for shard, count in enumerate(order.counts) for record in range(count))


@given(orders, st.integers(0, 5))
def test_an_epoch_holds_every_record_once(order, epoch):
    places = np.arange(epoch * order.records, (epoch + 1) * order.records)
    assert sorted(pairs(order.at(places))) == everything(order)


@given(orders, st.lists(st.integers(0, 400), max_size=30))
def test_a_place_alone_holds_what_it_holds_in_the_whole(order, places):
    whole = pairs(order.at(np.arange(401)))
    assert pairs(order.at(np.array(places, np.int64))) == [whole[place] for place in places]


@given(orders, st.integers(1, 4), st.sampled_from(HOSTS), st.integers(0, 20))
def test_hosts_share_a_step_whatever_their_number(order, each, hosts, step):
    steps = StepPlan(order, each * 96)  # 96 is a multiple of every number of hosts
    together = [pair for host in range(hosts) for pair in pairs(steps.training(step, host, hosts))]
    assert together == pairs(steps.training(step))


@given(orders, st.integers(1, 64), st.sampled_from(HOSTS))
def test_an_evaluation_counts_every_record_once_on_any_hosts(order, each, hosts):
    steps = StepPlan(order, each * hosts)
    seen = []
    for step in range(steps.per_epoch):
        for host in range(hosts):
            records, counted = steps.evaluation(step, host, hosts)
            assert len(records.shard) == each
            seen += [pair for pair, counts_ in zip(pairs(records), counted.tolist(), strict=True) if counts_]
    assert sorted(seen) == everything(order)
    assert not steps.evaluation(steps.per_epoch)[1].any()


def test_without_a_seed_the_order_is_that_of_the_disk():
    assert pairs(GlobalOrder((2, 0, 3), None, 4).at(np.arange(5))) == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]


def test_seeds_and_epochs_differ():
    order = GlobalOrder((500, 500), 1, 256)
    first = pairs(order.at(np.arange(1000)))
    assert first != pairs(order.at(np.arange(1000, 2000)))
    assert first != pairs(GlobalOrder((500, 500), 2, 256).at(np.arange(1000)))
    assert first != everything(order)


def test_the_order_never_changes_between_versions():
    order = GlobalOrder((5, 3, 4), 11, 4)
    assert pairs(order.at(np.arange(12))) == GOLDEN


def test_mixing_is_even():
    """The place of the disk's first record is uniform over its window."""
    window = 16
    places = np.array(
        [np.argsort(GlobalOrder((window,), seed, window).at(np.arange(window)).record)[0] for seed in range(4000)]
    )
    found = np.bincount(places, minlength=window)
    assert np.sum((found - 250) ** 2 / 250) < 44.3  # chi squared, 15 degrees of freedom: 1 in 10,000


@pytest.mark.parametrize(("counts", "window"), [((), 1), ((0, 0), 4), ((3,), 0), ((3, -1), 2)])
def test_an_order_of_nothing_is_refused(counts, window):
    with pytest.raises(ValueError, match="no order"):
        GlobalOrder(counts, 1, window)


@pytest.mark.parametrize(("host", "hosts", "step"), [(0, 5, 0), (2, 2, 0), (-1, 2, 0), (0, 0, 0), (0, 2, -1)])
def test_a_host_that_cannot_be_is_refused(host, hosts, step):
    with pytest.raises(ValueError, match="host"):
        StepPlan(GlobalOrder((10,), 1), 8).training(step, host, hosts)


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="batch of 0"):
        StepPlan(GlobalOrder((10,), 1), 0)


def test_shards_have_another_order_in_every_epoch():
    first, second = (GlobalOrder((1,) * 20, 3, 1).at(np.arange(20) + 20 * epoch).shard.tolist() for epoch in (0, 1))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(20))
