"""`trainer`: the model and how it learns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.checks import at_least, between, one_of
from shardwright.config.learning import CLASS_WEIGHTS, COMPACT, check_model, is_import_path
from shardwright.errors import ConfigError

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
    columns of `transform.text` that the model reads beside the image; `ema` keeps a running mean of the weights;
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
                raise ConfigError("trainer.weight_decay", f"{self.optimizer} has none", "Remove it, or use adamw.")
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
                "trainer.text", "a model of your own takes images alone", "Remove it, or use model: auto."
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
