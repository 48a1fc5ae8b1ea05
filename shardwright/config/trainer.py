"""`trainer`: the model and how it learns; the names of models, encoders and losses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from shardwright.config.loader import MIXING
from shardwright.config.parsing import at_least, between, one_of
from shardwright.config.transform import TextConfig
from shardwright.errors import ConfigError

# The first of each is what `auto` means.
LOSSES_OF_MASKS = ("bce_dice", "bce", "dice", "focal", "tversky")
LOSSES_OF_LABELS = ("cross_entropy", "focal")
LOSSES_OF_CLASSES = ("bce", "focal")
CLASS_WEIGHTS = ("auto", "none", "balanced")
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


def check_import_path(option: str, path: str | None, example: str) -> None:
    """Refuses a text that is not `package.module:function`.

    Args:
        option: its YAML path.
        path: the text; `None` for none.
        example: for the message.
    """
    if path is not None and not is_import_path(path):
        fix = f"Write package.module:function, for example {example}."
        raise ConfigError(option, f"{path!r} is not an import path", fix)


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
    if not weights.endswith(WEIGHT_FILES) and not weights.startswith(DIGEST):
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
            "trainer.text",
            f"{words} words are too many",
            f"Lower transform.text.{columns[0]}.vocabulary; at most {_MOST_WORDS} words.",
        )
    mixing = [name for written in augment if (name := written.partition("=")[0]) in MIXING]
    if columns and mixing:
        problem = f"{mixing[0]} mixes images, and trainer.text has texts"
        raise ConfigError("loader.augment", problem, f"Remove {mixing[0]} or trainer.text.")


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
# By which rule the learning rate follows the batch size, relative to `RATE_BATCH` images.
NO_SCALING, LINEAR, SQUARE_ROOT = "none", "linear", "square_root"
RATE_RULES = (NO_SCALING, LINEAR, SQUARE_ROOT)
RATE_BATCH = 16
# From random weights, and with weights or layers that are not ours.
_RATE, _RATE_OF_OTHERS = 3e-3, 1e-3
# A training from random weights needs updates, however few images there are; more than so many epochs only cost time.
_UPDATES, _FEWEST_EPOCHS, _MOST_EPOCHS = 1500, 10, 100
# What an own model returns.
OUTPUTS = ("auto", "logits", "probabilities")
FRESH, BLESSED = "none", "blessed"
# Begins what replaces the path of a file in a recipe: its checksum in hex follows.
DIGEST = "blake3:"


@dataclass(frozen=True)
class CheckpointConfig:
    """The state that a training saves, also at the end of each epoch.

    Attributes:
        every: Steps between two checkpoints.
        keep: Number of checkpoints that are kept.
    """

    PATH: ClassVar[str] = "trainer.checkpoint"

    every: int = 500
    keep: int = 2

    def __post_init__(self) -> None:
        at_least("trainer.checkpoint.every", self.every, 1)
        at_least("trainer.checkpoint.keep", self.keep, 1)


@dataclass(frozen=True)
class ProfileConfig:
    """A trace of some steps, for TensorBoard.

    Attributes:
        steps: The first step of the trace and the one after its last: `[100, 110]`.
    """

    PATH: ClassVar[str] = "trainer.profile"

    steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.steps and (len(self.steps) != 2 or not 1 <= self.steps[0] < self.steps[1]):
            raise ConfigError(
                "trainer.profile.steps", f"{list(self.steps)} is no range of steps", "Write e.g. [100, 110]."
            )


@dataclass(frozen=True)
class TrainerConfig:
    """The model and how it learns.

    Attributes:
        model: `auto` is `unet` for segmentation and `cnn` for classification; `package.module:function` is a function
            of your own.
        epochs: Times that the split train is read; by default as many as 1,500 updates take, from 10 to 100.
        batch_size: Images of a step, on all devices and hosts together.
        learning_rate: Learning rate after the warm-up; by default 0.003, and 0.001 with an encoder or your own model.
        base_filters: Filters of the first layers of a model; deeper layers have multiples.
        seed: Seed of the initial weights and of the order.
        loss: Loss; `auto` fits the task.
        label_smoothing: Share of the truth that is spread over all classes, or for masks moved towards a half.
        outputs: What your own model returns: `logits`, `probabilities`, or `auto`, by its last activation.
        class_weights: `balanced` weights classes by their frequency; `auto` does so if one is far rarer than another.
        encoder: Encoder of the model.
        weights: File of weights of the encoder; by default they are random.
        encoder_rate: Factor of the learning rate for the weights of the encoder; 0 keeps them as they are.
        encoder_trainable_from: Epoch from which the encoder learns; before, only the rest of the model does.
        optimizer: Optimizer.
        weight_decay: Weight decay of `adamw`; the default is 0.001.
        decayed: Patterns of the names of weights that decay, such as `*kernel`; the others (biases, scales of
            normalizations) do not.
        clip_norm: Global norm to which the gradient of an update is clipped; 0: not at all.
        rate_rule: How the learning rate follows the batch: `linear` multiplies it by `batch_size / 16`, `square_root`
            by the square root of that.
        schedule: Course of the learning rate after the warm-up.
        warm_up: Share of the steps in which the learning rate rises.
        patience: Epochs without a better one after which a training ends; by default it never does.
        precision: Precision between the layers.
        warm_start: Initial weights: `none`, those of the `blessed` model, or the path of a model. A compiled pipeline
            needs a file on a bucket.
        text: Columns of `transform.text` that the model reads with the image.
        ema: Momentum of a running mean of the weights over the updates, which is kept in their place.
        accumulate: Batches whose gradients make one update.
        callbacks: Import path of a function that returns Keras callbacks.
        evaluate_every: Epochs between two evaluations on the split eval; the last one is always evaluated.
        log_every: Steps between two lines of the log: loss, learning rate, gradient norm, speed, memory.
        profile: A trace of some steps.
        accelerator: Devices that the training must run on.
        hosts: Number of machines that train together.
        checkpoint: The saved state.
    """

    PATH: ClassVar[str] = "trainer"

    model: str = "auto"
    epochs: int | None = None
    batch_size: int = 16
    learning_rate: float | None = None
    base_filters: int = 16
    seed: int = 1
    loss: str = "auto"
    label_smoothing: float = 0.0
    outputs: str = "auto"
    class_weights: str = "auto"
    encoder: str = COMPACT
    weights: str | None = None
    encoder_rate: float = 1.0
    encoder_trainable_from: int = 1
    optimizer: str = "adamw"
    weight_decay: float | None = None
    decayed: tuple[str, ...] = ("*kernel",)
    clip_norm: float = 1.0
    rate_rule: str = NO_SCALING
    schedule: str = "cosine"
    warm_up: float = 0.05
    patience: int | None = None
    precision: str = "float32"
    warm_start: str = FRESH
    text: tuple[str, ...] = ()
    ema: float | None = None
    accumulate: int = 1
    callbacks: str | None = None
    evaluate_every: int = 1
    log_every: int = field(default=50, metadata={"place": True})
    profile: ProfileConfig = field(default_factory=ProfileConfig, metadata={"place": True})
    accelerator: str = field(default="auto", metadata={"place": True})
    hosts: int = field(default=1, metadata={"place": True})
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig, metadata={"place": True})

    def __post_init__(self) -> None:
        check_model(self.model, self.encoder, self.weights)
        self._check_encoder()
        one_of("trainer.class_weights", self.class_weights, CLASS_WEIGHTS)
        if self.epochs is not None:
            at_least("trainer.epochs", self.epochs, 1)
        at_least("trainer.batch_size", self.batch_size, 1)
        if self.learning_rate is not None:
            between("trainer.learning_rate", self.learning_rate, 1e-8, 10)
        between("trainer.base_filters", self.base_filters, 4, 256)
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
        between("trainer.label_smoothing", self.label_smoothing, 0, 0.9)
        one_of("trainer.outputs", self.outputs, OUTPUTS)
        if self.outputs != "auto" and not is_import_path(self.model):
            raise ConfigError("trainer.outputs", f"{self.outputs!r}, but trainer.model is ours", "Remove it.")
        between("trainer.clip_norm", self.clip_norm, 0, 1e6)
        one_of("trainer.rate_rule", self.rate_rule, RATE_RULES)
        if self.patience is not None:
            at_least("trainer.patience", self.patience, 1)
        if self.ema is not None:
            between("trainer.ema", self.ema, 0.5, 0.99999)
        at_least("trainer.evaluate_every", self.evaluate_every, 1)
        at_least("trainer.log_every", self.log_every, 1)
        between("trainer.accumulate", self.accumulate, 1, 1024)
        check_import_path("trainer.callbacks", self.callbacks, "mine.training:callbacks")
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

    def _check_encoder(self) -> None:
        between("trainer.encoder_rate", self.encoder_rate, 0, 10)
        at_least("trainer.encoder_trainable_from", self.encoder_trainable_from, 1)
        for option in ("encoder_rate", "encoder_trainable_from"):
            if self.encoder == COMPACT and getattr(self, option) != getattr(TrainerConfig, option):
                raise ConfigError(
                    f"trainer.{option}",
                    f"{getattr(self, option)}, and trainer.encoder is compact: all weights learn from the start",
                    f"Remove it, or use trainer.encoder: {ENCODERS[1]}.",
                )

    def epochs_of(self, images: int) -> int:
        """Returns the number of epochs: a small set is read more often, so that as many updates are made.

        Args:
            images: images of the split train.
        """
        if self.epochs is not None:
            return self.epochs
        updates = max(1, images // min(self.batch_size, max(images, 1)) // self.accumulate)
        return min(max(-(-_UPDATES // updates), _FEWEST_EPOCHS), _MOST_EPOCHS)

    def rate_of(self) -> float:
        """Returns the learning rate: weights and layers that are not ours get a lower one by default."""
        if self.learning_rate is not None:
            return self.learning_rate
        return _RATE if self.encoder == COMPACT and not is_import_path(self.model) else _RATE_OF_OTHERS

    def effective(self, task: str) -> TrainerConfig:
        """Returns the section with the model that `auto` means, and without options that do not shape the model.

        Args:
            task: `segmentation` or `classification`.
        """
        return replace(
            self,
            model=MODELS[task][0] if self.model == "auto" else self.model,
            accelerator=TrainerConfig.accelerator,
            hosts=TrainerConfig.hosts,
            checkpoint=CheckpointConfig(),
            log_every=TrainerConfig.log_every,
            profile=ProfileConfig(),
        )
