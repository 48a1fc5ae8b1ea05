"""The training loop: steps, epochs, evaluation and checkpoints. An interrupted training continues from the last one."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.devices.placement import out_of_memory, readable
from shardwright.components.image_trainer.spec import LOG_FOLDER, TrainSpec
from shardwright.components.image_trainer.training.callbacks import NO_CALLBACKS, CallbackRunner
from shardwright.components.image_trainer.training.checkpoints import (
    Arrays,
    CheckpointFolder,
    decode_checkpoint,
    encode_checkpoint,
    weights_of,
)
from shardwright.components.image_trainer.training.evaluate_split import evaluate, keys_at, shown
from shardwright.components.image_trainer.training.in_flight import WAITING, StepsInFlight, launched_steps
from shardwright.components.image_trainer.training.learner import Backend
from shardwright.components.image_trainer.training.step_log import StepLog, stall_advice
from shardwright.components.image_trainer.training.training_progress import Preemption, Progress, Rate
from shardwright.errors import ShardwrightError, Stopped
from shardwright.evaluation.metrics import as_good, better

# After so many steps, or batches of an evaluation, the hosts exchange whether one of them received a signal to stop.
_AGREE_EVERY = 10
# So many pixels of a device are computed by one launch, in steps of small images: a launch takes milliseconds.
_LAUNCHED_PIXELS, _MOST_LAUNCHED = 1 << 22, 16
_BEST = "best/"
TRAIN = "train"


@dataclass(frozen=True)
class TrainState:
    """The batches and sizes of a loop.

    Attributes:
        spec: the training.
        place: this host among all.
        batch_size: images of a batch over all hosts.
        steps_per_epoch: steps of an epoch, the same on every host.
        data: training batches of this host from a step on, without end: images, targets, positions in the split.
        evaluation: passes over this host's part of the evaluation split, without end; `None` without such a split.
        evaluation_steps: batches of one pass, the same on every host.
        evaluation_images: images of the evaluation split.
        memory: estimated bytes of a step.
    """

    spec: TrainSpec
    place: HostPlace
    batch_size: int
    steps_per_epoch: int
    data: Callable[[int], Any]
    evaluation: Callable[[], Any] | None
    evaluation_steps: int
    evaluation_images: int
    memory: int


def steps_per_launch(work: TrainState, steps: Backend) -> int:
    """Returns how many steps to launch together: `trainer.steps_per_launch`, or what suits device and images."""
    chosen = work.spec.recipe.trainer.steps_per_launch
    if chosen is not None or steps.device == "cpu":
        return chosen or 1
    pixels = work.batch_size * work.spec.height * work.spec.width // steps.devices
    return max(1, min(_MOST_LAUNCHED, _LAUNCHED_PIXELS // max(pixels, 1)))


class Loop:
    """A training from its checkpoint, or its beginning, to its end.

    Args:
        work: batches and sizes.
        steps: the model in training.
        folder: its checkpoints; only host 0 reads and writes them.
        preemption: notes signals to stop.
        send: gets the values of every epoch: `epoch` from 1, `epochs`, `loss` and, under `eval`, the metrics; and
            those of `StepLog`.
        rate: from the number of steps done to the learning rate of the next one.
        callbacks: the user's Keras callbacks.

    Attributes:
        work: batches and sizes.
        progress: the state without the model's numbers.
        best: weights of the best epoch; without an evaluation split those of the last one.
    """

    def __init__(
        self,
        work: TrainState,
        steps: Backend,
        folder: CheckpointFolder,
        preemption: Preemption,
        send: Callable[[dict[str, Any]], None],
        rate: Callable[[int], float] = lambda step: math.nan,
        callbacks: CallbackRunner = NO_CALLBACKS,
    ) -> None:
        self.work = work
        every = work.spec.recipe.trainer.log_every
        self._log = StepLog(every, work.batch_size, self._all_steps(), rate, steps.memory, send)
        self._advised = self._tracing = False
        self._steps, self._folder = steps, folder
        self._in_flight = StepsInFlight(steps)
        self._preemption, self._send = preemption, send
        self._callbacks = callbacks
        self._saved = -1
        # Writes checkpoints in their order while the devices work.
        self._writer = ThreadPoolExecutor(1)
        self._writing: list[Future[None]] = []
        self._positions: Any = ()
        self._held_out: Iterator[tuple[Any, ...]] | None = None
        self._waited = self._idle = self._worked = 0.0
        self._counted = 0
        self.progress = Progress()
        self.best: Arrays = {}

    def run(self) -> None:
        """Trains.

        Raises:
            ShardwrightError: the loss is not finite, memory is exhausted, or a host received a signal to stop.
        """
        self._resume()
        limits = self.work.spec.epochs, self.work.spec.recipe.trainer.patience
        try:
            if not self.progress.ended(*limits):
                # All iterators before the first step: TensorFlow decodes images one by one in iterators made later.
                batches = self._steps.batches(self.work.data(self.progress.step), self._launches())
                if self.work.evaluation is not None:
                    self._held_out = self._steps.batches(self.work.evaluation())
                if self._callbacks:
                    # With the weights that the training begins or resumes with.
                    self._steps.write_variables()
                    self._callbacks.call("on_train_begin")
                batch = next(batches)
                while not self.progress.ended(*limits):
                    batch = self._epoch(batch, batches)
                self._callbacks.call("on_train_end", self._epoch_logs())
                self._finish_writing()
        except ShardwrightError:
            raise
        except Exception as error:
            if out_of_memory(error):
                step = self.progress.step + len(self._in_flight) + 1
                raise ShardwrightError(
                    f"out of memory at step {step}: a batch of {self.work.batch_size} images needs about "
                    f"{readable(self.work.memory)} on each of {self._steps.devices} devices. "
                    "Lower trainer.batch_size, trainer.base_filters or transform.size."
                ) from None
            raise
        finally:
            self._in_flight.close()
            # The folder must not be left, and its lock, while a checkpoint is being written.
            self._writer.shutdown()
            if self._tracing:
                self._steps.trace(None)
        if not self.best:
            self.progress.best_epoch = self.progress.epochs
            with self._steps.evaluated():
                self.best = weights_of(self._steps.state())

    def _epoch(self, batch: tuple[Any, ...], batches: Any) -> tuple[Any, ...]:
        """Finishes an epoch; returns the first batch of the next one."""
        work, progress = self.work, self.progress
        begun = time.perf_counter()
        self._waited = self._idle = self._worked = 0.0
        self._counted = 0
        self._log.restart()
        end = (progress.epochs + 1) * work.steps_per_epoch
        self._callbacks.call("on_epoch_begin", progress.epochs)
        while (before := progress.step + len(self._in_flight)) < end:
            batch = self._step(batch, batches)
            number = progress.step + len(self._in_flight)
            self._stop_if_asked(number, number - before)
            if number % work.spec.recipe.trainer.checkpoint.every == 0 and number < end:
                self._save()
                self._log.restart()
        self._finish_all()
        trained = time.perf_counter() - begun
        metrics = self._evaluate()
        # Before the epoch is recorded: a training that resumes from here evaluates again.
        self._stop_if_asked()
        progress.losses.append(progress.epoch_loss / work.steps_per_epoch)
        progress.epoch_loss = 0.0
        self._choose(metrics)
        speed = self._counted / self._worked if self._worked else 0.0
        waited, idle = (part / self._worked if self._worked else 0.0 for part in (self._waited, self._idle))
        progress.rates.append(Rate(speed, waited, time.perf_counter() - begun, trained, idle))
        if self._callbacks:
            # With the weights that were evaluated.
            with self._steps.evaluated():
                self._steps.write_variables()
                self._callbacks.call("on_epoch_end", progress.epochs - 1, self._epoch_logs())
            progress.stopped = self._any_host(self._callbacks.stop_training)
        self._save()
        # Again, now that the checkpoint is written.
        progress.rates[-1] = Rate(speed, waited, time.perf_counter() - begun, trained, idle)
        # That the devices had no work is no news on a CPU.
        advice = "" if self._advised or self._steps.device == "cpu" else stall_advice(waited, idle)
        if advice:
            self._advised = True
            self._send({"note": advice})
        self._report(progress.epochs - 1)
        return batch

    def _step(self, batch: tuple[Any, ...], batches: Any) -> tuple[Any, ...]:
        """Starts a step, finishes the one before it while the devices work, and returns the next batch.

        Callbacks that are called for every batch see its loss before the next step starts.
        """
        first, last = self.work.spec.recipe.trainer.profile.steps or (0, 0)
        if self._tracing != (first <= self.progress.step + len(self._in_flight) + 1 < last):
            # The trace of `trainer.profile` begins or ends here.
            self._finish_all()
            self._tracing = not self._tracing
            self._steps.trace(str(Path(self.work.spec.output, LOG_FOLDER)) if self._tracing else None)
        begun, traces, before = time.perf_counter(), self._steps.traces, (self._waited, self._idle)
        number = (self.progress.step + len(self._in_flight)) % self.work.steps_per_epoch
        self._callbacks.call("on_train_batch_begin", number)
        following = self._in_flight.start(batch, batches)
        traced = self._steps.traces != traces
        self._finish_steps(0 if traced or self._callbacks.each_batch else WAITING)
        if traced:
            # Compiling is not part of the speed.
            self._waited, self._idle = before
            self._log.restart()
        else:
            self._worked += time.perf_counter() - begun
            self._counted += self.work.batch_size * launched_steps(batch[2])
        return following

    def _launches(self) -> Iterator[int]:
        """Yields how many steps to launch together, from the next one on: several, or one where they must end.

        It depends on the step alone, so that a resumed training launches the same steps together.
        """
        work, trainer = self.work, self.work.spec.recipe.trainer
        together, step = steps_per_launch(work, self._steps), self.progress.step
        while True:
            ends = [(step // every + 1) * every for every in (work.steps_per_epoch, trainer.checkpoint.every)]
            ends += [first - 1 for first in trainer.profile.steps if first - 1 > step]
            count = together if step + together <= min(ends) and not self._callbacks.each_batch else 1
            step += count
            yield count

    def _finish_steps(self, left: int = 0) -> None:
        """Records steps in their order, until `left` of them are in flight."""
        for step in self._in_flight.finished(left):
            self._positions = step.positions
            if not math.isfinite(step.loss):
                raise self._end(self._not_finite(step.loss))
            if step.norm is not None and not math.isfinite(step.norm):
                raise self._end(self._not_finite(step.norm, what="the norm of the gradient"))
            number = self.progress.step % self.work.steps_per_epoch
            self._waited += step.waited
            self._idle += step.idle
            self.progress.step += 1
            self.progress.epoch_loss += step.loss
            self._log.add(self.progress.step, step)
            self._callbacks.call("on_train_batch_end", number, {"loss": step.loss})

    def _finish_all(self) -> None:
        """Records all steps in flight: what follows needs the state after them."""
        begun = time.perf_counter()
        self._finish_steps()
        self._worked += time.perf_counter() - begun

    def _epoch_logs(self) -> dict[str, float]:
        """Returns the loss and metrics of the last epoch, under the names that Keras gives them."""
        progress = self.progress
        held_out = progress.evaluations[-1] if progress.evaluations else {}
        return {"loss": progress.losses[-1], **{f"val_{name}": value for name, value in held_out.items()}}

    def _evaluate(self) -> dict[str, float] | None:
        """Returns metrics of the model, none in an epoch that is not evaluated.

        They are incomplete after a signal to stop, which leaves no time for all batches.
        """
        work, epoch = self.work, self.progress.epochs + 1
        if self._held_out is None:
            return None
        if epoch % work.spec.recipe.trainer.evaluate_every and epoch != work.spec.epochs:
            return {}
        numbered = enumerate(islice(self._held_out, work.evaluation_steps))
        batches = (batch for _, batch in takewhile(lambda pair: not self._asked_to_stop(pair[0]), numbered))
        with self._steps.evaluated():
            return evaluate(self._steps.evaluate, batches, work.spec, self._steps.together)

    def _choose(self, metrics: dict[str, float] | None) -> None:
        """Records the metrics of the epoch, and keeps its weights if they are the best, or as good and later.

        Later weights have learned more at a lower rate, and the best of many measurements on few images is luck.
        """
        work, progress = self.work, self.progress
        if metrics is None:
            progress.best_epoch = progress.peak_epoch = progress.epochs
            progress.best_step = 0
            return
        task, multi, peak = work.spec.task, work.spec.multi, progress.peak
        progress.evaluations.append(metrics)
        if not metrics:
            return
        if better(task, metrics, peak, multi=multi):
            progress.peak_epoch = progress.epochs
        elif peak is None or not as_good(task, metrics, peak, work.evaluation_images, multi=multi):
            return
        with self._steps.evaluated():
            self.best = weights_of(self._steps.state())
        progress.best_epoch, progress.best_step = progress.epochs, progress.step
        self._check_finite(self.best)
        if work.place.publishes:
            self._write(self._folder.save_best, progress.step, self.best)

    def _report(self, index: int) -> None:
        """Sends the results of an epoch."""
        progress, rate = self.progress, self.progress.rates[index]
        message = {
            "epoch": index + 1,
            "epochs": self.work.spec.epochs,
            "loss": progress.losses[index],
            "images_per_second": rate.images_per_second,
            "input_bound": rate.input_bound,
            "idle": rate.idle,
        }
        self._send({**message, "eval": progress.evaluations[index]} if progress.evaluations else message)

    def _save(self) -> None:
        """Copies the state, and writes it on host 0 while the training goes on."""
        self._finish_all()
        if self._saved == self.progress.step:
            return
        arrays = self._steps.state()
        self._check_finite(arrays)
        self._saved = self.progress.step
        if self.work.place.publishes:
            # As it is now: the loop changes it.
            meta = copy.deepcopy(self.progress.to_dict())
            self._write(self._folder.save, self.progress.step, meta, arrays, self.progress.best_step)

    def _write(self, save: Callable[..., None], *arguments: Any) -> None:
        """Has a checkpoint written after those before it; of states at most two are in memory."""
        while len(self._writing) > 1 or (self._writing and self._writing[0].done()):
            self._writing.pop(0).result()
        self._writing.append(self._writer.submit(save, *arguments))

    def _finish_writing(self, *, alone: bool = False) -> None:
        """Waits until host 0 has written all checkpoints; the others wait, so that no host ends before, if not `alone`.

        Raises:
            StorageError: a bucket did not answer for minutes.
        """
        while self._writing:
            self._writing.pop(0).result()
        if not alone:
            self._steps.together(np.zeros(1))

    def _resume(self) -> None:
        found = self._folder.latest() if self.work.place.publishes else None
        data = b""
        if found is not None:
            best = {f"{_BEST}{name}": array for name, array in found.best.items()}
            data = encode_checkpoint(found.meta, {**found.arrays, **best})
        data = self._steps.from_first(data)
        if not data:
            return
        meta, arrays = decode_checkpoint(data)
        self._steps.restore({name: array for name, array in arrays.items() if not name.startswith(_BEST)})
        self.best = {n.removeprefix(_BEST): array for n, array in arrays.items() if n.startswith(_BEST)}
        self.progress = Progress.from_dict(meta)
        self._saved = self.progress.step
        self.progress.resumed.append(self.progress.step)
        for number in range(self.progress.epochs):
            self._report(number)
        self._send({"resumed": self.progress.step, "steps": self._all_steps()})

    def _stop_if_asked(self, done: int = 0, steps: int = 1) -> None:
        """Ends the training after a signal; `steps` of those that are done were launched last."""
        if self._asked_to_stop(done, steps):
            self._save()
            self._finish_writing()
            cause = self._preemption.signal or "another host"
            raise self._end(
                Stopped(
                    f"the training was stopped ({cause}) and saved its state at step {self.progress.step} of "
                    f"{self._all_steps()}. Run it again to continue from there."
                )
            )

    def _asked_to_stop(self, done: int, steps: int = 1) -> bool:
        """Returns whether any host received a signal; all hosts ask after the same number of steps or batches."""
        if self.work.place.count == 1:
            return bool(self._preemption.signal)
        if done % _AGREE_EVERY >= steps:
            return False
        return self._any_host(bool(self._preemption.signal))

    def _any_host(self, mine: bool) -> bool:
        return bool(self._steps.together(np.array([float(mine)]))[0])

    def _check_finite(self, arrays: Arrays) -> None:
        """Raises an error for weights that are not finite: they must not be stored."""
        for array in arrays.values():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                self.progress.step -= 1
                raise self._end(self._not_finite(math.nan, what="a weight"))

    def _end(self, error: ShardwrightError) -> ShardwrightError:
        """Ends the training; all hosts reach this at the same step."""
        self._steps.finish()
        return error

    def _not_finite(self, value: float, *, what: str = "the loss") -> ShardwrightError:
        work, step = self.work, self.progress.step
        keys = keys_at(work.spec.dataset, TRAIN, np.asarray(self._positions).tolist())
        self._finish_writing(alone=True)
        kept = self._folder.steps() if work.place.publishes else []
        return ShardwrightError(
            f"{what} became {value} in epoch {step // work.steps_per_epoch + 1}, step {step + 1} of "
            f"{self._all_steps()}. Its batch: {shown(keys)}. Lower trainer.learning_rate, or look at these images. "
            f"{f'The last checkpoint is of step {kept[-1]}.' if kept else 'There is no checkpoint yet.'}"
        )

    def _all_steps(self) -> int:
        return self.work.steps_per_epoch * self.work.spec.epochs
