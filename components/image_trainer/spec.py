"""What is trained, as one frozen value that travels as JSON from the Trainer to its worker processes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.models.custom import source_digest
from shardwright.components.image_trainer.training.warm_start import weights_file
from shardwright.config import Config
from shardwright.config.trainer import BLESSED, COMPACT, FRESH, MODELS, is_import_path
from shardwright.errors import UsageError
from shardwright.fingerprint import fingerprint
from shardwright.storage import hash_file

# Part of every recipe: raised when the same options give another model, so that caches let go of the old one.
RECIPE_VERSION = 3

EVAL_SPLIT = "eval"
WEIGHT_DECAY = 1e-3

# What counts as predicted until thresholds are tuned.
_UNTUNED = 0.5

# What a training leaves in its output folder.
SPEC_FILE = "spec.json"
MODEL_FILE = "model.keras"
LOG_FOLDER = "logs"


@dataclass(frozen=True)
class Recipe:
    """The options that shape a model. No path, no clock: the Trainer's cache key holds exactly this.

    Attributes:
        model: `unet`, `deeplab`, `cnn`, or an import path.
        normalize: how uint8 pixels become floats, see `pixels.normalize`.
        threshold: probability from which a pixel belongs to a class, in evaluation.
        eval_split: split that chooses the best epoch; empty: the last epoch is kept.
        order: `fast` or `exact`, see `loader.load`.
        loss: a kind of `losses.build_loss`.
        class_weights: `none`, or `balanced` by the statistics of the transform.
        encoder: `compact`, or a family of `models.encoders`.
        weights: SHA-256 of the file of the encoder's weights; empty: they begin at random.
        code: SHA-256 of the source of a model of the user's.
        tuned: which of `threshold` and `min_area` are chosen per class on `eval_split` after the training; before, and
            without such a split, the given ones hold.
        min_area: pixels of the smallest region of a mask.
        flips: how the exported model looks at an image once more, see `flips`.
        submission: layout of the table of masks, see `shardwright.evaluation.submission`; what `predict` writes by
            default.
        optimizer: `adamw`, `adam` or `sgd`, see `optimizers.build_optimizer`.
        weight_decay: of `adamw`.
        schedule: `cosine`, `linear` or `constant`.
        warm_up: share of the steps in which the learning rate rises.
        patience: epochs without a better one after which the training ends; 0: it never does.
        precision: `float32`, or `bfloat16` for what is between the layers.
        warm_start: SHA-256 of the file whose weights the training begins with, or `blessed`; empty: with none.
        text: columns of `transform.text` that the model reads beside the image.
        ema: weight of what was before in the running mean of the weights that is kept; 0: the weights themselves are.
        accumulate: batches whose gradients make one update.
    """

    model: str
    filters: int
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    normalize: str
    augment: tuple[str, ...]
    shuffle_buffer: int
    threshold: float
    eval_split: str
    order: str = "fast"
    loss: str = "auto"
    class_weights: str = "none"
    encoder: str = COMPACT
    weights: str = ""
    code: str = ""
    tuned: tuple[str, ...] = ()
    min_area: int = 0
    submission: str = ""
    flips: tuple[str, ...] = ()
    optimizer: str = "adamw"
    weight_decay: float = WEIGHT_DECAY
    schedule: str = "cosine"
    warm_up: float = 0.05
    patience: int = 0
    precision: str = "float32"
    warm_start: str = ""
    text: tuple[str, ...] = ()
    ema: float = 0.0
    accumulate: int = 1
    version: int = RECIPE_VERSION

    @classmethod
    def from_config(cls, config: Config) -> Recipe:
        """The recipe of a configuration; `model: auto` is settled by the task."""
        trainer, loader = config.trainer, config.loader
        return cls(
            model=MODELS[config.task][0] if trainer.model == "auto" else trainer.model,
            filters=trainer.width,
            epochs=trainer.epochs,
            batch_size=trainer.batch_size,
            learning_rate=trainer.learning_rate,
            seed=trainer.seed,
            normalize=loader.normalize,
            augment=tuple(loader.augment),
            shuffle_buffer=loader.shuffle_buffer,
            order=loader.order,
            threshold=_UNTUNED if isinstance(config.evaluator.threshold, str) else config.evaluator.threshold,
            min_area=0 if isinstance(config.evaluator.min_area, str) else config.evaluator.min_area,
            tuned=config.evaluator.tuned,
            flips=tuple(dict.fromkeys(config.evaluator.flips)),
            loss=trainer.loss,
            class_weights=trainer.class_weights,
            encoder=trainer.encoder,
            weights=_weights(config),
            code=source_digest(trainer.model, config.base) if is_import_path(trainer.model) else "",
            optimizer=trainer.optimizer,
            weight_decay=WEIGHT_DECAY if trainer.weight_decay is None else trainer.weight_decay,
            schedule=trainer.schedule,
            warm_up=trainer.warm_up,
            patience=trainer.patience or 0,
            precision=trainer.precision,
            warm_start=_warm_start(config),
            text=tuple(trainer.text),
            ema=trainer.ema or 0.0,
            accumulate=trainer.accumulate,
            eval_split=EVAL_SPLIT if EVAL_SPLIT in config.split.names else "",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what a later version adds is left out where it has its default."""
        value = {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}
        return {name: v for name, v in value.items() if name not in _OPTIONAL or getattr(self, name) != _OPTIONAL[name]}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Recipe:
        """From `to_dict`'s form.

        Raises:
            UsageError: a field is missing or unknown, or the recipe is of another version of Shardwright.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        wrong = sorted(names.symmetric_difference(value) - set(_OPTIONAL))
        if wrong or value["version"] != RECIPE_VERSION:
            raise UsageError(
                f"this trainer's recipe is of another Shardwright (version {value.get('version')!r}, this one writes "
                f"{RECIPE_VERSION}; fields that do not fit: {', '.join(wrong) or 'none'}). "
                "Run it with the Shardwright that wrote it, or compile the pipeline again."
            )
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
        return cls(**plain)


def _weights(config: Config) -> str:
    """SHA-256 of the encoder's weights: never where they lie."""
    told = config.trainer.weights
    if told is None:
        return ""
    found = hash_file(config.resolve(told))
    if found is None:
        raise UsageError(
            f"trainer.weights: {config.resolve(told)} cannot be read. Give a file of weights, or remove it."
        )
    return found.sha256.hex()


def _warm_start(config: Config) -> str:
    """What a recipe says of `trainer.warm_start`: never where the file lies."""
    told = config.trainer.warm_start
    if told in (FRESH, BLESSED):
        return "" if told == FRESH else told
    return weights_file(config.resolve(told))[1]


# Of a specification: where it reads and writes, and how it runs.
_PLACES = ("dataset", "output", "export", "running", "checkpoints", "warm_from", "weights_from", "vocabularies")

# Options that came later, with their defaults.
_OPTIONAL: dict[str, Any] = {
    field.name: field.default
    for field in dataclasses.fields(Recipe)
    if field.default is not dataclasses.MISSING and field.name not in ("order", "version")
}


@dataclass(frozen=True)
class RunOptions:
    """How a training runs, which does not shape the model.

    Attributes:
        accelerator: `trainer.accelerator`, see `placement`.
        hosts: `trainer.hosts`.
        every: steps between two checkpoints.
        keep: checkpoints that are kept.
    """

    accelerator: str = "auto"
    hosts: int = 1
    every: int = 500
    keep: int = 2

    @classmethod
    def from_config(cls, config: Config) -> RunOptions:
        """What a configuration says."""
        trainer = config.trainer
        return cls(trainer.accelerator, trainer.hosts, trainer.checkpoint.every, trainer.checkpoint.keep)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without those that are the default."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}


AS_USUAL = RunOptions()


@dataclass(frozen=True)
class TextColumn:
    """A column of texts that a model reads.

    Attributes:
        column: as `transform.text` names it.
        feature: that the texts were ingested as.
        vocabulary: the most words that are told apart.
        digest: SHA-256 of the list of these words.
        length: words of an image that count, the first ones: `ids` of a length hold no others; 0: all.
    """

    column: str
    feature: str
    vocabulary: int
    digest: str
    length: int = 0


@dataclass(frozen=True)
class TrainSpec:
    """Everything a worker needs: the recipe, what the dataset says, and where to read and write.

    Attributes:
        dataset: folder of the transformed dataset.
        dataset_fingerprint: fingerprint in its manifest.
        task: `segmentation` or `classification`.
        classes: names in the order of the model's channels.
        height: rows of the model's input.
        width: columns of the model's input.
        resize: policy that brings a source image to that size.
        mean: per channel, 0..255, for `normalize: dataset`; else None.
        std: per channel, 0..255, for `normalize: dataset`; else None.
        output: folder for model.keras, history.json and logs.
        export: folder for the SavedModel.
        ignore: whether masks mark pixels that are not counted.
        multi: whether an image may have several classes.
        class_weights: weight of every class in the loss; `None`: all alike.
        running: how it runs.
        checkpoints: folder or URL for checkpoints.
        warm_from: file whose weights the training begins with; empty: with none.
        warm_digest: SHA-256 of that file.
        weights_from: file or URL of the encoder's weights; empty: they begin at random.
        texts: columns of texts, in the order of the model's vector.
        vocabularies: folder with the words of each.
        ingested: what the ingest did to pixels, which serving repeats; see `image_transform.as_ingested`.
    """

    recipe: Recipe
    dataset: str
    dataset_fingerprint: str
    task: str
    classes: tuple[str, ...]
    height: int
    width: int
    resize: str
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    output: str
    export: str
    ignore: bool = False
    multi: bool = False
    class_weights: tuple[float, ...] | None = None
    running: RunOptions = AS_USUAL
    checkpoints: str = ""
    warm_from: str = ""
    warm_digest: str = ""
    weights_from: str = ""
    texts: tuple[TextColumn, ...] = ()
    vocabularies: str = ""
    ingested: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the training: the same data and recipe have the same one, wherever they lie."""
        value = self.to_dict()
        for place in _PLACES:
            value.pop(place, None)
        return fingerprint(value)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        value = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        value["recipe"], value["running"] = self.recipe.to_dict(), self.running.to_dict()
        value["texts"] = [dataclasses.asdict(column) for column in self.texts]
        for name in (
            "ignore",
            "multi",
            "class_weights",
            "running",
            "checkpoints",
            "warm_from",
            "warm_digest",
            "weights_from",
            "texts",
            "vocabularies",
            "ingested",
        ):
            if not value[name]:
                del value[name]  # A training without has the fingerprint that it had before there was such a thing.
        return {name: list(v) if isinstance(v, tuple) else v for name, v in value.items()}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TrainSpec:
        """From `to_dict`'s form."""
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
        plain["recipe"] = Recipe.from_dict(value["recipe"])
        plain["running"] = RunOptions(**value.get("running", {}))
        plain["texts"] = tuple(TextColumn(**column) for column in value.get("texts", ()))
        return cls(**plain)

    def write(self, file: Path) -> None:
        """Writes the specification as JSON."""
        file.write_text(json.dumps(self.to_dict(), sort_keys=True, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> TrainSpec:
        """Reads what `write` wrote."""
        return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))


# What a step of training needs by estimate, in words: whoever kills a process for its memory lets it say nothing.
NEEDS = "needs"
