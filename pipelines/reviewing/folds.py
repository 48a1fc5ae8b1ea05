"""Predictions for the images that a model learned from: by models that learned from the others.

The images of the split are divided in the order of a hash of their keys. For each fold, a model is trained on the other
images by the Trainer's own code (`shardwright.train`), with the options of the model that is reviewed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.components.image_trainer.train_dataset import train, training_config, transformed
from shardwright.components.predictor.exported_model import ExportedModel, is_exported, read_asset
from shardwright.components.predictor.sources import DatasetSource
from shardwright.config.canonical import recipe_options
from shardwright.dataset.example_view import sampling_hash
from shardwright.dataset.reader import ImageDataset
from shardwright.edit.derive import Derived, derive
from shardwright.errors import UsageError
from shardwright.storage.durable import make_folder

_TRAIN = "train"


def fold_models(
    dataset: ImageDataset,
    folder: Path,
    folds: int,
    config: str | os.PathLike[str] | None,
    options: Mapping[str, Any],
) -> Iterator[tuple[str, DatasetSource]]:
    """Trains a model for each fold, and yields its folder with the images that it has not seen.

    Args:
        dataset: the images.
        folder: gets the transformed images, and the models of the folds; finished ones are used again.
        folds: how many.
        config: a configuration for the trainings, or `None`.
        options: further options of `shardwright.train`.

    Raises:
        UsageError: there are fewer images than folds.
        ShardwrightError: see `train`.
    """
    images = dataset.num_records(_TRAIN) if _TRAIN in dataset.splits else 0
    if not 2 <= folds <= images:
        raise UsageError(f"--folds {folds}: {_TRAIN} of {dataset.root} has {images} images. Use 2 to {max(images, 2)}.")
    make_folder(folder)
    chosen = training_config(dataset, config, options)
    small = ImageDataset.open(transformed(dataset, chosen, folder))
    fold_of = {key: place % folds for place, key in enumerate(sorted(dataset.keys(_TRAIN), key=sampling_hash))}
    for fold in range(folds):
        part, how = folder / f"fold-{fold + 1}-of-{folds}", {"fold": fold, "folds": folds}
        own = {key for key, number in fold_of.items() if number == fold}
        derive([small], part / "rest", Derived("rest", how, choose=partial(_is_not_in, own)), quiet=True)
        derive([dataset], part / "held-out", Derived("held-out", how, choose=own.__contains__), quiet=True)
        trained = train(part / "rest", part / "training", config=config, **options)
        yield os.fspath(trained.model), DatasetSource(ImageDataset.open(part / "held-out"), (_TRAIN,))


def _is_not_in(keys: Collection[str], key: str) -> bool:
    return key not in keys


def options_of(model: ExportedModel) -> dict[str, Any]:
    """Returns the options of `shardwright.train` that a model was trained with.

    Raises:
        UsageError: they are not known, or name files that are not in the model.
    """
    if not is_exported(model.folder):
        raise UsageError(f"{model.folder}: Shardwright did not train this model. Give --config FILE for its folds.")
    recipe = TrainRecipe.from_dict(read_asset(Path(model.folder), "training")["recipe"])
    trainer = recipe_options(recipe.trainer)
    named = [name for name in ("weights", "warm_start") if name in trainer]
    if named or recipe.code or recipe.callbacks_code:
        what = f"trainer.{named[0]}" if named else "code of your own"
        raise UsageError(f"{model.folder}: was trained with {what}, which is not in the model. Give --config FILE.")
    return {
        "transform": {"size": [model.height, model.width], "resize": model.resize},
        "loader": recipe_options(recipe.loader),
        "trainer": trainer,
        "evaluator": recipe_options(recipe.evaluator),
    }
