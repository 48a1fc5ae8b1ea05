"""Shared by the tests of the trainer: recipes written in one line."""

import dataclasses
from typing import Any

from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.config import EvaluatorConfig, LoaderConfig, TrainerConfig


def train_recipe(
    model: str,
    width: int,
    epochs: int,
    batch_size: int,
    rate: float,
    seed: int,
    eval_split: str,
    **options: Any,
) -> TrainRecipe:
    """Returns a recipe with fixed thresholds; `options` are any of the sections' other ones, under their names."""
    trainer = TrainerConfig(
        model=model, base_filters=width, epochs=epochs, batch_size=batch_size, learning_rate=rate, seed=seed,
        class_weights="none",
    )  # fmt: skip
    loader = LoaderConfig(normalize="unit", augment=(), shuffle_buffer=64)
    plain = TrainRecipe(trainer, loader, EvaluatorConfig(threshold=0.5, min_area=0), eval_split=eval_split)
    return changed(plain, **options)


def changed(recipe: TrainRecipe, **options: Any) -> TrainRecipe:
    """Returns a recipe with other options, whichever section they are in."""
    parts: dict[str, Any] = {}
    for name in ("trainer", "loader", "evaluator"):
        section = getattr(recipe, name)
        ours = {field.name for field in dataclasses.fields(section)} & options.keys()
        parts[name] = dataclasses.replace(section, **{option: options.pop(option) for option in ours})
    return dataclasses.replace(recipe, **parts, **options)
