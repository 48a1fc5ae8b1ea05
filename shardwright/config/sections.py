"""The sections of a configuration, as frozen dataclasses that refuse what makes no sense.

Every section checks its own values in `__post_init__`; what concerns two sections at once is checked in `Config`. A
section knows its YAML path through `PATH`, so that an error names the line to change. Values that a later version will
take are refused here, not silently ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from shardwright.config.checks import at_least, between, one_of
from shardwright.config.labels import WITHOUT_MASKS, LabelsConfig
from shardwright.errors import ConfigError

TASKS = ("segmentation", "classification")
RESIZE_POLICIES = ("stretch", "fill_crop", "letterbox")
ENCODINGS = ("jpeg", "png")
NORMALIZATIONS = ("unit", "imagenet_torch", "imagenet_caffe", "dataset", "none")
AUGMENTATIONS = ("flip_left_right", "flip_up_down", "rotate90", "brightness")
UNLISTED = ("auto", "empty", "unlabelled", "reject", "fail")
ANOMALY_KIND = re.compile(r"[A-Z][A-Z0-9_]*")
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class InputConfig:
    """The images and their annotations.

    `classes` is `None` (told from the data) or an ordered mapping from name to the id the annotations use; a YAML list
    of names stands for ids in the order of the list, with `None` for "the annotations use the names".
    """

    PATH: ClassVar[str] = "input"

    images: str
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    classes: Mapping[str, int | None] | None = None
    unlisted: str = "auto"

    def __post_init__(self) -> None:
        if not self.images:
            raise ConfigError("input.images", "empty", "Give a folder or a glob of images.")
        one_of("input.unlisted", self.unlisted, UNLISTED)
        if self.classes is not None and not self.classes:
            raise ConfigError("input.classes", "empty", "Name at least one class, or leave the key out.")
        for name in self.classes or ():
            if not name.strip() or any(ord(c) < 32 for c in name) or "/" in name:
                raise ConfigError("input.classes", f"{name!r} cannot be part of a feature's name", "Rename the class.")


@dataclass(frozen=True)
class ImagesConfig:
    """What is checked of each image. Stored bytes are the file's own (pass-through)."""

    PATH: ClassVar[str] = "images"

    verify: str = "header"
    max_pixels: int = 200_000_000

    def __post_init__(self) -> None:
        one_of("images.verify", self.verify, ("header",))
        at_least("images.max_pixels", self.max_pixels, 1)


@dataclass(frozen=True)
class SplitConfig:
    """Names and shares of the splits; by a salted hash of the key, so that growing data moves no old key."""

    PATH: ClassVar[str] = "split"

    shares: Mapping[str, float] = field(default_factory=lambda: {"train": 0.8, "eval": 0.1, "test": 0.1})
    by: str = "hash"
    salt: str = ""

    def __post_init__(self) -> None:
        one_of("split.by", self.by, ("hash",))
        if not self.shares:
            raise ConfigError("split", "no splits", "Write for example {train: 0.8, eval: 0.1, test: 0.1}.")
        for name, share in self.shares.items():
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise ConfigError(f"split.{name}", "not a split's name", "Use lower-case letters, digits and _.")
            if not 0 < share <= 1:
                raise ConfigError(f"split.{name}", f"{share!r} is no share", "Use a number above 0, at most 1.")
        total = sum(self.shares.values())
        if abs(total - 1) > 1e-6:
            raise ConfigError("split", f"the shares add up to {total:g}", "Make them add up to 1.")


@dataclass(frozen=True)
class ShardsConfig:
    """How many shards a split has: by bytes a shard, or a count, or records a shard (one of the three)."""

    PATH: ClassVar[str] = "shards"

    target_size: int | None = None
    count: int | None = None
    records: int | None = None

    def __post_init__(self) -> None:
        given = {k: v for k, v in vars(self).items() if v is not None}
        if len(given) > 1:
            raise ConfigError("shards", f"{' and '.join(given)} exclude each other", "Give one of them.")
        for name, value in given.items():
            at_least(f"shards.{name}", value, 1)
        if not given:
            object.__setattr__(self, "target_size", 150_000_000)


@dataclass(frozen=True)
class RejectsConfig:
    """How many inputs may be rejected before the run fails; 10 are always allowed."""

    PATH: ClassVar[str] = "rejects"

    max: float = 0.01

    def __post_init__(self) -> None:
        between("rejects.max", self.max, 0, 1)


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
        one_of("loader.order", self.order, ("fast",))
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
    min_change: float = 0.0
    threshold: float = 0.5

    def __post_init__(self) -> None:
        between("evaluator.min_dice", self.min_dice, 0, 1)
        between("evaluator.min_accuracy", self.min_accuracy, 0, 1)
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


@dataclass(frozen=True)
class BeamConfig:
    """Options for Beam, for all components and for single ones by their name."""

    PATH: ClassVar[str] = "beam"

    options: tuple[str, ...] = ()
    per_component: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class RunConfig:
    """Where a run lives. `staging` defaults to a folder inside `root`."""

    PATH: ClassVar[str] = "run"

    root: str | None = None
    staging: str | None = None


@dataclass(frozen=True)
class Config:
    """One whole configuration, validated.

    Attributes:
        base: Folder that relative paths in the file start from; the folder of the file.
    """

    name: str
    task: str
    input: InputConfig
    images: ImagesConfig = field(default_factory=ImagesConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    shards: ShardsConfig = field(default_factory=ShardsConfig)
    rejects: RejectsConfig = field(default_factory=RejectsConfig)
    transform: TransformConfig = field(default_factory=TransformConfig)
    loader: LoaderConfig = field(default_factory=LoaderConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    evaluator: EvaluatorConfig = field(default_factory=EvaluatorConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    beam: BeamConfig = field(default_factory=BeamConfig)
    run: RunConfig = field(default_factory=RunConfig)
    base: str = "."

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                "name", f"{self.name!r} is no pipeline name", "Use a-z, 0-9 and -, at most 63, first a-z."
            )
        one_of("task", self.task, TASKS)
        if self.task == "segmentation" and self.input.labels.format in WITHOUT_MASKS:
            raise ConfigError(
                "input.labels.format",
                f"{self.input.labels.format} holds no masks for the task segmentation",
                "Use rle_csv or coco_json, or task: classification.",
            )
        if self.task == "segmentation" and self.input.labels.pattern is not None:
            raise ConfigError("input.labels.pattern", "the task segmentation takes no labels from names", "Remove it.")
        for name in self.input.labels.code if self.task == "classification" else ():
            raise ConfigError(f"input.labels.{name}", "the task classification has no masks", "Remove it.")
        if self.trainer.model != "auto" and (self.trainer.model == "unet") != (self.task == "segmentation"):
            raise ConfigError(
                "trainer.model", f"{self.trainer.model!r} does not solve {self.task}", "Use auto, or the other task."
            )
        if "train" not in self.split.shares:
            raise ConfigError("split", "no split named train", "Add train.")
        if self.evaluator.split not in self.split.shares:
            raise ConfigError(
                "evaluator.split",
                f"{self.evaluator.split!r} is no split of this configuration",
                f"Use one of: {', '.join(self.split.shares)}.",
            )

    def resolve(self, path: str) -> str:
        """An absolute path; a relative one starts from `base`, and one with a scheme (`gs://`) stays as it is."""
        return path if "://" in path else os.path.normpath(os.path.join(self.base, os.path.expanduser(path)))

    def to_dict(self) -> dict[str, Any]:
        """The resolved configuration as plain values, for `build.json`."""
        return _plain(self)


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value
