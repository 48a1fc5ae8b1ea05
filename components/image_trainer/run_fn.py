"""What TFX's Trainer calls: it sets up the two workers, shows their progress, and files what they made."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shardwright import loader
from shardwright.console import progress
from shardwright.dataset import Dataset
from shardwright.errors import DatasetError
from shardwright.lineage import LINEAGE_FILE, write_lineage
from shardwright.manifest import MULTI, NONE
from shardwright.metrics import headline
from shardwright_components.image_trainer.class_weights import balanced_weights
from shardwright_components.image_trainer.spec import SPEC_FILE, Recipe, TrainSpec
from shardwright_components.image_trainer.worker import Message, run_worker

RECIPE_KEY = "recipe"

_TRAIN = "train"
_PACKAGE = __name__.rpartition(".")[0]


def run_fn(fn_args: Any) -> None:
    """Trains and exports, as TFX's Trainer asks for it.

    Args:
        fn_args: `tfx.components.FnArgs`; `custom_config[RECIPE_KEY]` holds `Recipe.to_dict()`. The examples are a
            dataset of ImageTransform, found through the first of `train_files`.

    Raises:
        ShardwrightError: a worker failed.
    """
    # TFX names <dataset>/Split-train/*.
    dataset = Path(fn_args.train_files[0]).parents[1]
    train_and_export(
        Recipe.from_dict(fn_args.custom_config[RECIPE_KEY]),
        dataset=dataset,
        run_folder=Path(fn_args.model_run_dir),
        export_folder=Path(fn_args.serving_model_dir),
    )
    # The model's artifact begins two folders above: <model>/Format-Serving.
    model_root = Path(fn_args.serving_model_dir).parent
    shutil.copyfile(Path(fn_args.serving_model_dir, LINEAGE_FILE), model_root / LINEAGE_FILE)


def train_and_export(recipe: Recipe, *, dataset: Path, run_folder: Path, export_folder: Path) -> TrainSpec:
    """Trains on a transformed dataset and writes the SavedModel.

    Args:
        recipe: what shapes the model.
        dataset: folder of a dataset of ImageTransform.
        run_folder: gets spec.json, model.keras, history.json, TensorBoard logs and the workers' logs.
        export_folder: gets the SavedModel.

    Returns:
        What the workers were told.

    Raises:
        DatasetError: there is no such dataset, or nothing to train on.
        ShardwrightError: a worker failed.
    """
    manifest = Dataset.open(dataset).manifest
    run_folder.mkdir(parents=True, exist_ok=True)
    spec = _spec(recipe, dataset, run_folder, export_folder)
    spec_file = run_folder / SPEC_FILE
    spec.write(spec_file)
    backend = {"KERAS_BACKEND": "tensorflow"}
    with _shown(recipe.epochs, headline(spec.task, multi=spec.multi)) as show:
        run_worker(
            f"{_PACKAGE}.train_worker", spec_file, run_folder / "train.log", environment=backend, on_message=show
        )
    run_worker(f"{_PACKAGE}.export_worker", spec_file, run_folder / "export.log", environment=backend)
    for folder, kind in ((run_folder, "training"), (export_folder, "model")):
        write_lineage(
            folder,
            kind=kind,
            fingerprint=spec.fingerprint,
            parents={"dataset": manifest.digest},
            recipe=recipe.to_dict(),
        )
    return spec


def _spec(recipe: Recipe, dataset: Path, run_folder: Path, export_folder: Path) -> TrainSpec:
    opened = Dataset.open(dataset)
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
        resize=manifest.recipe["resize"],
        mean=mean,
        std=std,
        output=os.fspath(run_folder),
        export=os.fspath(export_folder),
        ignore=manifest.ignores,
        multi=manifest.labels == MULTI,
        class_weights=weights,
    )


@contextmanager
def _shown(epochs: int, metric: str) -> Iterator[Callable[[Message], None]]:
    """Shows epochs as they end: a bar on a terminal, a line each elsewhere."""
    terminal = sys.stderr.isatty()
    with progress(epochs, "training", quiet=not terminal) as bar:

        def show(message: Message) -> None:
            bar.advance()
            if not terminal:
                held_out = message.get("eval", {})
                measured = f", {metric} {held_out[metric]:.3f}" if metric in held_out else ""
                line = f"  epoch {message['epoch']}/{message['epochs']}: loss {message['loss']:.4f}{measured}"
                print(line, file=sys.stderr, flush=True)

        yield show
