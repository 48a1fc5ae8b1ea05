"""`trainer`: the model and how it learns; the names of models, encoders and losses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from shardwright.config.loader import MIXING
from shardwright.config.options import Pattern, Section, one_of, option
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

# The models of a task, the one that `auto` means first; any other name is the import path of a user's function.
MODELS = {"segmentation": ("unet", "deeplab"), "classification": ("cnn",)}
_MODELS = ("auto", *itertools.chain(*MODELS.values()))
# Limit of the words that a model reads: each takes a number of every image, and a row of weights.
_MOST_WORDS = 50_000
_WEIGHTS = Pattern(
    re.compile(rf"{DIGEST}.*|.*({'|'.join(map(re.escape, WEIGHT_FILES))})", re.DOTALL),
    f"Use {', '.join(WEIGHT_FILES)}.",
    "is not a file of weights",
)
_CACHE = Pattern(re.compile("/.*|.*://.*", re.DOTALL), "Write /… or gs://….", "is neither an absolute path nor a URL")
_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_import_path(model: str) -> bool:
    """Returns whether `trainer.model` is `package.module:function`."""
    return _IMPORT_PATH.fullmatch(model) is not None and not model.startswith(DIGEST)


def is_own(model: str) -> bool:
    """Returns whether `trainer.model` is the user's: a function, or a model that `shardwright.train` was given."""
    return is_import_path(model) or model.startswith(DIGEST)


def import_path_form(example: str) -> Pattern:
    """Returns the form `package.module:function`, with an example for the message."""
    return Pattern(_IMPORT_PATH, f"Write package.module:function, for example {example}.", "is not an import path")


def _check_model_name(path: str, model: str) -> None:
    if model.startswith(DIGEST):
        return
    if ":" in model or "." in model:
        import_path_form("mine.models:build")(path, model)
    else:
        one_of(path, model, _MODELS)


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
    if model != "auto" and not is_own(model) and model not in MODELS[task]:
        raise ConfigError("trainer.model", f"{model!r} does not solve {task}", "Use auto, or the other task.")
    losses = LOSSES_OF_MASKS if task == "segmentation" else (*LOSSES_OF_LABELS, *LOSSES_OF_CLASSES[:1])
    if loss not in ("auto", *losses):
        raise ConfigError("trainer.loss", f"{loss!r} is not for {task}", f"Use one of: auto, {', '.join(losses)}.")


@dataclass(frozen=True)
class CheckpointConfig(Section):
    """The state that a training saves, also at the end of each epoch."""

    PATH: ClassVar[str] = "trainer.checkpoint"

    every: int = option(500, least=1, help="Steps between two checkpoints.")
    keep: int = option(2, least=1, help="Number of checkpoints that are kept.")


@dataclass(frozen=True)
class ProfileConfig(Section):
    """A trace of some steps, for TensorBoard."""

    PATH: ClassVar[str] = "trainer.profile"

    steps: tuple[int, ...] = option(
        (), least=1, help="The first step of the trace and the one after its last: `[100, 110]`."
    )

    def check(self, path: str) -> None:
        """Refuses what is no range of steps."""
        super().check(path)
        if self.steps and (len(self.steps) != 2 or self.steps[0] >= self.steps[1]):
            raise self.error("steps", f"{list(self.steps)} is no range of steps", "Write e.g. [100, 110].")


@dataclass(frozen=True)
class TrainerConfig(Section):
    """The model and how it learns."""

    PATH: ClassVar[str] = "trainer"

    model: str = option(
        "auto",
        form=_check_model_name,
        schema={"anyOf": [{"enum": list(_MODELS)}, {"type": "string", "pattern": f"^{_IMPORT_PATH.pattern}$"}]},
        help="`auto` is `unet` for segmentation and `cnn` for classification; `package.module:function` is a function "
        "of your own.",
    )
    epochs: int | None = option(
        None,
        least=1,
        help="Times that the split train is read; by default as many as 1,500 updates take, from 10 to 100.",
    )
    batch_size: int = option(16, least=1, help="Images of a step, on all devices and hosts together.")
    learning_rate: float | None = option(
        None,
        least=1e-8,
        most=10,
        help="Learning rate after the warm-up; by default 0.003, and 0.001 with an encoder or your own model.",
    )
    base_filters: int = option(
        16, least=4, most=256, help="Filters of the first layers of a model; deeper layers have multiples."
    )
    seed: int = option(1, least=0, help="Seed of the initial weights and of the order.")
    loss: str = option(
        "auto",
        choices=("auto", *dict.fromkeys((*LOSSES_OF_MASKS, *LOSSES_OF_LABELS))),
        help="Loss; `auto` fits the task.",
    )
    label_smoothing: float = option(
        0.0,
        least=0,
        most=0.9,
        help="Share of the truth that is spread over all classes, or for masks moved towards a half.",
    )
    outputs: str = option(
        "auto",
        choices=OUTPUTS,
        help="What your own model returns: `logits`, `probabilities`, or `auto`, by its last activation.",
    )
    class_weights: str = option(
        "auto",
        choices=CLASS_WEIGHTS,
        help="`balanced` weights classes by their frequency; `auto` does so if one is far rarer than another.",
    )
    encoder: str = option(COMPACT, choices=ENCODERS, help="Encoder of the model.")
    weights: str | None = option(
        None, form=_WEIGHTS, help="File of weights of the encoder; by default they are random."
    )
    encoder_rate: float = option(
        1.0,
        least=0,
        most=10,
        help="Factor of the learning rate for the weights of the encoder; 0 keeps them as they are.",
    )
    encoder_trainable_from: int = option(
        1, least=1, help="Epoch from which the encoder learns; before, only the rest of the model does."
    )
    optimizer: str = option("adamw", choices=OPTIMIZERS, help="Optimizer.")
    weight_decay: float | None = option(None, least=0, most=1, help="Weight decay of `adamw`; the default is 0.001.")
    decayed: tuple[str, ...] = option(
        ("*kernel",),
        help="Patterns of the names of weights that decay, such as `*kernel`; the others (biases, scales of "
        "normalizations) do not.",
    )
    clip_norm: float = option(
        1.0, least=0, most=1e6, help="Global norm to which the gradient of an update is clipped; 0: not at all."
    )
    rate_rule: str = option(
        NO_SCALING,
        choices=RATE_RULES,
        help="How the learning rate follows the batch: `linear` multiplies it by `batch_size / 16`, `square_root` by "
        "the square root of that.",
    )
    schedule: str = option("cosine", choices=SCHEDULES, help="Course of the learning rate after the warm-up.")
    warm_up: float = option(0.05, least=0, most=0.9, help="Share of the steps in which the learning rate rises.")
    patience: int | None = option(
        None, least=1, help="Epochs without a better one after which a training ends; by default it never does."
    )
    precision: str = option("float32", choices=PRECISIONS, help="Precision between the layers.")
    warm_start: str = option(
        FRESH,
        help="Initial weights: `none`, those of the `blessed` model, or the path of a model. A compiled pipeline needs "
        "a file on a bucket.",
    )
    text: tuple[str, ...] = option((), help="Columns of `transform.text` that the model reads with the image.")
    ema: float | None = option(
        None,
        least=0.5,
        most=0.99999,
        help="Momentum of a running mean of the weights over the updates, which is kept in their place.",
    )
    accumulate: int = option(1, least=1, most=1024, help="Batches whose gradients make one update.")
    callbacks: str | None = option(
        None,
        form=import_path_form("mine.training:callbacks"),
        help="Import path of a function that returns Keras callbacks.",
    )
    steps_per_epoch: int | None = option(
        None,
        least=1,
        help="Steps after which the model is evaluated and saved; by default as many as read the split train once.",
    )
    evaluate_every: int = option(
        1, least=1, help="Epochs between two evaluations on the split eval; the last one is always evaluated."
    )
    log_every: int = option(
        50,
        least=1,
        place=True,
        help="Steps between two lines of the log: loss, learning rate, gradient norm, speed, memory.",
    )
    steps_per_launch: int | None = option(
        None,
        least=1,
        most=1000,
        place=True,
        help="Steps that are launched together; by default 1 on a CPU and with large images, and up to 16 with small "
        "ones on an accelerator. Callbacks of every batch need 1.",
    )
    compilation_cache: str | None = option(
        None,
        place=True,
        form=_CACHE,
        help="Folder or URL in which JAX keeps compiled steps for later trainings; by default none.",
    )
    profile: ProfileConfig = option(factory=ProfileConfig, place=True, help="A trace of some steps.")
    accelerator: str = option("auto", choices=ACCELERATORS, place=True, help="Devices that the training must run on.")
    hosts: int = option(1, least=1, place=True, help="Number of machines that train together.")
    shard_weights: int = option(
        1,
        least=1,
        place=True,
        help="Neighbouring devices that share one copy of large weights and of their optimizer's state (FSDP), on JAX.",
    )
    checkpoint: CheckpointConfig = option(factory=CheckpointConfig, place=True, help="The saved state.")

    def check(self, path: str) -> None:
        """Refuses options that contradict each other."""
        super().check(path)
        for name in ("encoder_rate", "encoder_trainable_from"):
            if self.encoder == COMPACT and getattr(self, name) != getattr(TrainerConfig, name):
                raise self.error(
                    name,
                    f"{getattr(self, name)}, and trainer.encoder is compact: all weights learn from the start",
                    f"Remove it, or use trainer.encoder: {ENCODERS[1]}.",
                )
        if self.outputs != "auto" and not is_own(self.model):
            raise self.error("outputs", f"{self.outputs!r}, but trainer.model is ours", "Remove it.")
        if is_own(self.model) and self.encoder != COMPACT:
            problem = f"{self.encoder!r}, but the model is your own"
            raise self.error("encoder", problem)
        if self.weights is not None and self.encoder == COMPACT:
            raise self.error(
                "weights",
                f"{self.weights!r} are weights of an encoder, and trainer.encoder is compact",
                f"Use trainer.encoder: {ENCODERS[1]}, or remove trainer.weights.",
            )
        if self.weight_decay is not None and self.optimizer != "adamw":
            problem = f"{self.optimizer} has none"
            raise self.error("weight_decay", problem, "Remove trainer.weight_decay, or use optimizer: adamw.")
        for column in self.text:
            if self.text.count(column) > 1:
                raise self.error("text", f"{column!r} twice", "Name each column once.")
        if self.text and is_own(self.model):
            raise self.error(
                "text",
                "the model is your own, and gets images only",
                "Remove trainer.text, or use trainer.model: auto.",
            )
        if not self.warm_start.strip():
            raise self.error("warm_start", f"{self.warm_start!r} names nothing", f"Use {FRESH}, {BLESSED} or a path.")
        if self.batch_size % self.hosts:
            raise self.error(
                "batch_size",
                f"{self.batch_size} images cannot be split over {self.hosts} hosts equally",
                f"Use {-(-self.batch_size // self.hosts) * self.hosts}.",
            )

    def epochs_of(self, images: int) -> int:
        """Returns the number of epochs: a small set is read more often, so that as many updates are made.

        Args:
            images: images of the split train.
        """
        if self.epochs is not None:
            return self.epochs
        steps = self.steps_per_epoch or images // min(self.batch_size, max(images, 1))
        updates = max(1, steps // self.accumulate)
        return min(max(-(-_UPDATES // updates), _FEWEST_EPOCHS), _MOST_EPOCHS)

    def rate_of(self) -> float:
        """Returns the learning rate: weights and layers that are not ours get a lower one by default."""
        if self.learning_rate is not None:
            return self.learning_rate
        return _RATE if self.encoder == COMPACT and not is_own(self.model) else _RATE_OF_OTHERS

    @property
    def schedule_ends(self) -> str:
        """Returns why a finished training cannot go on with more epochs; empty if it can."""
        if self.schedule != "constant":
            return f"its learning rate has fallen to the end of trainer.schedule: {self.schedule}"
        return f"trainer.warm_up: {self.warm_up:g} of the steps would be more of them" if self.warm_up else ""

    @property
    def extendable(self) -> bool:
        """Returns whether a training with more epochs begins as one with fewer: the rate of no step depends on them."""
        return not self.schedule_ends

    def effective(self, task: str) -> TrainerConfig:
        """Returns the section with the model that `auto` means.

        Args:
            task: `segmentation` or `classification`.
        """
        return replace(self, model=MODELS[task][0] if self.model == "auto" else self.model)
