"""Steps in flight: what starts before what, and how long a device had nothing to do."""

import threading
import time

import pytest

from shardwright.components.image_trainer.training.in_flight import StepsInFlight


class Device:
    """Steps that take `takes` seconds each, one after the other, in the background."""

    def __init__(self, takes):
        self._takes, self._free = takes, 0.0

    def train(self, images, targets):
        self._free = max(time.perf_counter(), self._free) + self._takes
        return Loss(images, self._free)


class Loss:
    def __init__(self, value, there):
        self._value, self._there = value, there

    def __float__(self):
        time.sleep(max(0.0, self._there - time.perf_counter()))
        return float(self._value)


def batches(every=0.0):
    number = 0
    while True:
        number += 1
        time.sleep(every)
        yield number, None, f"positions {number}"


@pytest.fixture
def run():
    made = []

    def of(steps):
        made.append(StepsInFlight(steps))
        return made[-1]

    yield of
    for one in made:
        one.close()


def test_steps_finish_in_their_order_and_one_stays_behind(run):
    source, flight = batches(), run(Device(0.0))
    batch, found = next(source), []
    for _ in range(5):
        batch = flight.start(batch, source)
        found += flight.finished(1)
    assert [(step.loss, step.positions) for step in found] == [(n, f"positions {n}") for n in range(1, 5)]
    assert [step.loss for step in flight.finished()] == [5]
    assert len(flight) == 0


def waited(flight, source, count):
    batch, total = next(source), 0.0
    for _ in range(count):
        batch = flight.start(batch, source)
        total += sum(step.waited for step in flight.finished(1))
    return total + sum(step.waited for step in flight.finished())


def test_a_device_that_is_busy_all_the_time_waits_for_nothing(run):
    assert waited(run(Device(0.05)), batches(every=0.005), 5) == 0


def test_a_device_waits_only_from_the_end_of_its_step_to_the_next_batch(run):
    # Every batch takes 60 ms, every step 40: of each batch the device misses 20 ms, and a busy machine adds to them.
    assert 0.08 <= waited(run(Device(0.04)), batches(every=0.06), 5) <= 0.25


def test_after_a_step_that_failed_nothing_is_in_flight(run):
    class Fails:
        def train(self, images, targets):
            return "no number"

    source, flight = batches(), run(Fails())
    flight.start(flight.start(next(source), source), source)
    with pytest.raises(ValueError, match="no number"):
        list(flight.finished())
    assert len(flight) == 0


def test_its_thread_ends_with_it():
    before = threading.active_count()
    flight, source = StepsInFlight(Device(0.0)), batches()
    flight.start(next(source), source)
    assert threading.active_count() == before + 1
    flight.close()
    deadline = time.perf_counter() + 10
    while threading.active_count() > before and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
