"""The loop alone, over steps that compute nothing: how it ends, and with which message."""

import contextlib
import dataclasses
import itertools
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import keras
import numpy as np
import pytest
from recipes import changed, train_recipe

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.training.callbacks import NO_CALLBACKS, CallbackRunner
from shardwright.components.image_trainer.training.checkpoints import CheckpointFolder
from shardwright.components.image_trainer.training.learner import in_groups
from shardwright.components.image_trainer.training.loop import Loop, TrainState
from shardwright.components.image_trainer.training.training_progress import Preemption
from shardwright.config.trainer import CheckpointConfig, ProfileConfig
from shardwright.errors import ShardwrightError, Stopped, UsageError

RECIPE = train_recipe("unet", 4, 5, 2, 1e-2, 3, "eval")


class Counting:
    """Steps that count: the weight is the number of steps done, the loss the value of `losses` for the step."""

    devices, device, traces, in_one = 1, "cpu", 1, 1

    def __init__(self, losses, evaluated):
        self._losses, self.evaluated_losses = losses, evaluated
        self.weight = 0.0
        self.finished = False
        self.traced = []

    def batches(self, data, sizes=None):
        return in_groups(data, sizes, lambda *group: (None, None, np.stack([batch[2] for batch in group])))

    def train(self, images, targets, several=False):
        values = []
        for _ in range(self.in_one if several else 1):
            self.weight += 1
            value = self._losses(int(self.weight))
            if isinstance(value, BaseException):
                raise value
            values.append(value)
        return np.array(values) if several else values[0]

    def evaluate(self, images, targets, counted):
        loss = next(self.evaluated_losses)
        return lambda: (np.array([[0, 0]]), loss)

    def memory(self):
        return 1_000_000

    def trace(self, folder):
        self.traced.append((self.weight, folder))

    def evaluated(self):
        return contextlib.nullcontext()

    def write_variables(self):
        self.written = self.weight

    def state(self):
        return {"weights/00000": np.array([self.weight], np.float32), "optimizer/00000": np.array([7.0])}

    def restore(self, arrays):
        self.weight = float(arrays["weights/00000"][0])

    def together(self, values):
        return values

    def from_first(self, data):
        return data

    def finish(self):
        self.finished = True


@pytest.fixture
def make(tmp_path, write_shapes):
    data = write_shapes(tmp_path / "data", task="classification", counts={"train": 6, "test": 1})

    def loop(
        losses, *, recipe=RECIPE, metric=None, messages=None, preemption=None, every=2, callbacks=NO_CALLBACKS, **run
    ):
        spec = TrainSpec(
            changed(recipe, checkpoint=CheckpointConfig(every, keep=99), **run), str(data), "d", "classification",
            ("a", "b"), 24, 40, "stretch", None, None, "", "",
        )  # fmt: skip
        evaluated = iter(metric or ())

        def stream(step):
            while True:
                yield None, None, np.array([2 * step % 6, 2 * step % 6 + 1])
                step += 1

        work = TrainState(
            spec=spec,
            place=HostPlace(),
            batch_size=2,
            steps_per_epoch=3,
            data=stream,
            evaluation=(lambda: repeat((None, np.array([0]), np.array([1.0])))) if metric else None,
            evaluation_steps=1,
            evaluation_images=1,
            memory=1_500_000_000,
        )
        folder = CheckpointFolder(str(tmp_path / "checkpoints"), keep=99)
        steps = Counting(losses, evaluated)
        send = (lambda message: None) if messages is None else messages.append
        return Loop(work, steps, folder, preemption or Preemption(), send, callbacks=callbacks), steps, folder

    return loop


def test_checkpoints_every_so_many_steps_and_at_the_ends_of_epochs(make):
    loop, _, folder = make(lambda step: 1 / step)
    loop.run()
    assert folder.steps() == [2, 3, 4, 6, 8, 9, 10, 12, 14, 15]
    assert loop.progress.losses[0] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert loop.best["weights/00000"][0] == 15


@pytest.mark.parametrize("metric", [None, [0.5, 0.4, 0.3, 0.2, 0.1]], ids=["without evaluation", "with one"])
def test_the_seconds_of_the_epochs_add_up_to_no_more_than_the_run(make, monkeypatch, metric):
    """The clock ticks whenever it is asked, from the uptime of a machine on, and when the state is copied."""
    clock = itertools.count(1_000_000)
    monkeypatch.setattr("shardwright.components.image_trainer.training.loop.time.perf_counter", lambda: next(clock))
    loop, steps, _ = make(lambda step: 1.0, metric=metric)
    state = steps.state
    monkeypatch.setattr(steps, "state", lambda: (next(clock), state())[1])
    began = next(clock)
    loop.run()
    took, rates = next(clock) - began, loop.progress.rates
    assert len(rates) == 5
    assert all(0 < rate.training_seconds < rate.seconds for rate in rates)
    # What is left are the ticks between the epochs: the clock is asked once for each of them, and at both ends; and the
    # last weights are copied.
    assert took - sum(rate.seconds for rate in rates) <= len(rates) + 2


def test_a_loss_that_is_no_number_names_step_and_keys_and_the_last_good_checkpoint_stays(make):
    loop, steps, folder = make(lambda step: math.nan if step == 5 else 1.0)
    with pytest.raises(ShardwrightError) as caught:
        loop.run()
    assert str(caught.value) == (
        "the loss became nan in epoch 2, step 5 of 15. Its batch: train/002.png, train/003.png. Lower "
        "trainer.learning_rate, or look at these images. The last checkpoint is of step 4."
    )
    assert folder.latest().step == 4
    assert steps.finished


def test_weights_that_are_no_numbers_are_never_kept(make):
    loop, steps, folder = make(lambda step: setattr(steps, "weight", math.nan) or 1.0 if step == 4 else 1.0, every=1)
    with pytest.raises(ShardwrightError, match="a weight became nan in epoch 2, step 4 of 15"):
        loop.run()
    assert folder.steps() == [1, 2, 3]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes")])
def test_exhausted_memory_is_reported_with_the_estimate(make, error):
    loop, _, _ = make(lambda step: error if step == 2 else 1.0)
    with pytest.raises(
        ShardwrightError, match=r"out of memory at step 2: a batch of 2 images needs about 1.5 GB on each"
    ):
        loop.run()


@pytest.mark.parametrize("together", [2, 3, 4])
def test_steps_that_are_launched_together_end_where_an_epoch_or_a_checkpoint_does(make, together):
    launched = []
    loop, steps, folder = make(float, steps_per_launch=together, every=5)
    steps.in_one, train = together, steps.train

    def noted(images, targets, several=False):
        launched.append(together if several else 1)
        return train(images, targets, several)

    steps.train = noted
    loop.run()
    # Epochs have three steps, and checkpoints come after the fifth and the tenth, too.
    assert launched == {2: [2, 1, 2, 1, 2, 1, 1, 2, 2, 1], 3: [3, 1, 1, 1, 3, 1, 1, 1, 3], 4: [1] * 15}[together]
    assert sum(launched) == 15
    assert loop.progress.losses == [pytest.approx(3 * epoch + 2) for epoch in range(5)]
    assert folder.steps() == [3, 5, 6, 9, 10, 12, 15]


def test_steps_that_are_launched_together_are_logged_with_the_last_and_a_bad_one_is_named(make):
    messages = []
    loop, steps, _ = make(lambda step: math.nan if step == 8 else step, messages=messages, log_every=2, every=99,
                          steps_per_launch=3)  # fmt: skip
    steps.in_one = 3
    with pytest.raises(ShardwrightError, match=r"step 8 of 15. Its batch: train/002.png, train/003.png"):
        loop.run()
    assert [(m["step"], m["loss"]) for m in messages if "step" in m] == [(3, 2.0), (6, 5.0)]


def test_a_checkpoint_is_written_while_the_training_goes_on_and_whole_when_it_ends(make, monkeypatch):
    loop, _, folder = make(lambda step: started.set() or 1.0 if step == 4 else 1.0, every=2)
    started, save, written = threading.Event(), folder.save, []

    def slow(step, *arguments):
        # The first waits for a step after it: a loop that waited for the checkpoint would never start that.
        assert started.wait(60)
        written.append((step, arguments[0]["step"]))
        save(step, *arguments)

    monkeypatch.setattr(folder, "save", slow)
    loop.run()
    assert written == [(step, step) for step in (2, 3, 4, 6, 8, 9, 10, 12, 14, 15)]
    assert folder.steps() == [step for step, _ in written]


def test_a_checkpoint_that_cannot_be_written_ends_the_training(make, monkeypatch):
    loop, _, folder = make(lambda step: 1.0)
    monkeypatch.setattr(folder, "save", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        loop.run()


class Model:
    stop_training = False


class Notes:
    """A callback that notes its calls, and ends the training with an epoch."""

    def __init__(self, model, last):
        self.calls, self._model, self._last = [], model, last

    def __getattr__(self, method):
        def called(*arguments):
            self.calls.append((method, *arguments))
            self._model.stop_training = method == "on_epoch_end" and arguments[0] == self._last

        return called


def with_notes(last):
    model = Model()
    notes = Notes(model, last)
    return notes, CallbackRunner("mine:callbacks", [notes], model)


def test_callbacks_are_called_as_keras_calls_them_and_may_end_the_training(make):
    notes, callbacks = with_notes(last=1)
    loop, steps, folder = make(float, callbacks=callbacks, metric=[1.0, 0.5, 0.25])
    loop.run()
    batches = [
        [("on_train_batch_begin", number), ("on_train_batch_end", number, {"loss": float(3 * epoch + number + 1)})]
        for epoch in range(2)
        for number in range(3)
    ]
    first, second = ([call for calls in batches[at : at + 3] for call in calls] for at in (0, 3))
    ends = [call for call in notes.calls if call[0] in ("on_epoch_end", "on_train_end")]
    assert notes.calls == [
        ("on_train_begin",), ("on_epoch_begin", 0), *first, ends[0], ("on_epoch_begin", 1), *second, *ends[1:],
    ]  # fmt: skip
    assert [call[:-1] for call in ends] == [("on_epoch_end", 0), ("on_epoch_end", 1), ("on_train_end",)]
    assert ends[1][-1]["loss"] == 5.0
    assert ends[1][-1]["val_loss"] == 0.5
    assert ends[2][-1] == ends[1][-1]
    assert (loop.progress.epochs, loop.progress.stopped, steps.written) == (2, True, 6)

    # The end is part of the checkpoint: a training that was interrupted right after it does not go on.
    again, callbacks = with_notes(last=9)
    loop, _, _ = make(float, callbacks=callbacks, metric=[0.1])
    loop.run()
    assert (loop.progress.epochs, again.calls) == (2, [])
    assert folder.steps()[-1] == 6


class Late:
    """A loss that notes when it is read."""

    def __init__(self, step, events):
        self._step, self._events = step, events

    def __float__(self):
        self._events.append(f"loss {self._step}")
        return 1.0


def test_a_gradient_that_is_no_number_ends_it_though_the_loss_is_one(make):
    loop, _, folder = make(lambda step: np.array([1.0, math.inf if step == 5 else 2.0]))
    with pytest.raises(ShardwrightError, match=r"the norm of the gradient became inf in epoch 2, step 5 of 15. Its b"):
        loop.run()
    assert folder.latest().step == 4


def test_every_so_many_steps_their_values_are_sent(make):
    messages = []
    loop, _, _ = make(lambda step: np.array([step, 10.0 * step]), messages=messages, log_every=2)
    loop.run()
    lines = [message for message in messages if "step" in message]
    # Each line begins where the one before it, or the epoch, did.
    assert [(m["step"], m["loss"], m["gradient_norm"]) for m in lines] == [
        (2, 1.5, 20.0), (4, 4.0, 40.0), (6, 5.5, 60.0), (8, 7.5, 80.0), (10, 10.0, 100.0), (12, 11.5, 120.0),
        (14, 13.5, 140.0),
    ]  # fmt: skip
    assert {(m["steps"], m["memory"]) for m in lines} == {(15, 1_000_000)}
    assert all(m["images_per_second"] > 0 <= m["input"] <= m["idle"] <= 1 for m in lines)


def test_a_trace_has_the_steps_that_were_asked_for(make):
    loop, steps, _ = make(lambda step: 1.0, profile=ProfileConfig((4, 6)))
    loop.run()
    # By the steps done when it begins and ends.
    assert [(done, folder is None) for done, folder in steps.traced] == [(3, False), (5, True)]
    loop, steps, folder = make(lambda step: KeyboardInterrupt() if step == 5 else 1.0, profile=ProfileConfig((4, 6)))
    folder.remove()
    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert [folder is None for _, folder in steps.traced] == [False, True]


def test_only_some_epochs_are_evaluated_and_the_last_one_always(make):
    messages = []
    loop, _, _ = make(float, recipe=changed(RECIPE, evaluate_every=3), metric=[0.5, 0.6], messages=messages)
    loop.run()
    assert [bool(found) for found in loop.progress.evaluations] == [False, False, True, False, True]
    assert loop.progress.best_epoch == 3
    assert [m["eval"].get("loss") for m in messages if "epoch" in m] == [None, None, 0.5, None, 0.6]


def test_the_next_step_waits_on_the_device_before_the_loss_is_recorded(make):
    events, started = [], threading.Event()

    class Waits(Late):
        # Its loss is there once the second step has started: a loop that reads it before that would never start it.
        def __float__(self):
            assert started.wait(60)
            return super().__float__()

    def loss(step):
        if step == 2:
            started.set()
        return (Waits if step == 1 else Late)(step, events)

    loop, _, folder = make(loss, every=3)
    loop.run()
    assert events == [f"loss {step}" for step in range(1, 16)]
    assert folder.steps() == [3, 6, 9, 12, 15]


@pytest.mark.parametrize("method", ["on_train_batch_begin", "on_train_batch_end", "on_batch_end", None])
def test_only_callbacks_of_a_batch_see_one_step_at_a_time(make, method):
    events = []
    own = {method: lambda self, batch, logs=None: events.append(f"call {batch}")} if method else {}
    callback = type("Mine", (keras.callbacks.Callback,), own)()
    callbacks = CallbackRunner("mine:callbacks", [callback], Model())

    def loss(step):
        events.append(f"start {step}")
        return 1.0

    loop, _, _ = make(loss, recipe=changed(RECIPE, epochs=1), callbacks=callbacks)
    loop.run()
    calls = [f"call {number}" for number in range(3)]
    starts = [f"start {step}" for step in range(1, 4)]
    assert callbacks.each_batch == bool(method)
    if method is None:
        assert events == starts
    elif method == "on_train_batch_begin":
        assert events == [event for pair in zip(calls, starts, strict=True) for event in pair]
    else:
        assert events == [event for pair in zip(starts, calls, strict=True) for event in pair]


def test_an_error_in_a_callback_names_it(make):
    class Breaks:
        def __getattr__(self, method):
            def called(*arguments):
                if method == "on_epoch_end":
                    raise RuntimeError("no such server")

            return called

    loop, _, folder = make(float, callbacks=CallbackRunner("mine:callbacks", [Breaks()], Model()))
    message = r"trainer\.callbacks: mine:callbacks: Breaks\.on_epoch_end failed \(RuntimeError: no such server\)"
    with pytest.raises(UsageError, match=message):
        loop.run()
    assert folder.steps() == [2]


def test_any_other_error_keeps_its_traceback(make):
    loop, _, _ = make(lambda step: KeyError("odd"))
    with pytest.raises(KeyError):
        loop.run()


def test_epochs_without_a_better_one_end_it_and_the_best_weights_stay(make):
    metric = [0.5, 0.3, 0.4, 0.6, 0.2]
    loop, _, folder = make(lambda step: 1.0, recipe=changed(RECIPE, patience=2), metric=metric)
    loop.run()
    assert (loop.progress.epochs, loop.progress.best_epoch) == (4, 2)
    assert loop.best["weights/00000"][0] == 6
    assert set(loop.best) == {"weights/00000"}
    assert folder.latest().best["weights/00000"][0] == 6


@pytest.mark.parametrize("killed_at", range(1, 15))
def test_from_every_step_it_goes_on_to_the_same_end(make, killed_at):
    metric = [0.5, 0.3, 0.4, 0.6, 0.2]
    whole, _, folder = make(lambda step: 1 / step, metric=metric)
    whole.run()
    folder.remove()
    first, _, folder = make(lambda step: KeyboardInterrupt() if step == killed_at else 1 / step, metric=metric)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    done = first.progress.epochs
    messages = []
    second, _, _ = make(lambda step: 1 / step, metric=metric[done:], messages=messages)
    second.run()
    assert second.progress.losses == whole.progress.losses
    assert second.progress.evaluations == whole.progress.evaluations
    assert second.progress.best_epoch == whole.progress.best_epoch
    assert second.best["weights/00000"] == whole.best["weights/00000"]
    assert [m["epoch"] for m in messages if "epoch" in m] == [1, 2, 3, 4, 5]


def test_after_a_signal_it_saves_the_current_step(make):
    preemption = Preemption()

    def stopping(step):
        if step == 7:
            preemption.signal = "SIGTERM"
        return 1.0

    loop, steps, folder = make(stopping, preemption=preemption, every=100)
    with pytest.raises(Stopped, match=r"stopped \(SIGTERM\) and saved its state at step 7 of 15"):
        loop.run()
    assert folder.latest().step == 7
    assert steps.finished


@pytest.mark.parametrize("at", [1, 2])
def test_after_a_signal_in_an_evaluation_it_saves_immediately_and_evaluates_again(make, at):
    metric = [0.5, 0.3, 0.4, 0.6, 0.2]
    whole, _, folder = make(lambda step: 1 / step, metric=metric)
    whole.run()
    folder.remove()
    preemption, evaluated = Preemption(), []

    def stopping():
        for number, value in enumerate(metric, 1):
            evaluated.append(number)
            preemption.signal = "SIGTERM" if number == at else ""
            yield value

    loop, _, folder = make(lambda step: 1 / step, metric=stopping(), preemption=preemption, every=100)
    with pytest.raises(ShardwrightError, match=rf"stopped \(SIGTERM\) and saved its state at step {3 * at} of 15"):
        loop.run()
    assert folder.latest().step == 3 * at
    assert evaluated == list(range(1, at + 1))
    again, _, _ = make(lambda step: 1 / step, metric=metric[at - 1 :])
    again.run()
    assert again.progress.losses == whole.progress.losses
    assert again.progress.evaluations == whole.progress.evaluations
    assert again.best["weights/00000"] == whole.best["weights/00000"]


def test_after_a_signal_in_an_evaluation_no_further_batch_is_read(make):
    preemption, seen = Preemption(), []

    def batches():
        for number in range(9):
            seen.append(number)
            preemption.signal = "SIGTERM" if number == 1 else ""
            yield None, np.array([0]), np.array([1.0])

    loop, _, _ = make(lambda step: 1.0, metric=[0.5] * 9, preemption=preemption)
    loop.work = dataclasses.replace(loop.work, evaluation=batches, evaluation_steps=9)
    with pytest.raises(ShardwrightError, match="saved its state at step 3"):
        loop.run()
    assert seen == [0, 1]


# In the middle of an evaluation the hosts agree at every tenth batch; one takes the next out of its source first.
@pytest.mark.parametrize(("stop_at", "taken"), [("step 2", 1), ("batch 3", 11), ("batch 12", 21), ("batch 23", 25)])
def test_one_of_two_hosts_gets_a_signal_and_both_leave_the_evaluation_at_the_same_batch(make, stop_at, taken):
    barrier, parts, seen, kept = threading.Barrier(2, timeout=60), [np.zeros(0), np.zeros(0)], [0, 0], []

    def host(index):
        preemption = Preemption()

        def stop(what):
            if index == 1 and what == stop_at:
                preemption.signal = "SIGTERM"

        def together(values):
            parts[index] = values
            barrier.wait()
            total = parts[0] + parts[1]
            barrier.wait()
            return total

        def batches():
            for number in range(100):
                stop(f"batch {number}")
                seen[index] += 1
                yield None, np.array([0]), np.array([1.0])

        loop, steps, folder = make(lambda step: stop(f"step {step}") or 1.0, metric=[0.5] * 100, preemption=preemption)
        kept.append(folder)
        place = HostPlace(index, 2, "here:1")
        loop.work = dataclasses.replace(loop.work, place=place, evaluation=batches, evaluation_steps=25)
        steps.together = together
        with pytest.raises(ShardwrightError) as caught:
            loop.run()
        assert steps.finished
        return str(caught.value)

    with ThreadPoolExecutor(2) as hosts:
        messages = list(hosts.map(host, range(2)))
    how = ["another host", "SIGTERM"]
    for who, text in zip(how, messages, strict=True):
        assert f"stopped ({who}) and saved its state at step 3 of 15" in text
    assert seen == [taken, taken]
    assert kept[0].latest().step == 3
