"""`trainer`: the model and how it learns; the names of models, encoders and losses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.parsing import at_least, between, one_of
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

# The models of a task, the one that `auto` means first; any other name is the import path of a user's function.
MODELS = {"segmentation": ("unet", "deeplab"), "classification": ("cnn",)}
# Limit of the words that a model reads: each takes a number of every image, and a row of weights.
_MOST_WORDS = 50_000
_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_import_path(model: str) -> bool:
    """Returns whether `trainer.model` is `package.module:function`."""
    return _IMPORT_PATH.fullmatch(model) is not None


def check_model(model: str, encoder: str, weights: str | None) -> None:
    """Refuses an unknown model, and an encoder that does not go with it.

    Args:
        model: `trainer.model`.
        encoder: `trainer.encoder`.
        weights: `trainer.weights`.
    """
    if not is_import_path(model):
        if ":" in model or "." in model:
            raise ConfigError(
                "trainer.model",
                f"{model!r} is not an import path",
                "Write package.module:function, e.g. mine.models:build.",
            )
        one_of("trainer.model", model, ("auto", *itertools.chain(*MODELS.values())))
    one_of("trainer.encoder", encoder, ENCODERS)
    if is_import_path(model) and encoder != COMPACT:
        raise ConfigError(
            "trainer.encoder", f"{encoder!r}, but trainer.model is your own function", "Remove trainer.encoder."
        )
    if weights is None:
        return
    if encoder == COMPACT:
        raise ConfigError(
            "trainer.weights",
            f"{weights!r} are weights of an encoder, and trainer.encoder is compact",
            f"Use trainer.encoder: {ENCODERS[1]}, or remove trainer.weights.",
        )
    if not weights.endswith(WEIGHT_FILES):
        raise ConfigError("trainer.weights", f"{weights!r} is not a file of weights", f"Use {', '.join(WEIGHT_FILES)}.")


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
                f"It has: {', '.join(texts) or 'none'}. Add transform.text.{column}.",
            )
    words = sum(texts[column].vocabulary for column in columns)
    if words > _MOST_WORDS:
        raise ConfigError(
            "trainer.text", f"{words} words", f"Lower transform.text.{columns[0]}.vocabulary; {_MOST_WORDS} at most."
        )
    if columns and any(name.partition("=")[0] == "mixup" for name in augment):
        raise ConfigError(
            "loader.augment", "mixup mixes images, and trainer.text has texts", "Remove mixup or trainer.text."
        )


def check_learning(task: str, model: str, loss: str) -> None:
    """Refuses a model or a loss that is for another task."""
    if model != "auto" and not is_import_path(model) and model not in MODELS[task]:
        raise ConfigError("trainer.model", f"{model!r} does not solve {task}", "Use auto, or the other task.")
    losses = LOSSES_OF_MASKS if task == "segmentation" else (*LOSSES_OF_LABELS, *LOSSES_OF_CLASSES[:1])
    if loss not in ("auto", *losses):
        raise ConfigError("trainer.loss", f"{loss!r} is not for {task}", f"Use one of: auto, {', '.join(losses)}.")


ACCELERATORS = ("auto", "cpu", "gpu", "tpu")
OPTIMIZERS = ("adamw", "adam", "sgd")
SCHEDULES = ("cosine", "linear", "constant")
PRECISIONS = ("float32", "bfloat16")
FRESH, BLESSED = "none", "blessed"


@dataclass(frozen=True)
class CheckpointConfig:
    """A training saves its state every so many steps, and at the end of an epoch; it keeps the last ones."""

    PATH: ClassVar[str] = "trainer.checkpoint"

    every: int = 500
    keep: int = 2

    def __post_init__(self) -> None:
        at_least("trainer.checkpoint.every", self.every, 1)
        at_least("trainer.checkpoint.keep", self.keep, 1)


@dataclass(frozen=True)
class TrainerConfig:
    """The model and how it learns. `model: auto` is `unet` for segmentation and `cnn` for classification.

    `batch_size` counts the images of all devices and hosts together. `warm_up` is the share of the steps in which the
    learning rate rises, `patience` the number of epochs without a better one after which a training ends. `text` are
    columns of `transform.text` that the model reads with the image; `ema` keeps a running mean of the weights;
    `accumulate` batches make one update.
    """

    PATH: ClassVar[str] = "trainer"

    model: str = "auto"
    epochs: int = 10
    batch_size: int = 16
    learning_rate: float = 1e-3
    width: int = 16
    seed: int = 1
    loss: str = "auto"
    class_weights: str = "none"
    encoder: str = COMPACT
    weights: str | None = None
    optimizer: str = "adamw"
    weight_decay: float | None = None
    schedule: str = "cosine"
    warm_up: float = 0.05
    patience: int | None = None
    precision: str = "float32"
    warm_start: str = FRESH
    text: tuple[str, ...] = ()
    ema: float | None = None
    accumulate: int = 1
    accelerator: str = "auto"
    hosts: int = 1
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        check_model(self.model, self.encoder, self.weights)
        one_of("trainer.class_weights", self.class_weights, CLASS_WEIGHTS)
        at_least("trainer.epochs", self.epochs, 1)
        at_least("trainer.batch_size", self.batch_size, 1)
        between("trainer.learning_rate", self.learning_rate, 1e-8, 10)
        between("trainer.width", self.width, 4, 256)
        at_least("trainer.seed", self.seed, 0)
        one_of("trainer.optimizer", self.optimizer, OPTIMIZERS)
        one_of("trainer.schedule", self.schedule, SCHEDULES)
        between("trainer.warm_up", self.warm_up, 0, 0.9)
        one_of("trainer.precision", self.precision, PRECISIONS)
        one_of("trainer.accelerator", self.accelerator, ACCELERATORS)
        if self.weight_decay is not None:
            between("trainer.weight_decay", self.weight_decay, 0, 1)
            if self.optimizer != "adamw":
                raise ConfigError(
                    "trainer.weight_decay",
                    f"{self.optimizer} has none",
                    "Remove trainer.weight_decay, or use optimizer: adamw.",
                )
        if self.patience is not None:
            at_least("trainer.patience", self.patience, 1)
        if self.ema is not None:
            between("trainer.ema", self.ema, 0.5, 0.99999)
        between("trainer.accumulate", self.accumulate, 1, 1024)
        for column in self.text:
            if self.text.count(column) > 1:
                raise ConfigError("trainer.text", f"{column!r} twice", "Name each column once.")
        if self.text and is_import_path(self.model):
            raise ConfigError(
                "trainer.text",
                "trainer.model is your own function, and gets images only",
                "Remove trainer.text, or use trainer.model: auto.",
            )
        if not self.warm_start.strip():
            raise ConfigError(
                "trainer.warm_start", f"{self.warm_start!r} names nothing", f"Use {FRESH}, {BLESSED} or a path."
            )
        at_least("trainer.hosts", self.hosts, 1)
        if self.batch_size % self.hosts:
            raise ConfigError(
                "trainer.batch_size",
                f"{self.batch_size} images cannot be split over {self.hosts} hosts equally",
                f"Use {-(-self.batch_size // self.hosts) * self.hosts}.",
            )
