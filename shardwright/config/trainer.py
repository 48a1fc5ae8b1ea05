"""`trainer`: the model and how it learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import at_least, between, one_of
from shardwright.config.learning import CLASS_WEIGHTS, COMPACT, check_model
from shardwright.errors import ConfigError


@dataclass(frozen=True)
class TrainerConfig:
    """The model and how long it learns. `model: auto` is `unet` for segmentation and `cnn` for classification."""

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
    accelerator: str = "cpu"
    hosts: int = 1

    def __post_init__(self) -> None:
        check_model(self.model, self.encoder, self.weights)
        one_of("trainer.class_weights", self.class_weights, CLASS_WEIGHTS)
        at_least("trainer.epochs", self.epochs, 1)
        at_least("trainer.batch_size", self.batch_size, 1)
        between("trainer.learning_rate", self.learning_rate, 1e-8, 10)
        between("trainer.width", self.width, 4, 256)
        at_least("trainer.seed", self.seed, 0)
        one_of("trainer.accelerator", self.accelerator, ("cpu",))
        if self.hosts != 1:
            raise ConfigError("trainer.hosts", f"{self.hosts!r} is more than this version trains on", "Use 1.")
