"""The training loop: steps, epochs, evaluation, checkpoints, and going on where a killed training had got to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

import numpy as np

from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.devices.placement import out_of_memory, readable
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.training.checkpoints import (
    Arrays,
    CheckpointFolder,
    decode_checkpoint,
    encode_checkpoint,
)
from shardwright.components.image_trainer.training.evaluate import evaluate, keys_at, shown
from shardwright.components.image_trainer.training.progress import Preemption, Progress, Rate
from shardwright.components.image_trainer.training.steps import Backend
from shardwright.components.image_trainer.training.weights import weights_of
from shardwright.errors import ShardwrightError
from shardwright.evaluation.metrics import better

# Steps, or batches of an evaluation, after which the hosts ask each other whether one of them was told to end.
_AGREE_EVERY = 10
# A loss that was there in less had not been waited for: the devices were idle before.
_AT_ONCE = 1e-3
_BEST = "best/"
TRAIN = "train"


@dataclass(frozen=True)
class TrainState:
    """What a loop works with.

    Attributes:
        spec: the training.
        place: this host among all.
        batch_size: images of a batch of all hosts.
        steps_per_epoch: steps of an epoch, as many on every host.
        data: training batches of this host from a step on, without end: images, targets, positions in the split.
        evaluation: passes over this host's part of the evaluation split, without end; `None`: there is no such split.
        evaluation_steps: batches of one of them, as many on every host.
        loss: Keras loss.
        memory: bytes that a step needs by estimate.
    """

    spec: TrainSpec
    place: HostPlace
    batch_size: int
    steps_per_epoch: int
    data: Callable[[int], Any]
    evaluation: Callable[[], Any] | None
    evaluation_steps: int
    loss: Any
    memory: int


class Loop:
    """A training from its checkpoint, or its beginning, to its end.

    Args:
        work: what to train on.
        steps: the model in training.
        folder: its checkpoints; only host 0 reads and writes them.
        preemption: whether this host was told to end.
        send: is given the values of every epoch: `epoch` from 1, `epochs`, `loss` and, under `eval`, the metrics.

    Attributes:
        work: what is trained on.
        progress: how far it is.
        best: weights of the best epoch; without an evaluation split those of the last one.
    """

    def __init__(
        self,
        work: TrainState,
        steps: Backend,
        folder: CheckpointFolder,
        preemption: Preemption,
        send: Callable[[dict[str, Any]], None],
    ) -> None:
        self.work = work
        self._steps, self._folder = steps, folder
        self._preemption, self._send = preemption, send
        self._saved = -1
        self._positions: Any = ()
        self._held_out: Iterator[tuple[Any, ...]] | None = None
        self._waited = self._worked = 0.0
        self._counted = 0
        self.progress = Progress()
        self.best: Arrays = {}

    def run(self) -> None:
        """Trains.

        Raises:
            ShardwrightError: the loss is no number any more, the memory does not do, or the process was told to end.
        """
        self._resume()
        recipe = self.work.spec.recipe
        try:
            if not self.progress.ended(recipe.epochs, recipe.patience):
                # All of them before the first step: on TensorFlow an iterator that is made after it decodes one image
                # at a time.
                batches = self._steps.batches(self.work.data(self.progress.step))
                if self.work.evaluation is not None:
                    self._held_out = self._steps.batches(self.work.evaluation())
                batch = next(batches)
                while not self.progress.ended(recipe.epochs, recipe.patience):
                    batch = self._epoch(batch, batches)
        except ShardwrightError:
            raise
        except Exception as error:
            if out_of_memory(error):
                raise ShardwrightError(self._no_memory()) from None
            raise
        if not self.best:
            with self._steps.evaluated():
                self.best = weights_of(self._steps.state())

    def _epoch(self, batch: tuple[Any, ...], batches: Any) -> tuple[Any, ...]:
        """What is left of an epoch; returns the first batch of the next one."""
        work, progress = self.work, self.progress
        started = time.perf_counter()
        self._waited = self._worked = 0.0
        self._counted = 0
        end = (progress.epochs + 1) * work.steps_per_epoch
        while progress.step < end:
            batch = self._step(batch, batches)
            self._end_if_told(progress.step)
            if progress.step % work.spec.running.every == 0 and progress.step < end:
                self._save()
        metrics = self._evaluate()
        # Before anything is noted of the epoch: whoever goes on from here evaluates anew.
        self._end_if_told()
        progress.losses.append(progress.epoch_loss / work.steps_per_epoch)
        progress.epoch_loss = 0.0
        self._choose(metrics)
        speed = self._counted / self._worked if self._worked else 0.0
        share = self._waited / self._worked if self._worked else 0.0
        progress.rates.append(Rate(speed, share, time.perf_counter() - started))
        self._save()
        self._report(progress.epochs - 1)
        return batch

    def _step(self, batch: tuple[Any, ...], batches: Any) -> tuple[Any, ...]:
        """One step; the next batch is fetched while the devices work."""
        steps, traces, begun = self._steps, self._steps.traces, time.perf_counter()
        images, targets, self._positions = batch
        result = steps.train(images, targets)
        dispatched = time.perf_counter()
        following = next(batches)
        fetched = time.perf_counter()
        loss = float(result)
        done = time.perf_counter()
        if steps.traces == traces:
            self._worked += done - begun
            self._waited += fetched - dispatched if done - fetched < _AT_ONCE else 0.0
            self._counted += self.work.batch_size
        if not math.isfinite(loss):
            raise self._end(self._no_number(loss))
        self.progress.step += 1
        self.progress.epoch_loss += loss
        return tuple(following)

    def _evaluate(self) -> dict[str, float] | None:
        """Metrics of the model as it is; of no use where a host was told to end: there is no time for all batches."""
        work = self.work
        if self._held_out is None:
            return None
        numbered = enumerate(islice(self._held_out, work.evaluation_steps))
        batches = (batch for _, batch in takewhile(lambda one: not self._told_to_end(one[0]), numbered))
        with self._steps.evaluated():
            return evaluate(self._steps.predict, batches, work.spec, work.loss, self._steps.together)

    def _choose(self, metrics: dict[str, float] | None) -> None:
        """Notes the metrics of the epoch that has ended, and keeps its weights where it is the best."""
        work, progress = self.work, self.progress
        if metrics is None:
            progress.best_epoch, progress.best_step = progress.epochs, 0
            return
        before = progress.best
        progress.evaluations.append(metrics)
        if not better(work.spec.task, metrics, before, multi=work.spec.multi):
            return
        with self._steps.evaluated():
            self.best = weights_of(self._steps.state())
        progress.best_epoch, progress.best_step = progress.epochs, progress.step
        self._refuse_broken(self.best)
        if work.place.publishes:
            self._folder.save_best(progress.step, self.best)

    def _report(self, index: int) -> None:
        """Sends what an epoch came to."""
        progress, rate = self.progress, self.progress.rates[index]
        message = {
            "epoch": index + 1,
            "epochs": self.work.spec.recipe.epochs,
            "loss": progress.losses[index],
            "images_per_second": rate.images_per_second,
            "input_bound": rate.input_bound,
        }
        self._send({**message, "eval": progress.evaluations[index]} if progress.evaluations else message)

    def _save(self) -> None:
        """Host 0 writes the state; the others wait, so that none goes away before it is there."""
        if self._saved == self.progress.step:
            return
        arrays = self._steps.state()
        self._refuse_broken(arrays)
        if self.work.place.publishes:
            self._folder.save(self.progress.step, self.progress.to_dict(), arrays, self.progress.best_step)
        self._steps.together(np.zeros(1))
        self._saved = self.progress.step

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

    def _end_if_told(self, done: int = 0) -> None:
        if self._told_to_end(done):
            self._save()
            raise self._end(self._ended_early())

    def _told_to_end(self, done: int) -> bool:
        """Whether any host was; all of them ask after the same number of steps, or of batches, that are done."""
        if self.work.place.count == 1:
            return bool(self._preemption.signal)
        if done % _AGREE_EVERY:
            return False
        return bool(self._steps.together(np.array([float(bool(self._preemption.signal))]))[0])

    def _refuse_broken(self, arrays: Arrays) -> None:
        """Never keeps a state from which nothing can be learned."""
        for array in arrays.values():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                self.progress.step -= 1
                raise self._end(self._no_number(math.nan, what="a weight"))

    def _end(self, message: str) -> ShardwrightError:
        """An end that all hosts come to at the same step."""
        self._steps.finish()
        return ShardwrightError(message)

    def _no_number(self, value: float, *, what: str = "the loss") -> str:
        work, step = self.work, self.progress.step
        keys = keys_at(work.spec.dataset, TRAIN, np.asarray(self._positions).tolist())
        kept = self._folder.steps() if work.place.publishes else []
        return (
            f"{what} became {value} in epoch {step // work.steps_per_epoch + 1}, step {step + 1} of "
            f"{self._all_steps()}. Its batch held {shown(keys)}. Lower trainer.learning_rate, or look at these images. "
            f"{f'The last checkpoint is that of step {kept[-1]}.' if kept else 'There is no checkpoint yet.'}"
        )

    def _no_memory(self) -> str:
        return (
            f"out of memory at step {self.progress.step + 1}: a batch of {self.work.batch_size} images needs about "
            f"{readable(self.work.memory)} on each of {self._steps.devices} devices. "
            "Lower trainer.batch_size, trainer.width or transform.size."
        )

    def _ended_early(self) -> str:
        how = self._preemption.signal or "another host"
        return (
            f"the training was told to end ({how}) and saved its state at step {self.progress.step} of "
            f"{self._all_steps()}. Run it again to go on from there."
        )

    def _all_steps(self) -> int:
        return self.work.steps_per_epoch * self.work.spec.recipe.epochs
