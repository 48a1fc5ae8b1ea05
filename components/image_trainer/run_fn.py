"""What TFX's Trainer calls: it sets up the two workers, shows their progress, and files what they made."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shardwright import loader
from shardwright.components.image_trainer.devices.hosts import this_host
from shardwright.components.image_trainer.devices.placement import BACKEND, Machine, choose_placement
from shardwright.components.image_trainer.spec import (
    AS_USUAL,
    MODEL_FILE,
    SPEC_FILE,
    Recipe,
    RunOptions,
    TextColumn,
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
from shardwright.components.image_transform.features import asset_name
from shardwright.components.runtime.artifacts import flush_artifact
from shardwright.config.trainer import BLESSED
from shardwright.config.transform import KEEP
from shardwright.dataset.manifest import MULTI, NONE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.evaluation.metrics import headline
from shardwright.lineage.record import LINEAGE_FILE, write_lineage
from shardwright.progress import progress
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage import hash_file

RECIPE_KEY = "recipe"
RUNNING_KEY = "running"
WARM_START_KEY = "warm_start"
WEIGHTS_KEY = "weights"


_TRAIN = "train"
# Where TensorFlow Transform keeps vocabularies within a TransformGraph.
_ASSETS = os.path.join("transform_fn", "assets")


def run_fn(fn_args: Any) -> None:
    """Trains and exports, as TFX's Trainer asks for it.

    Args:
        fn_args: `tfx.components.FnArgs`; `custom_config[RECIPE_KEY]` holds `Recipe.to_dict()`, and `[RUNNING_KEY]`
            `Running.to_dict()` where it is not the default. The examples are a dataset of ImageTransform, found through
            the first of `train_files`. On a host that is not the first nothing is written to the places that it names.

    Raises:
        ConfigError: this machine has no such accelerator, or has one that would stay idle.
        ShardwrightError: a worker failed.
    """
    running = RunOptions(**fn_args.custom_config.get(RUNNING_KEY, {}))
    # Before anything is read: a machine that cannot train is refused at once.
    choose_placement(running.accelerator, this_host(os.environ, running.hosts).count, Machine.look(os.environ))
    # TFX names <dataset>/Split-train/*.
    dataset = Path(fn_args.train_files[0]).parents[1]
    recipe = Recipe.from_dict(fn_args.custom_config[RECIPE_KEY])
    files = {
        "warm_from": _warm_from(recipe, fn_args),
        "weights_from": _weights_from(recipe, fn_args),
        "transform_graph": fn_args.transform_graph_path or "",
    }
    if not this_host(os.environ, running.hosts).publishes:
        with tempfile.TemporaryDirectory() as folder:
            own, nowhere = Path(folder, "run"), Path(folder, "export")
            train_and_export(recipe, dataset=dataset, run_folder=own, export_folder=nowhere, running=running, **files)
        # TFX asks for the folder; `container` has given this host one of its own.
        Path(fn_args.serving_model_dir).mkdir(parents=True, exist_ok=True)
        return
    train_and_export(
        recipe,
        dataset=dataset,
        run_folder=Path(fn_args.model_run_dir),
        export_folder=Path(fn_args.serving_model_dir),
        running=running,
        **files,
    )
    # The model's artifact begins two folders above: <model>/Format-Serving.
    model_root = Path(fn_args.serving_model_dir).parent
    shutil.copyfile(Path(fn_args.serving_model_dir, LINEAGE_FILE), model_root / LINEAGE_FILE)
    flush_artifact(str(model_root))


def train_and_export(
    recipe: Recipe,
    *,
    dataset: Path,
    run_folder: Path,
    export_folder: Path,
    running: RunOptions = AS_USUAL,
    warm_from: str = "",
    weights_from: str = "",
    transform_graph: str = "",
) -> TrainSpec:
    """Trains on a transformed dataset and writes the SavedModel; a training that was interrupted goes on.

    Checkpoints go to the staging folder of the run where there is one (it outlives an attempt of TFX), else to
    `run_folder`; they are deleted when the model is there. On a host that is not the first there is no export.

    Args:
        recipe: what shapes the model.
        dataset: folder of a dataset of ImageTransform.
        run_folder: gets spec.json, model.keras, history.json, training.json, TensorBoard logs and the workers' logs.
        export_folder: gets the SavedModel.
        running: how it runs.
        warm_from: a file of weights, or a folder with one, that the training begins with; empty: with none.
        weights_from: file or URL of the encoder's weights; empty: they begin at random.
        transform_graph: folder of the TransformGraph that was made with the dataset; its vocabularies are needed where
            the model reads texts.

    Returns:
        What the workers were told.

    Raises:
        DatasetError: there is no such dataset, or nothing to train on.
        ConfigError: this machine has no such accelerator, or is not one of so many hosts.
        ShardwrightError: a worker failed.
    """
    host = this_host(os.environ, running.hosts)
    placement = choose_placement(running.accelerator, host.count, Machine.look(os.environ))
    manifest = ImageDataset.open(dataset).manifest
    run_folder.mkdir(parents=True, exist_ok=True)
    spec = dataclasses.replace(spec_of(recipe, dataset, run_folder, export_folder), weights_from=weights_from)
    if recipe.text:
        vocabularies = os.path.join(transform_graph, _ASSETS)
        columns = _text_columns(recipe, ImageDataset.open(dataset), vocabularies)
        spec = dataclasses.replace(spec, texts=columns, vocabularies=vocabularies)
    if warm_from:
        file, digest = weights_file(warm_from)
        spec = dataclasses.replace(spec, warm_from=file, warm_digest=digest)
    staging = os.environ.get(STAGING_VARIABLE) or os.fspath(run_folder)
    spec = dataclasses.replace(spec, running=running, checkpoints=f"{staging}/training/{spec.fingerprint[:32]}")
    spec_file = run_folder / SPEC_FILE
    spec.write(spec_file)
    with _shown(recipe.epochs, headline(spec.task, multi=spec.multi)) as show:
        run_worker(
            (WORKER, "train"),
            spec_file,
            run_folder / "train.log",
            environment={**placement.to_environment(os.environ), **host.to_environment()},
            on_message=show,
        )
    if not host.publishes:
        return spec
    checkpoints = CheckpointFolder(spec.checkpoints)
    # Without the checkpoints, an export that fails would cost the whole training.
    with checkpoints.locked():
        run_worker((WORKER, "export"), spec_file, run_folder / "export.log", environment={BACKEND: "tensorflow"})
        kept = export_folder / KEPT_MODEL
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run_folder / MODEL_FILE, kept)
        for folder, kind in ((run_folder, "training"), (export_folder, "model")):
            write_lineage(
                folder,
                kind=kind,
                fingerprint=spec.fingerprint,
                parents={"dataset": manifest.digest, **({"warm_start": spec.warm_digest} if spec.warm_digest else {})},
                recipe=recipe.to_dict(),
                files=kind == "model",
            )
        for folder in (run_folder, export_folder):
            flush_artifact(str(folder))
        checkpoints.remove()
    return spec


def _warm_from(recipe: Recipe, fn_args: Any) -> str:
    """Where the weights lie that a training begins with; empty where it begins with none.

    Raises:
        UsageError: they are not there any more, or are others.
    """
    if not recipe.warm_start:
        return ""
    if recipe.warm_start == BLESSED:
        # Of a push folder without a blessed model, the resolver hands on nothing.
        found = Path(fn_args.base_model or "", KEPT_MODEL)
        return os.fspath(found) if fn_args.base_model and found.is_file() else ""
    told = fn_args.custom_config.get(WARM_START_KEY) or os.environ.get(WARM_START_VARIABLE, "")
    file, digest = weights_file(told)
    if digest != recipe.warm_start:
        raise UsageError(f"trainer.warm_start: {file} has changed since the pipeline was built. Run it again.")
    return file


def _weights_from(recipe: Recipe, fn_args: Any) -> str:
    """Where the weights of the encoder lie; empty where it begins with random ones.

    Raises:
        UsageError: they are not there any more, or are others.
    """
    if not recipe.weights:
        return ""
    place = str(fn_args.custom_config.get(WEIGHTS_KEY) or os.environ.get(WEIGHTS_VARIABLE, ""))
    found = hash_file(place) if place else None
    if found is None or found.sha256.hex() != recipe.weights:
        raise UsageError(f"trainer.weights: {place} has changed since the pipeline was built. Run it again.")
    return place


def _text_columns(recipe: Recipe, dataset: ImageDataset, vocabularies: str) -> tuple[TextColumn, ...]:
    """The columns of texts that a model is to read, with what their words are.

    Raises:
        UsageError: the dataset has no such column.
        DatasetError: its vocabulary is not there.
    """
    from shardwright.loader.text_features import text_features

    columns = []
    for text in text_features(dataset, recipe.text):
        file = os.path.join(vocabularies, asset_name(text.feature))
        found = hash_file(file)
        if found is None:
            raise DatasetError(f"{file}: no vocabulary of {text.column!r} there. Run ImageTransform again.")
        columns.append(TextColumn(text.column, text.feature, text.vocabulary, found.sha256.hex(), text.length))
    return tuple(columns)


def spec_of(recipe: Recipe, dataset: Path, run_folder: Path, export_folder: Path) -> TrainSpec:
    """What the workers are told of a recipe and a dataset, with weights that begin at random.

    Raises:
        DatasetError: there is no such dataset, or nothing to train on.
    """
    opened = ImageDataset.open(dataset)
    manifest = opened.manifest
    if manifest.labels == NONE:
        raise DatasetError(f"{dataset}: its images have no labels, so there is nothing to train on. Give labels.")
    if not opened.num_records(_TRAIN):
        raise DatasetError(f"{dataset}: the split {_TRAIN} is empty. Give more images, or a larger share of them.")
    height, width = loader.image_size(opened)
    mean = std = None
    if recipe.normalize == "dataset":
        statistics = loader.dataset_statistics(dataset)
        mean, std = tuple(statistics["mean"]), tuple(statistics["std"])
    weights = None
    if recipe.class_weights == "balanced":
        weights = balanced_weights(manifest.task, loader.dataset_statistics(dataset), manifest.classes)
    return TrainSpec(
        recipe=recipe,
        dataset=os.fspath(dataset),
        dataset_fingerprint=manifest.fingerprint,
        task=manifest.task,
        classes=manifest.classes,
        height=height,
        width=width,
        # What kept its size is of the model's; what else is served is stretched to it.
        resize="stretch" if manifest.recipe["resize"] == KEEP else manifest.recipe["resize"],
        mean=mean,
        std=std,
        output=os.fspath(run_folder),
        export=os.fspath(export_folder),
        ignore=manifest.ignores,
        multi=manifest.labels == MULTI,
        class_weights=weights,
        ingested=_ingested(dataset),
    )


def _ingested(dataset: Path) -> dict[str, Any]:
    """What the ingest did to pixels; nothing is known of a dataset that was not transformed."""
    if not Path(dataset, loader.STATISTICS_FILE).is_file():
        return {}
    return dict(loader.dataset_statistics(dataset).get("ingested", {}))


@contextmanager
def _shown(epochs: int, metric: str) -> Iterator[Callable[[Message], None]]:
    """Shows epochs as they end: a bar on a terminal, a line each elsewhere."""
    terminal = sys.stderr.isatty()
    with progress(epochs, "training", quiet=not terminal) as bar:

        def show(message: Message) -> None:
            if "epoch" in message:
                bar.advance()
            line = training_line(message, metric)
            if line and not (terminal and "epoch" in message):
                print(f"  {line}", file=sys.stderr, flush=True)

        yield show


def training_line(message: Message, metric: str) -> str:
    """A message of the training worker in words; empty for one that is not for people.

    Args:
        message: see `loop.Loop`.
        metric: the metric that is told.
    """
    if "epoch" in message:
        held_out = message.get("eval", {})
        measured = f", {metric} {held_out[metric]:.3f}" if metric in held_out else ""
        fast = f", {message['images_per_second']:.1f} images/s" if message.get("images_per_second") else ""
        return f"epoch {message['epoch']}/{message['epochs']}: loss {message['loss']:.4f}{measured}{fast}"
    if "resumed" in message:
        return f"goes on from its checkpoint: step {message['resumed']} of {message['steps']}"
    return str(message.get("note", ""))
