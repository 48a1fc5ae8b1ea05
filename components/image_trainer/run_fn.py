"""The function that TFX's Trainer calls: it runs the two workers, shows their progress and stores their results.

`run_fn` reads the arguments of TFX. `train_and_export` writes the specification of the training, runs the worker
`train` and, on the first host, the worker `export`. A training that was interrupted continues from its checkpoint.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from shardwright import loader
from shardwright.components.image_trainer.defaults import with_defaults
from shardwright.components.image_trainer.devices.hosts import this_host
from shardwright.components.image_trainer.devices.placement import BACKEND, Machine, choose_placement, readable
from shardwright.components.image_trainer.spec import (
    EVAL_SPLIT,
    MODEL_FILE,
    SPEC_FILE,
    TextColumn,
    TrainRecipe,
    TrainSpec,
)
from shardwright.components.image_trainer.training.checkpoints import CheckpointFolder
from shardwright.components.image_trainer.training.losses import balanced_weights
from shardwright.components.image_trainer.training.warm_start import (
    KEPT_MODEL,
    WARM_START_VARIABLE,
    WEIGHTS_VARIABLE,
    weights_file,
)
from shardwright.components.image_trainer.worker import WORKER, Message, run_worker
from shardwright.components.image_transform.transformed_features import asset_name
from shardwright.components.runtime.artifacts import flush_artifact
from shardwright.components.runtime.user_code import check_code
from shardwright.config.trainer import BLESSED, DIGEST, FRESH, MODELS, TrainerConfig, check_learning
from shardwright.config.transform import KEEP
from shardwright.dataset.manifest import MULTI, NONE
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.train_statistics import STATISTICS_FILE, read_statistics
from shardwright.errors import ConfigError, DatasetError, UsageError
from shardwright.evaluation.metrics import headline
from shardwright.lineage.record import LINEAGE_FILE, write_lineage
from shardwright.running.progress import print_note, progress
from shardwright.staging.staging import given_staging
from shardwright.storage import hash_file, is_remote
from shardwright.storage.own_names import make_own_folder

# The import path of `run_fn`, below.
RUN_FN = "shardwright.components.image_trainer.run_fn.run_fn"
RECIPE_KEY = "recipe"
RUNNING_KEY = "running"
WARM_START_KEY = "warm_start"
WEIGHTS_KEY = "weights"

_TRAIN = "train"
# TensorFlow Transform keeps vocabularies in this folder of a TransformGraph.
_ASSETS = os.path.join("transform_fn", "assets")


def run_fn(fn_args: Any) -> None:
    """Trains and exports, called by TFX's Trainer.

    Args:
        fn_args: `tfx.components.FnArgs`. `custom_config[RECIPE_KEY]` is `TrainRecipe.to_dict()`; `[RUNNING_KEY]` is
            `TrainRecipe.running`, if that is not empty. The examples are a dataset of ImageTransform, found
            through the first of `train_files`. Only the first host writes to the folders named here.

    Raises:
        ConfigError: this machine has no such accelerator, or has one that would stay idle.
        ShardwrightError: a worker failed.
    """
    running = fn_args.custom_config.get(RUNNING_KEY, {})
    host = this_host(os.environ, running.get("hosts", TrainerConfig.hosts))
    # Before anything is read: a machine that cannot train is refused at once.
    accelerator = running.get("accelerator", TrainerConfig.accelerator)
    choose_placement(accelerator, host.count, Machine.look(os.environ))
    recipe = TrainRecipe.from_dict(fn_args.custom_config[RECIPE_KEY], running)
    check_code(recipe.code, option="trainer.model")
    check_code(recipe.callbacks_code, option="trainer.callbacks")
    train = partial(
        train_and_export,
        recipe,
        dataset=Path(fn_args.train_files[0]).parents[1],  # TFX names <dataset>/Split-train/*.
        warm_from=_warm_from(recipe, fn_args),
        weights_from=_weights_from(recipe, fn_args),
        transform_graph=fn_args.transform_graph_path or "",
    )
    serving = Path(fn_args.serving_model_dir)
    if not host.publishes:
        with tempfile.TemporaryDirectory() as folder:
            train(run_folder=Path(folder, "run"), export_folder=Path(folder, "export"))
        # TFX requires the folder. `container` has given this host a separate one.
        serving.mkdir(parents=True, exist_ok=True)
        return
    train(run_folder=Path(fn_args.model_run_dir), export_folder=serving)
    # The artifact is the folder above: <model>/Format-Serving.
    shutil.copyfile(serving / LINEAGE_FILE, serving.parent / LINEAGE_FILE)
    flush_artifact(str(serving.parent))


def train_and_export(
    recipe: TrainRecipe,
    *,
    dataset: Path,
    run_folder: Path,
    export_folder: Path,
    warm_from: str = "",
    weights_from: str = "",
    transform_graph: str = "",
    finished: str | None = None,
) -> TrainSpec:
    """Trains on a transformed dataset and writes the SavedModel. An interrupted training continues.

    Checkpoints are written to the staging folder of the run if there is one (it survives a failed attempt of TFX), else
    to `run_folder`. They are deleted after the export. Only the first host exports.

    Args:
        recipe: the sections of the configuration.
        dataset: folder of a dataset of ImageTransform.
        run_folder: gets spec.json, model.keras, history.json, training.json, TensorBoard logs and the workers' logs.
        export_folder: gets the SavedModel.
        warm_from: file with the initial weights, or a folder with one; empty: none.
        weights_from: file or URL of the encoder's weights; empty: random initial weights.
        transform_graph: folder of the TransformGraph written with the dataset; needed for a model that reads texts.
        finished: fingerprint of the training whose model is in `export_folder` already, empty if none is: it continues
            where only `epochs` is larger now and the schedule allows it, and keeps its last checkpoint for that.
            `None`: each training has a folder of its own.

    Returns:
        The specification that the workers got, or would get.

    Raises:
        UsageError: `export_folder` has the model of another training.
        DatasetError: there is no such dataset, or nothing to train on.
        ConfigError: this machine has no such accelerator, or the number of hosts differs.
        ShardwrightError: a worker failed.
    """
    host = this_host(os.environ, recipe.trainer.hosts)
    placement = choose_placement(recipe.trainer.accelerator, host.count, Machine.look(os.environ))
    if note := placement.unused_backend(os.environ):
        print_note(note)
    digest = ImageDataset.open(dataset).manifest.digest
    run_folder.mkdir(parents=True, exist_ok=True)
    spec = spec_of(recipe, dataset, run_folder, export_folder, print_note)
    spec = _with_files(spec, warm_from, weights_from, transform_graph)
    if finished:
        if finished == spec.fingerprint:
            return spec
        _continue(spec, run_folder, export_folder)
    spec = dataclasses.replace(spec, checkpoints=_checkpoints(spec, run_folder))
    spec.write(run_folder / SPEC_FILE)
    _train(spec, run_folder, {**placement.to_environment(os.environ), **host.to_environment()})
    if host.publishes:
        keep_state = finished is not None and spec.recipe.trainer.extendable
        _export(spec, run_folder, export_folder, digest, keep_state=keep_state)
    return spec


def _continue(spec: TrainSpec, run_folder: Path, export_folder: Path) -> None:
    """Makes the checkpoints of a finished training those of one that differs in nothing but more epochs.

    Raises:
        UsageError: it is another training, or its schedule has ended.
    """
    before = TrainSpec.read(run_folder / SPEC_FILE)
    if before.fingerprint == spec.fingerprint:
        return  # It was continued already, and interrupted.
    trainer, epochs = spec.recipe.trainer, before.epochs
    longer = dataclasses.replace(before.recipe.trainer, epochs=trainer.epochs)
    recipe = dataclasses.replace(before.recipe, trainer=longer)
    if dataclasses.replace(before, recipe=recipe).fingerprint != spec.fingerprint or epochs > spec.epochs:
        raise UsageError(f"{export_folder}: has the model of another training. Give another folder, or delete it.")
    kept = Path(_checkpoints(before, run_folder))
    if not trainer.extendable or not kept.is_dir():
        raise UsageError(
            f"{export_folder}: has the model of the same training with {epochs} epochs, which cannot go on to "
            f"{spec.epochs}: {trainer.schedule_ends or 'its last checkpoint is gone'}. Give another folder: it trains "
            f"from the start, or with trainer.warm_start: {run_folder} from these weights."
        )
    os.replace(kept, _checkpoints(spec, run_folder))


def _train(spec: TrainSpec, run_folder: Path, environment: dict[str, str]) -> None:
    """Runs the worker that trains, and shows its progress."""
    if cache := spec.recipe.trainer.compilation_cache:
        environment = {**environment, "JAX_COMPILATION_CACHE_DIR": cache}
    with _shown(spec.epochs, headline(spec.task, multi=spec.multi)) as show:
        run_worker(
            (WORKER, "train"),
            run_folder / SPEC_FILE,
            run_folder / "train.log",
            environment=environment,
            on_message=show,
        )


def _export(spec: TrainSpec, run_folder: Path, export_folder: Path, dataset_digest: str, *, keep_state: bool) -> None:
    """Runs the worker that exports, records the lineage and deletes the checkpoints, if they are not to be kept."""
    parents = {"dataset": dataset_digest, **({"warm_start": spec.warm_digest} if spec.warm_digest else {})}
    checkpoints = CheckpointFolder(spec.checkpoints)
    # Without the checkpoints, a failed export would cost the whole training.
    with checkpoints.locked():
        log = run_folder / "export.log"
        run_worker((WORKER, "export"), run_folder / SPEC_FILE, log, environment={BACKEND: "tensorflow"})
        kept = export_folder / KEPT_MODEL
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run_folder / MODEL_FILE, kept)
        for folder, kind in ((run_folder, "training"), (export_folder, "model")):
            write_lineage(
                folder,
                kind=kind,
                fingerprint=spec.fingerprint,
                parents=parents,
                recipe=spec.recipe.to_dict(),
                files=kind == "model",
            )
        for folder in (run_folder, export_folder):
            flush_artifact(str(folder))
        if not keep_state:
            checkpoints.remove()


def spec_of(
    recipe: TrainRecipe,
    dataset: Path,
    run_folder: Path,
    export_folder: Path,
    note: Callable[[str], None] = lambda text: None,
) -> TrainSpec:
    """Returns the specification of a training with random initial weights.

    Args:
        recipe: the options that shape the model.
        dataset: folder of a dataset of ImageTransform.
        run_folder: see `train_and_export`.
        export_folder: likewise.
        note: is called with what was chosen where the recipe says `auto`.

    Raises:
        DatasetError: there is no such dataset, or nothing to train on.
        UsageError: the dataset is not one of ImageTransform, or is for another task.
    """
    opened = ImageDataset.open(dataset)
    manifest = opened.manifest
    _check_dataset(opened, dataset, recipe)
    height, width = loader.image_size(opened)
    mean = std = weights = None
    if recipe.loader.normalize == "dataset":
        statistics = loader.dataset_statistics(dataset)
        mean, std = tuple(statistics["mean"]), tuple(statistics["std"])
    measured = read_statistics(dataset) if Path(dataset, STATISTICS_FILE).is_file() else {}
    recipe, notes = with_defaults(
        recipe,
        task=manifest.task,
        classes=manifest.classes,
        images=opened.num_records(_TRAIN),
        # A subset or a merge has none that were measured.
        statistics=measured,
    )
    for text in notes:
        note(f"trainer: {text}")
    if recipe.trainer.class_weights == "balanced":
        weights = balanced_weights(manifest.task, loader.dataset_statistics(dataset), manifest.classes)
    return TrainSpec(
        recipe=recipe,
        dataset=os.fspath(dataset),
        dataset_fingerprint=manifest.fingerprint,
        task=manifest.task,
        classes=manifest.classes,
        height=height,
        width=width,
        # Images that kept their size have the model's; the served ones are stretched to it.
        resize="stretch" if manifest.recipe["resize"] == KEEP else manifest.recipe["resize"],
        mean=mean,
        std=std,
        output=os.fspath(run_folder),
        export=os.fspath(export_folder),
        ignore=manifest.ignores,
        multi=manifest.labels == MULTI,
        class_weights=weights,
        ingested=dict(measured.get("ingested", {})),
    )


def _check_dataset(opened: ImageDataset, dataset: Path, recipe: TrainRecipe) -> None:
    """Refuses a dataset that a recipe cannot be trained on."""
    manifest = opened.manifest
    if manifest.kind != "transform":
        raise UsageError(
            f"ImageTrainer: examples: {dataset} is not transformed. "
            'Give the output of ImageTransform: transform.outputs["transformed_examples"].'
        )
    try:
        # Only its model and loss depend on the task.
        check_learning(manifest.task, recipe.trainer.model, recipe.trainer.loss)
    except ConfigError:
        (given,) = (other for other in MODELS if other != manifest.task)
        raise UsageError(
            f"ImageTrainer: task: {given!r} (the default is 'segmentation'), but the examples are for "
            f"{manifest.task!r}. Write task={manifest.task!r}."
        ) from None
    if manifest.labels == NONE:
        raise DatasetError(f"{dataset}: its images have no labels, so there is nothing to train on. Give labels.")
    if not opened.num_records(_TRAIN):
        raise DatasetError(f"{dataset}: the split {_TRAIN} is empty. Give more images, or a larger share of them.")


def _with_files(spec: TrainSpec, warm_from: str, weights_from: str, transform_graph: str) -> TrainSpec:
    """Adds the weights and vocabularies that the training begins with.

    Raises:
        UsageError: the dataset has no such column, or there is no file of weights.
        DatasetError: a vocabulary is missing.
    """
    from shardwright.loader.text_features import text_features

    spec = dataclasses.replace(spec, weights_from=weights_from)
    if spec.recipe.trainer.text:
        vocabularies = os.path.join(transform_graph, _ASSETS)
        columns = []
        for text in text_features(ImageDataset.open(spec.dataset), spec.recipe.trainer.text):
            file = os.path.join(vocabularies, asset_name(text.feature))
            found = hash_file(file)
            if found is None:
                raise DatasetError(f"{file}: the vocabulary of {text.column!r} is missing. Run ImageTransform again.")
            columns.append(TextColumn(text.column, text.feature, text.vocabulary, found.content_id.hex(), text.length))
        spec = dataclasses.replace(spec, texts=tuple(columns), vocabularies=vocabularies)
    if warm_from:
        file, digest = weights_file(warm_from)
        spec = dataclasses.replace(spec, warm_from=file, warm_digest=digest)
    return spec


def _checkpoints(spec: TrainSpec, run_folder: Path) -> str:
    """Returns the folder of the checkpoints: the same training finds it again."""
    group = f"{given_staging() or os.fspath(run_folder)}/training"
    if not is_remote(group):
        make_own_folder(group)
    return f"{group}/{spec.fingerprint[:32]}"


def _warm_from(recipe: TrainRecipe, fn_args: Any) -> str:
    """Returns the file of the initial weights; empty for none.

    Raises:
        UsageError: the file is missing, or has changed.
    """
    if recipe.trainer.warm_start == FRESH:
        return ""
    if recipe.trainer.warm_start == BLESSED:
        # The resolver passes an empty model if no model was ever blessed.
        found = Path(fn_args.base_model or "", KEPT_MODEL)
        return os.fspath(found) if fn_args.base_model and found.is_file() else ""
    place = fn_args.custom_config.get(WARM_START_KEY) or os.environ.get(WARM_START_VARIABLE, "")
    file, digest = weights_file(place)
    if DIGEST + digest != recipe.trainer.warm_start:
        raise UsageError(
            f"trainer.warm_start: {file} has changed since the pipeline was built. Run the pipeline again."
        )
    return file


def _weights_from(recipe: TrainRecipe, fn_args: Any) -> str:
    """Returns the file or URL of the encoder's weights; empty for random ones.

    Raises:
        UsageError: the file is missing, or has changed.
    """
    if recipe.trainer.weights is None:
        return ""
    place = str(fn_args.custom_config.get(WEIGHTS_KEY) or os.environ.get(WEIGHTS_VARIABLE, ""))
    found = hash_file(place) if place else None
    if found is None or DIGEST + found.content_id.hex() != recipe.trainer.weights:
        raise UsageError(f"trainer.weights: {place} has changed since the pipeline was built. Run the pipeline again.")
    return place


@contextmanager
def _shown(epochs: int, metric: str) -> Iterator[Callable[[Message], None]]:
    """Shows steps on the bar of a terminal, and a line for each epoch elsewhere."""
    terminal = sys.stderr.isatty()
    with progress(epochs, "training", quiet=not terminal) as bar:

        def show(message: Message) -> None:
            if "epoch" in message:
                bar.advance()
            if terminal and "step" in message:
                bar.describe(step_line(message))
            line = training_line(message, metric)
            if line and not (terminal and "epoch" in message):
                print(f"  {line}", file=sys.stderr, flush=True)

        yield show


def step_line(message: Message) -> str:
    """Formats a message of `step_log.StepLog` for the line that a terminal updates."""
    return (
        f"step {message['step']:,}/{message['steps']:,}: loss {message['loss']:.4f}, rate "
        f"{message['learning_rate']:.2g}, gradient {message['gradient_norm']:.2g}, "
        f"{message['images_per_second']:.1f} images/s, input {message['input']:.0%}, {readable(message['memory'])}"
    )


def training_line(message: Message, metric: str) -> str:
    """Formats a message of the training worker as a line; empty for a message that is not for people.

    Args:
        message: see `loop.Loop`.
        metric: the metric to show.
    """
    if "epoch" in message:
        held_out = message.get("eval", {})
        measured = f", {metric} on {EVAL_SPLIT} {held_out[metric]:.3f}" if metric in held_out else ""
        fast = f", {message['images_per_second']:.1f} images/s" if message.get("images_per_second") else ""
        return f"epoch {message['epoch']}/{message['epochs']}: loss {message['loss']:.4f}{measured}{fast}"
    if "expected" in message:
        seconds = message["expected"]
        return f"about {max(1, round(seconds / 60))} min on this machine" if seconds > 60 else ""
    if "resumed" in message:
        return f"continues from its checkpoint: step {message['resumed']} of {message['steps']}"
    return str(message.get("note", ""))
