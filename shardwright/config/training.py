"""`transform`, `loader`, `trainer`, `evaluator`, `gate`: from a dataset to a model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import at_least, between, one_of
from shardwright.errors import ConfigError

RESIZE_POLICIES = ("stretch", "fill_crop", "letterbox")
ENCODINGS = ("jpeg", "png")
NORMALIZATIONS = ("unit", "imagenet_torch", "imagenet_caffe", "dataset", "none")
AUGMENTATIONS = ("flip_left_right", "flip_up_down", "rotate90", "brightness")
ANOMALY_KIND = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class TransformConfig:
    """The pixels that are trained on. `size` is [height, width]."""

    PATH: ClassVar[str] = "transform"

    size: tuple[int, int] = (352, 544)
    resize: str = "stretch"
    encoding: str = "jpeg"
    quality: int = 90

    def __post_init__(self) -> None:
        for side in self.size:
            between("transform.size", side, 8, 16384)
        one_of("transform.resize", self.resize, RESIZE_POLICIES)
        one_of("transform.encoding", self.encoding, ENCODINGS)
        between("transform.quality", self.quality, 1, 100)


@dataclass(frozen=True)
class LoaderConfig:
    """How examples become batches."""

    PATH: ClassVar[str] = "loader"

    normalize: str = "imagenet_torch"
    augment: tuple[str, ...] = ()
    order: str = "fast"
    shuffle_buffer: int = 1024

    def __post_init__(self) -> None:
        one_of("loader.normalize", self.normalize, NORMALIZATIONS)
        for name in self.augment:
            one_of("loader.augment", name, AUGMENTATIONS)
        one_of("loader.order", self.order, ("fast", "exact"))
        at_least("loader.shuffle_buffer", self.shuffle_buffer, 1)


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
    accelerator: str = "cpu"
    hosts: int = 1

    def __post_init__(self) -> None:
        one_of("trainer.model", self.model, ("auto", "unet", "cnn"))
        at_least("trainer.epochs", self.epochs, 1)
        at_least("trainer.batch_size", self.batch_size, 1)
        between("trainer.learning_rate", self.learning_rate, 1e-8, 10)
        between("trainer.width", self.width, 4, 256)
        at_least("trainer.seed", self.seed, 0)
        one_of("trainer.accelerator", self.accelerator, ("cpu",))
        if self.hosts != 1:
            raise ConfigError("trainer.hosts", f"{self.hosts!r} is more than this version trains on", "Use 1.")


@dataclass(frozen=True)
class EvaluatorConfig:
    """What a model must reach on `split` to be blessed, and by how much it must beat the last blessed one."""

    PATH: ClassVar[str] = "evaluator"

    split: str = "test"
    min_dice: float = 0.5
    min_accuracy: float = 0.5
    min_f1: float = 0.5
    min_change: float = 0.0
    threshold: float = 0.5

    def __post_init__(self) -> None:
        between("evaluator.min_dice", self.min_dice, 0, 1)
        between("evaluator.min_accuracy", self.min_accuracy, 0, 1)
        between("evaluator.min_f1", self.min_f1, 0, 1)
        between("evaluator.min_change", self.min_change, -1, 1)
        between("evaluator.threshold", self.threshold, 0, 1)


@dataclass(frozen=True)
class GateConfig:
    """Kinds of anomalies (names of TFDV's `AnomalyInfo.Type`) that do not stop the run."""

    PATH: ClassVar[str] = "gate"

    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in self.allow:
            if not ANOMALY_KIND.fullmatch(kind):
                raise ConfigError("gate.allow", f"{kind!r} names no kind of anomaly", "Use e.g. INVALID_FEATURE_SHAPE.")
