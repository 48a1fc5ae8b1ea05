"""A map with several calls in flight: in order, and with a bound on what is held."""

import threading

import pytest

from shardwright.storage import in_groups, map_threads, parallel


def test_what_weighs_much_is_not_held_together(monkeypatch):
    monkeypatch.setattr(parallel, "_MOST_BYTES", 10)
    lock, held, most = threading.Lock(), [0], [0]

    def taken(weight):
        with lock:
            held[0] += weight
            most[0] = max(most[0], held[0])
        return weight

    weights = [3, 9, 1, 1, 1, 25, 4, 4, 4, 2]
    found = []
    for weight in map_threads(taken, weights, threads=4, weigh=lambda weight: weight):
        found.append(weight)
        with lock:
            held[0] -= weight
    assert found == weights
    # One item may weigh more than all may together; it goes alone, besides the results that are not released yet.
    assert most[0] <= 25 + 10


def test_items_are_taken_as_they_are_needed():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = map_threads(lambda number: number, items(), threads=2)
    assert next(results) == 0
    assert len(taken) <= 6
    results.close()


def test_one_thread_is_the_callers():
    threads = list(map_threads(lambda number: (number, threading.get_ident()), range(3), threads=1))
    assert threads == [(number, threading.get_ident()) for number in range(3)]


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_started_after_the_reader_has_gone(threads):
    called = []
    results = map_threads(lambda number: called.append(number), range(1000), threads=threads)
    next(results)
    results.close()
    assert len(called) < 10


def test_an_error_in_the_items_comes_through():
    def items():
        yield 1
        raise KeyError("lost")

    results = map_threads(lambda number: number, items())
    with pytest.raises(KeyError, match="lost"):
        list(results)


@pytest.mark.parametrize("size", [1, 12 << 20, 1 << 30])
def test_groups_keep_the_order_and_their_limits(size):
    taken, held = [], []
    for item in in_groups(taken_of(range(50), taken), lambda _: size):
        held.append(len(taken) - item)
    assert held[0] == max(held) == {1: 16, 12 << 20: 3, 1 << 30: 1}[size]
    assert taken == list(range(50))


def taken_of(items, taken):
    for item in items:
        taken.append(item)
        yield item
