"""What a model may be, and what it may minimize: the names that `trainer` takes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from shardwright.config.checks import one_of
from shardwright.config.transform import TextConfig
from shardwright.errors import ConfigError

# The first of each is what `auto` means.
LOSSES_OF_MASKS = ("bce_dice", "bce", "dice", "focal", "tversky")
LOSSES_OF_LABELS = ("cross_entropy", "focal")
LOSSES_OF_CLASSES = ("bce", "focal")
CLASS_WEIGHTS = ("none", "balanced")
COMPACT = "compact"
ENCODERS = (
    COMPACT,
    "efficientnetv2-b0",
    "efficientnetv2-b1",
    "efficientnetv2-b2",
    "efficientnetv2-b3",
)
WEIGHT_FILES = (".weights.h5", ".h5", ".keras")

# The models of a task, the one that `auto` means first; any other name is a path to a function of the user's.
MODELS = {"segmentation": ("unet", "deeplab"), "classification": ("cnn",)}
# Words that a model is told of: every one is a number of each image, and a row of weights.
_MOST_WORDS = 50_000
_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_import_path(model: str) -> bool:
    """Whether `trainer.model` is `package.module:function`."""
    return _IMPORT_PATH.fullmatch(model) is not None


def check_model(model: str, encoder: str, weights: str | None) -> None:
    """Refuses a model that is none, and an encoder that does not go with it.

    Args:
        model: `trainer.model`.
        encoder: `trainer.encoder`.
        weights: `trainer.weights`.
    """
    if not is_import_path(model):
        if ":" in model or "." in model:
            raise ConfigError(
                "trainer.model",
                f"{model!r} is no import path",
                "Write package.module:function, e.g. mine.models:build.",
            )
        one_of("trainer.model", model, ("auto", *itertools.chain(*MODELS.values())))
    one_of("trainer.encoder", encoder, ENCODERS)
    if is_import_path(model) and encoder != COMPACT:
        raise ConfigError("trainer.encoder", f"{encoder!r}, but trainer.model is your own", "Remove it.")
    if weights is None:
        return
    if encoder == COMPACT:
        raise ConfigError(
            "trainer.weights",
            "they are an encoder's, and trainer.encoder is compact",
            f"Use {ENCODERS[1]}, or remove it.",
        )
    if not weights.endswith(WEIGHT_FILES):
        raise ConfigError("trainer.weights", f"{weights!r} is no file of weights", f"Use {', '.join(WEIGHT_FILES)}.")


def check_texts(columns: Sequence[str], texts: Mapping[str, TextConfig], augment: Sequence[str]) -> None:
    """Refuses texts that the transform does not count, and more words than a model can read.

    Args:
        columns: `trainer.text`.
        texts: `transform.text`.
        augment: `loader.augment`.
    """
    for column in columns:
        if column not in texts:
            raise ConfigError(
                "trainer.text",
                f"{column!r} is not among transform.text",
                f"There: {', '.join(texts) or 'none'}. Say there how its words are counted.",
            )
    words = sum(texts[column].vocabulary for column in columns)
    if words > _MOST_WORDS:
        raise ConfigError(
            "trainer.text", f"{words} words", f"Lower transform.text.{columns[0]}.vocabulary; {_MOST_WORDS} at most."
        )
    if columns and any(name.partition("=")[0] == "mixup" for name in augment):
        raise ConfigError("loader.augment", "mixup mixes images, and trainer.text has texts", "Remove one of the two.")


def check_learning(task: str, model: str, loss: str) -> None:
    """Refuses a model or a loss that is for another task."""
    if model != "auto" and not is_import_path(model) and model not in MODELS[task]:
        raise ConfigError("trainer.model", f"{model!r} does not solve {task}", "Use auto, or the other task.")
    losses = LOSSES_OF_MASKS if task == "segmentation" else (*LOSSES_OF_LABELS, *LOSSES_OF_CLASSES[:1])
    if loss not in ("auto", *losses):
        raise ConfigError("trainer.loss", f"{loss!r} is not for {task}", f"Use one of: auto, {', '.join(losses)}.")
