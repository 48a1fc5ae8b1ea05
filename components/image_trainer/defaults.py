"""Defaults that follow from the data: the number of epochs, augmentations and class weights.

A training with them is the same as one that states them, so a specification has the values and not `auto`. Each comes
with a note that says what was chosen, why, and the option that decides otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.config.loader import AUTO_AUGMENT
from shardwright.text.escaping import escape

# What photographs bear: a mirrored one is as likely, and light differs between cameras and hours.
_FLIPPED = ("flip_left_right",)
_LIGHT = ("brightness=0.1", "contrast=0.1")
# Objects of a class have no fixed size, place or color. Masks need none of that: their pixels are examples enough.
_MOVED = ("crop=0.4", "rotate=15", "saturation=0.3")
# A mirrored character is another one, or none, and a mirrored left hand is a right one.
_CHARACTER = re.compile(r"\w", re.UNICODE)
_SIDED = re.compile(r"(^|[^a-z])(left|right|l|r)([^a-z]|$)")
# Weights only where a class would hardly be learned: of labels by images, of masks by pixels.
_RARE = {"classification": 3.0, "segmentation": 20.0}
_SHARES = {"classification": "class_frequency", "segmentation": "pixel_frequency"}


def with_defaults(
    recipe: TrainRecipe, *, task: str, classes: Sequence[str], images: int, statistics: Mapping[str, Any]
) -> tuple[TrainRecipe, tuple[str, ...]]:
    """Returns a recipe with values in place of `auto`, and notes about them.

    Args:
        recipe: the recipe of a configuration.
        task: `segmentation` or `classification`.
        classes: names of the classes.
        images: images of the split train.
        statistics: `loader.dataset_statistics`; empty if they are not known.
    """
    trainer, loader, notes = recipe.trainer, recipe.loader, []
    trainer = replace(trainer, learning_rate=trainer.rate_of())
    if trainer.epochs is None:
        epochs = trainer.epochs_of(images)
        trainer = replace(trainer, epochs=epochs)
        steps = trainer.steps_per_epoch or max(1, images // trainer.batch_size)
        updates = epochs * steps // trainer.accumulate
        each = f"{steps:,} steps" if trainer.steps_per_epoch else f"{images:,} images"
        notes.append(f"{epochs} epochs of {each}, {updates:,} updates (trainer.epochs)")
    if loader.augment == AUTO_AUGMENT:
        augment, why = augmentations_for(task, classes)
        loader = replace(loader, augment=augment)
        notes.append(f"augments with {', '.join(augment)}{why} (loader.augment; [] for none)")
    if trainer.class_weights == "auto":
        shares = statistics.get(_SHARES[task], {})
        # Of the classes with examples, the rarest first.
        known = sorted((float(shares[name]), name) for name in classes if shares.get(name, 0))
        weighted = bool(known) and known[0][0] * _RARE[task] < known[-1][0]
        trainer = replace(trainer, class_weights="balanced" if weighted else "none")
        if weighted:
            (least, rare), *_, (most, common) = known
            many = f"{most / least:.0f} times as frequent as {escape(rare)}"
            notes.append(f"weights the classes, since {escape(common)} is {many} (trainer.class_weights)")
    return replace(recipe, trainer=trainer, loader=loader), tuple(notes)


def augmentations_for(task: str, classes: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Returns the augmentations that keep an image in its class, and why others were left out."""
    rest = (*(_MOVED if task == "classification" else ()), *_LIGHT)
    # Masks of the classes 1 to 4 are numbered defects, not drawn digits.
    if task == "classification" and all(_CHARACTER.fullmatch(name) for name in classes):
        return rest, ", without flips: the classes are characters"
    sided = next((name for name in classes if _SIDED.search(name.lower())), None)
    if sided is not None:
        return rest, f", without flips: the class {escape(sided)} has a side"
    return (*_FLIPPED, *rest), ""
