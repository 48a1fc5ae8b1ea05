"""Steps in flight: what starts before what, and how long a device had nothing to do."""

import threading

import pytest

from shardwright.components.image_trainer.training import in_flight
from shardwright.components.image_trainer.training.in_flight import StepsInFlight


class Clock(threading.local):
    """Each thread has its own time: that of the loop goes on with its batches, that of the reader with the losses."""

    now = 0.0

    def perf_counter(self):
        return self.now


CLOCK = Clock()


class Device:
    """Steps that take `takes` seconds each, one after the other, in the background."""

    device = "an accelerator"

    def __init__(self, takes, launching=0.0):
        self._takes, self._launching, self._free = takes, launching, 0.0

    def train(self, images, targets, several=False):
        CLOCK.now += self._launching
        self._free = max(CLOCK.now, self._free) + self._takes
        return Loss(images, self._free)


class Loss:
    def __init__(self, value, there):
        self._value, self._there = value, there

    def __float__(self):
        CLOCK.now = self._there
        return float(self._value)


def batches(every=0.0):
    number = 0
    while True:
        number += 1
        CLOCK.now += every
        yield number, None, f"positions {number}"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(in_flight, "time", CLOCK)
    CLOCK.now = 0.0
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
    # Every batch takes 60 ms, every step 40: of each batch the device misses 20 ms.
    assert waited(run(Device(0.04)), batches(every=0.06), 5) == pytest.approx(0.1)


def test_a_device_whose_steps_are_launched_too_slowly_waits_for_no_batch_and_is_idle(run):
    # Launching takes 50 ms, computing 20: of each step but the first the device misses 30 ms.
    flight, source = run(Device(0.02, launching=0.05)), batches()
    batch, steps = next(source), []
    for _ in range(5):
        batch = flight.start(batch, source)
        steps += flight.finished(1)
    steps += flight.finished()
    assert sum(step.waited for step in steps) == 0
    assert sum(step.idle for step in steps) == pytest.approx(4 * 0.03)


def test_after_a_step_that_failed_nothing_is_in_flight(run):
    class Fails:
        device = "cpu"

        def train(self, images, targets, several=False):
            return "no number"

    source, flight = batches(), run(Fails())
    flight.start(flight.start(next(source), source), source)
    with pytest.raises(ValueError, match="no number"):
        list(flight.finished())
    assert len(flight) == 0


def test_its_thread_ends_with_it():
    # The threads of other tests may end meanwhile.
    before = set(threading.enumerate())
    flight, source = StepsInFlight(Device(0.0)), batches()
    flight.start(next(source), source)
    (thread,) = set(threading.enumerate()) - before
    flight.close()
    thread.join(10)
    assert not thread.is_alive()
