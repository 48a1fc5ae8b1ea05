"""What a model may be, and what it may minimize: the names that `trainer` takes."""

from __future__ import annotations

import re

from shardwright.config.checks import one_of
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

# The model of a task; any other name is a path to a function of the user's.
MODELS = {"segmentation": "unet", "classification": "cnn"}
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
        one_of("trainer.model", model, ("auto", *MODELS.values()))
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


def check_learning(task: str, model: str, loss: str) -> None:
    """Refuses a model or a loss that is for another task."""
    if model in MODELS.values() and model != MODELS[task]:
        raise ConfigError("trainer.model", f"{model!r} does not solve {task}", "Use auto, or the other task.")
    losses = LOSSES_OF_MASKS if task == "segmentation" else (*LOSSES_OF_LABELS, *LOSSES_OF_CLASSES[:1])
    if loss not in ("auto", *losses):
        raise ConfigError("trainer.loss", f"{loss!r} is not for {task}", f"Use one of: auto, {', '.join(losses)}.")
