"""A training from its specification to `model.keras`: what a worker does once Keras may be imported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from shardwright import loader
from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.devices.placement import Placement, device_batch, readable, step_bytes
from shardwright.components.image_trainer.models.build import model_of
from shardwright.components.image_trainer.spec import LOG_FOLDER, MODEL_FILE, NEEDS, TrainSpec
from shardwright.components.image_trainer.training.checkpoints import CheckpointFolder
from shardwright.components.image_trainer.training.history import (
    History,
    TrainingSummary,
    epoch_rows,
    weights_digest,
    write_history,
    write_summary,
)
from shardwright.components.image_trainer.training.loop import TRAIN, Loop, TrainState
from shardwright.components.image_trainer.training.losses import loss_of
from shardwright.components.image_trainer.training.optimizers import build_optimizer
from shardwright.components.image_trainer.training.progress import Preemption, waiting
from shardwright.components.image_trainer.training.steps import Backend, build_steps, connect
from shardwright.components.image_trainer.training.tensorboard import EventLog
from shardwright.components.image_trainer.training.warm_start import begin_with
from shardwright.components.image_trainer.training.weights import set_weights
from shardwright.dataset.reader import ImageDataset
from shardwright.lineage.record import package_versions
from shardwright.loader.memory import cache_budget, decoded_bytes
from shardwright.storage import is_remote

Send = Callable[[dict[str, Any]], None]

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
_BYTES = {"float32": 4, "bfloat16": 2}
# What of an epoch TensorBoard shows beside the metrics.
_SCALARS = ("loss", "images_per_second", "input_bound")


def run_training(spec: TrainSpec, placement: Placement, place: HostPlace, preemption: Preemption, send: Send) -> None:
    """Trains, and writes what came out to `spec.output`. Every host does all of it; that of host 0 counts.

    Args:
        spec: the training.
        placement: where it runs; Keras runs on its backend already.
        place: this host among all.
        preemption: whether this host was told to end.
        send: is given messages, see `loop.Loop`.

    Raises:
        ShardwrightError: the loss is no number any more, the memory does not do, or the process was told to end.
    """
    devices = connect(placement, place)
    # Again: where hosts join, JAX takes SIGTERM for itself.
    preemption.listen()
    recipe = spec.recipe
    keras.utils.set_random_seed(recipe.seed)
    model = built_model(spec, recipe.precision)
    if spec.warm_from and not begin_with(model, spec.warm_from):
        send({"note": "the vocabulary is another one: what words mean is learned anew"})
    work = work_of(spec, place, devices, model)
    send({NEEDS: readable(work.memory)})
    optimizer = build_optimizer(recipe, work.steps_per_epoch * recipe.epochs)
    optimizer.build(model.trainable_variables)
    steps = build_steps(placement, place, model, work.loss, optimizer)
    folder = CheckpointFolder(
        spec.checkpoints or str(Path(spec.output, "checkpoints")),
        keep=spec.running.keep,
        note=lambda message: send({"note": message}),
    )
    if place.publishes:
        with folder.locked(waiting(preemption, send)), _Curves(spec, send) as curves:
            loop = Loop(work, steps, folder, preemption, curves.note)
            loop.run()
    else:
        loop = Loop(work, steps, folder, preemption, send)
        loop.run()
    _publish(spec, loop)
    write_summary(spec.output, _summary(spec, placement, work, steps, loop))
    steps.finish()


def built_model(spec: TrainSpec, precision: str) -> Any:
    """The model of a training, at a `trainer.precision`."""
    keras.config.set_dtype_policy(_POLICIES[precision])
    return model_of(spec)


def work_of(spec: TrainSpec, place: HostPlace, devices: int, model: Any) -> TrainState:
    """What a host trains on, when a batch is split over so many devices."""
    recipe, dataset = spec.recipe, ImageDataset.open(spec.dataset)
    records = dataset.num_records(TRAIN)
    batch_size = device_batch(recipe.batch_size, records, devices)
    shared: dict[str, Any] = {
        "normalize": recipe.normalize,
        "statistics": {"mean": spec.mean, "std": spec.std} if recipe.normalize == "dataset" else None,
        "host": place.index,
        "hosts": place.count,
        "texts": recipe.text,
    }
    host_batch = batch_size // place.count
    kept = _kept(spec, dataset, place)

    def data(step: int) -> Any:
        exact = recipe.order == "exact"
        batches = loader.load(
            spec.dataset,
            TRAIN,
            host_batch,
            augment=recipe.augment,
            shuffle=True,
            seed=recipe.seed,
            repeat=True,
            drop_remainder=True,
            shuffle_buffer=recipe.shuffle_buffer,
            order=recipe.order,
            start_step=step if exact else 0,
            ids=True,
            cache=loader.MEMORY if kept else None,
            **shared,
        )
        # `fast` has no other way to a place in its order than reading up to it.
        return batches if exact or not step else batches.skip(step)

    def evaluation() -> Any:
        # All hosts have equally many batches of one shape.
        return loader.load(spec.dataset, recipe.eval_split, host_batch, order="exact", **shared).repeat()

    held_out, passed = recipe.eval_split and dataset.num_records(recipe.eval_split), 0
    if held_out:
        passed = loader.steps_per_epoch(spec.dataset, recipe.eval_split, host_batch, hosts=place.count, order="exact")
    return TrainState(
        spec=spec,
        place=place,
        batch_size=batch_size,
        steps_per_epoch=records // batch_size,
        data=data,
        evaluation=evaluation if held_out else None,
        evaluation_steps=passed,
        loss=loss_of(spec),
        memory=step_bytes(
            model,
            batch_size // devices,
            itemsize=_BYTES[recipe.precision],
            kept=int(recipe.ema > 0) + int(recipe.accumulate > 1),
        ),
    )


def _kept(spec: TrainSpec, dataset: ImageDataset, place: HostPlace) -> bool:
    """Whether decoded images stay in memory from the first epoch on."""
    each = decoded_bytes((spec.height, spec.width), len(spec.classes), sum(text.vocabulary for text in spec.texts))
    shards = [shard.records for shard in dataset.shards(TRAIN)]
    remote, room = is_remote(spec.dataset), loader.room_in_memory()
    return cache_budget(shards, each, order=spec.recipe.order, hosts=place.count, remote=remote, room=room) > 0


def _publish(spec: TrainSpec, loop: Loop) -> None:
    """Writes the best weights as a model in float32: 16 bits are for learning, and serve nowhere on a CPU."""
    # No weights of an encoder: all of them are set.
    model = built_model(dataclasses.replace(spec, weights_from=""), "float32")
    set_weights(model, loop.best)
    model.save(Path(spec.output, MODEL_FILE))
    progress = loop.progress
    history = History(
        fingerprint=spec.fingerprint,
        parameters=model.count_params(),
        steps_per_epoch=loop.work.steps_per_epoch,
        eval_split=spec.recipe.eval_split if progress.evaluations else "",
        best_epoch=progress.best_epoch,
        loss=progress.losses,
        evaluation=progress.evaluations,
    )
    write_history(spec.output, history)


def _summary(spec: TrainSpec, placement: Placement, work: TrainState, steps: Backend, loop: Loop) -> TrainingSummary:
    progress = loop.progress
    return TrainingSummary(
        fingerprint=spec.fingerprint,
        accelerator=placement.accelerator,
        device=steps.device,
        backend=placement.backend,
        hosts=work.place.count,
        devices=steps.devices,
        batch_size=work.batch_size,
        compilations=steps.traces,
        step_bytes=work.memory,
        warm_start=spec.warm_digest,
        resumed=progress.resumed,
        epochs=epoch_rows(progress),
        best_epoch=progress.best_epoch,
        stopped_early=progress.epochs < spec.recipe.epochs,
        weights=weights_digest(loop.best),
        versions=package_versions(),
    )


class _Curves:
    """Sends messages on and keeps their numbers for TensorBoard."""

    def __init__(self, spec: TrainSpec, send: Send) -> None:
        self._send = send
        # Two runs in TensorBoard, so that both losses share a chart.
        self._logs = {run: EventLog(Path(spec.output, LOG_FOLDER, run)) for run in (TRAIN, "eval")}

    def __enter__(self) -> _Curves:
        return self

    def __exit__(self, *_: object) -> None:
        for log in self._logs.values():
            log.close()

    def note(self, message: dict[str, Any]) -> None:
        """Sends a message on; of an epoch it keeps the numbers."""
        if "epoch" in message:
            self._logs[TRAIN].write(message["epoch"], {name: message[name] for name in _SCALARS if name in message})
            if "eval" in message:
                self._logs["eval"].write(message["epoch"], message["eval"])
        self._send(message)
