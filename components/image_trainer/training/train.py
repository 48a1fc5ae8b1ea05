"""A training from its specification to `model.keras`: the work of a worker once Keras may be imported."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras

from shardwright import loader
from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.devices.placement import Placement, device_batch, readable, step_bytes
from shardwright.components.image_trainer.models.build import model_of
from shardwright.components.image_trainer.spec import MODEL_FILE, NEEDS, TrainSpec
from shardwright.components.image_trainer.training.callbacks import build_callbacks
from shardwright.components.image_trainer.training.checkpoints import CheckpointFolder, assign
from shardwright.components.image_trainer.training.device_input import DeviceInput, mask_options, train_options
from shardwright.components.image_trainer.training.evaluate_split import Counting
from shardwright.components.image_trainer.training.history import (
    HISTORY_FILE,
    SUMMARY_FILE,
    History,
    TrainingSummary,
    epoch_rows,
    weights_digest,
)
from shardwright.components.image_trainer.training.learner import Backend, Learner
from shardwright.components.image_trainer.training.loop import TRAIN, Loop, TrainState
from shardwright.components.image_trainer.training.losses import loss_of
from shardwright.components.image_trainer.training.optimizers import build_optimizer, learning_rates
from shardwright.components.image_trainer.training.step_log import STEPS_FILE
from shardwright.components.image_trainer.training.tensorboard import CurveLog
from shardwright.components.image_trainer.training.training_progress import Preemption, waiting
from shardwright.components.image_trainer.training.warm_start import begin_with
from shardwright.components.runtime.artifacts import write_record
from shardwright.config.trainer import is_own
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, ShardwrightError
from shardwright.evaluation.thresholds import Thresholds
from shardwright.lineage.record import package_versions
from shardwright.loader.memory import cache_budget, decoded_bytes
from shardwright.storage import is_remote

Send = Callable[[dict[str, Any]], None]

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
_BYTES = {"float32": 4, "bfloat16": 2}


def run_training(spec: TrainSpec, placement: Placement, place: HostPlace, preemption: Preemption, send: Send) -> None:
    """Trains, and writes the results to `spec.output`. Every host does so; those of host 0 are used.

    Args:
        spec: the training.
        placement: accelerator and backend; Keras runs on that backend already.
        place: this host among all.
        preemption: notes signals to stop.
        send: gets messages, see `loop.Loop`.

    Raises:
        ShardwrightError: the loss is not finite, memory is exhausted, or a host received a signal to stop.
    """
    devices = connect(placement, place)
    # Again: where hosts join, JAX takes SIGTERM for itself.
    preemption.listen()
    recipe = spec.recipe
    keras.utils.set_random_seed(recipe.trainer.seed)
    model = built_model(spec, recipe.trainer.precision)
    if spec.warm_from:
        for note in begin_with(model, spec.warm_from, spec.classes, own=is_own(recipe.trainer.model)):
            send({"note": note})
    work = work_of(spec, place, devices, model)
    send({NEEDS: readable(work.memory)})
    steps_in_all = work.steps_per_epoch * spec.epochs
    optimizer = build_optimizer(recipe.trainer, steps_in_all, work.steps_per_epoch, model)
    learner = Learner(model, loss_of(spec), optimizer, DeviceInput.of(spec), Counting.of(spec))
    steps = build_steps(placement, place, learner, recipe.trainer.shard_weights)
    callbacks = build_callbacks(spec, model, optimizer, work.steps_per_epoch, lambda text: send({"note": text}))
    rates = learning_rates(recipe.trainer, steps_in_all)
    make = partial(Loop, work, steps, rate=lambda step: float(rates(step)), callbacks=callbacks)
    loop = _run_loop(work, make, preemption, send)
    _write_results(spec, placement, steps, loop)
    steps.finish()


def connect(placement: Placement, place: HostPlace) -> int:
    """Joins the hosts of a training and checks the accelerator, before anything is computed.

    Returns:
        Devices of all hosts, over which a batch is split.

    Raises:
        ShardwrightError: the other hosts do not answer, or the backend does not find the accelerator.
    """
    if keras.backend.backend() != placement.backend:
        raise ShardwrightError(
            f"Keras runs on {keras.backend.backend()}, and {placement.backend} was chosen. Start the worker with "
            f"KERAS_BACKEND={placement.backend}."
        )
    if placement.backend == "jax":
        from shardwright.components.image_trainer.training import steps_jax

        return steps_jax.connect(placement, place)
    from shardwright.components.image_trainer.training import steps_tensorflow

    return steps_tensorflow.connect(placement)


def build_steps(placement: Placement, place: HostPlace, learner: Learner, shards: int = 1) -> Backend:
    """Returns the backend of a placement; call `connect` before building the model.

    Args:
        placement: accelerator and backend.
        place: this host among all.
        learner: what is trained.
        shards: `trainer.shard_weights`.

    Raises:
        ConfigError: the devices cannot share the weights.
    """
    if placement.backend == "jax":
        from shardwright.components.image_trainer.training.steps_jax import JaxSteps

        return JaxSteps(place, learner, shards)
    from shardwright.components.image_trainer.training.steps_tensorflow import TensorFlowSteps

    if shards > 1:
        raise ConfigError("trainer.shard_weights", f"{shards}, and TensorFlow trains on one device", "Remove it.")
    return TensorFlowSteps(learner)


def built_model(spec: TrainSpec, precision: str) -> Any:
    """Builds the model of a training, at a `trainer.precision`."""
    keras.config.set_dtype_policy(_POLICIES[precision])
    return model_of(spec)


def work_of(spec: TrainSpec, place: HostPlace, devices: int, model: Any) -> TrainState:
    """Returns the batches and sizes of this host, if a batch is split over so many devices."""
    recipe, dataset = spec.recipe, ImageDataset.open(spec.dataset)
    records = dataset.num_records(TRAIN)
    batch_size = device_batch(recipe.trainer.batch_size, records, devices)
    host_batch = batch_size // place.count
    evaluation_steps = 0
    if held_out := spec.held_out:
        evaluation_steps = loader.steps_per_epoch(
            spec.dataset, recipe.eval_split, host_batch, hosts=place.count, order="exact"
        )
    # Copies of the weights: their running mean, and the gradients that are added up.
    copies = int(recipe.trainer.ema is not None) + int(recipe.trainer.accumulate > 1)
    return TrainState(
        spec=spec,
        place=place,
        batch_size=batch_size,
        steps_per_epoch=recipe.trainer.steps_per_epoch or records // batch_size,
        data=partial(_train_batches, spec, place, host_batch, fits_memory(spec, dataset, place)),
        evaluation=partial(_evaluation_batches, spec, place, host_batch) if evaluation_steps else None,
        evaluation_steps=evaluation_steps,
        evaluation_images=held_out,
        memory=step_bytes(model, batch_size // devices, itemsize=_BYTES[recipe.trainer.precision], kept=copies),
    )


def _train_batches(spec: TrainSpec, place: HostPlace, host_batch: int, cached: bool, step: int) -> Any:
    recipe = spec.recipe
    exact = recipe.loader.order == "exact"
    batches = loader.load(
        spec.dataset,
        TRAIN,
        host_batch,
        augment=recipe.loader.augment,
        shuffle=True,
        seed=recipe.trainer.seed,
        repeat=True,
        drop_remainder=True,
        shuffle_buffer=recipe.loader.shuffle_buffer,
        order=recipe.loader.order,
        start_step=step if exact else 0,
        ids=True,
        cache=loader.MEMORY if cached else None,
        **train_options(spec),
        **_shared_options(spec, place),
    )
    # `fast` reaches a position in its order only by reading up to it.
    return batches if exact or not step else batches.skip(step)


def _evaluation_batches(spec: TrainSpec, place: HostPlace, host_batch: int) -> Any:
    """Returns the evaluation split without end; all hosts have equally many batches of one shape."""
    batches = loader.load(
        spec.dataset,
        spec.recipe.eval_split,
        host_batch,
        normalize="none",
        dtype="uint8",
        order="exact",
        **mask_options(spec),
        **_shared_options(spec, place),
    )
    return batches.repeat()


def _shared_options(spec: TrainSpec, place: HostPlace) -> dict[str, Any]:
    return {"host": place.index, "hosts": place.count, "texts": spec.recipe.trainer.text}


def fits_memory(spec: TrainSpec, dataset: ImageDataset, place: HostPlace) -> bool:
    """Returns whether decoded images stay in memory from the first epoch on."""
    each = decoded_bytes((spec.height, spec.width), len(spec.classes), sum(text.vocabulary for text in spec.texts))
    shards = [shard.records for shard in dataset.shards(TRAIN)]
    remote, room = is_remote(spec.dataset), loader.room_in_memory()
    return cache_budget(shards, each, order=spec.recipe.loader.order, hosts=place.count, remote=remote, room=room) > 0


def _run_loop(work: TrainState, make: Callable[..., Loop], preemption: Preemption, send: Send) -> Loop:
    """Trains from the last checkpoint; host 0 holds the checkpoints and writes the curves."""
    spec = work.spec
    folder = CheckpointFolder(
        spec.checkpoints or str(Path(spec.output, "checkpoints")),
        keep=spec.recipe.trainer.checkpoint.keep,
        note=lambda message: send({"note": message}),
    )
    if not work.place.publishes:
        loop = make(folder, preemption, send)
        loop.run()
        return loop
    with folder.locked(waiting(preemption, send)), CurveLog(spec.output) as curves:

        def log_and_send(message: dict[str, Any]) -> None:
            if "epoch" in message:
                curves.write_epoch(message)
            elif "step" in message:
                curves.write_step(message)
                with Path(spec.output, STEPS_FILE).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(message, sort_keys=True) + "\n")
            send(message)

        loop = make(folder, preemption, log_and_send)
        loop.run()
    return loop


def _write_results(spec: TrainSpec, placement: Placement, steps: Backend, loop: Loop) -> None:
    """Writes the best weights as a model in float32, which every CPU can serve, the history and the summary."""
    # Without the weights of the encoder: all of them are set here. The file of a given model is the model.
    own = is_own(spec.recipe.trainer.model)
    model = built_model(spec if own else dataclasses.replace(spec, weights_from=""), "float32")
    assign(model, None, loop.best)
    model.save(Path(spec.output, MODEL_FILE))
    progress, work = loop.progress, loop.work
    measured: dict[str, Any] = {}
    if progress.evaluations:
        # Nothing is tuned yet, and no region is dropped.
        measured = spec.measured(Thresholds.fixed(len(spec.classes), spec.recipe.threshold)).to_dict()
    history = History(
        fingerprint=spec.fingerprint,
        parameters=model.count_params(),
        steps_per_epoch=work.steps_per_epoch,
        eval_split=spec.recipe.eval_split if progress.evaluations else "",
        best_epoch=progress.best_epoch,
        loss=progress.losses,
        evaluation=progress.evaluations,
        measured=measured,
    )
    write_record(Path(spec.output, HISTORY_FILE), history)
    summary = TrainingSummary(
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
        epochs=epoch_rows(progress, measured),
        best_epoch=progress.best_epoch,
        stopped_early=progress.epochs < spec.epochs,
        weights=weights_digest(loop.best),
        versions=package_versions(),
    )
    write_record(Path(spec.output, SUMMARY_FILE), summary)
