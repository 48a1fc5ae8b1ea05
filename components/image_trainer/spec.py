"""The recipe and the specification of a training, frozen values that the Trainer passes to its workers as JSON.

The recipe has the options that shape the model. The specification adds the dataset's facts, and paths.
"""

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

# Part of every recipe: raised when the same options give another model, so that caches drop the old one.
RECIPE_VERSION = 3

EVAL_SPLIT = "eval"
WEIGHT_DECAY = 1e-3

# The threshold until thresholds are tuned.
_UNTUNED = 0.5

# Files in the output folder of a training.
SPEC_FILE = "spec.json"
MODEL_FILE = "model.keras"
LOG_FOLDER = "logs"


@dataclass(frozen=True)
class TrainRecipe:
    """The options that shape a model, without paths: the cache key of the Trainer.

    Attributes:
        model: `unet`, `deeplab`, `cnn`, or an import path.
        normalize: how uint8 pixels become floats, see `pixels.normalize`.
        threshold: probability from which a pixel belongs to a class, in evaluation.
        eval_split: split that chooses the best epoch; empty: the last epoch is kept.
        order: `fast` or `exact`, see `loader.load`.
        loss: a kind of `losses.build_loss`.
        class_weights: `none`, or `balanced` by the statistics of the transform.
        encoder: `compact`, or a family of `models.encoders`.
        weights: SHA-256 of the file of the encoder's weights; empty: random initial weights.
        code: SHA-256 of the source of a custom model.
        tuned: which of `threshold` and `min_area` are chosen per class on `eval_split` after the training. The given
            ones apply before, and without such a split.
        min_area: pixels of the smallest region of a mask.
        flips: test-time flips of the exported model, see `export.signatures.FlippedMean`.
        submission: layout of the table of masks, see `shardwright.evaluation.submission`; the default of `predict`.
        optimizer: `adamw`, `adam` or `sgd`, see `optimizers.build_optimizer`.
        weight_decay: of `adamw`.
        schedule: `cosine`, `linear` or `constant`.
        warm_up: share of the steps in which the learning rate rises.
        patience: epochs without improvement after which the training ends; 0: never.
        precision: `float32`, or `bfloat16` between the layers.
        warm_start: SHA-256 of the file with the initial weights, or `blessed`; empty: none.
        text: columns of `transform.text` that the model reads besides the image.
        ema: momentum of the running mean of the weights, which is kept; 0: the weights themselves are kept.
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
    def from_config(cls, config: Config) -> TrainRecipe:
        """Returns the recipe of a configuration; the task decides `model: auto`."""
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
        """Returns plain values for JSON, without later options that have their default."""
        value = {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}
        return {name: v for name, v in value.items() if name not in _OPTIONAL or getattr(self, name) != _OPTIONAL[name]}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TrainRecipe:
        """Reads the form of `to_dict`.

        Raises:
            UsageError: a field is missing or unknown, or another version of Shardwright wrote the recipe.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        wrong = sorted(names.symmetric_difference(value) - set(_OPTIONAL))
        if wrong or value["version"] != RECIPE_VERSION:
            raise UsageError(
                f"this trainer's recipe is of another Shardwright (version {value.get('version')!r}, this one writes "
                f"{RECIPE_VERSION}; missing or unknown fields: {', '.join(wrong) or 'none'}). "
                "Run it with the Shardwright that wrote it, or compile the pipeline again."
            )
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
        return cls(**plain)


def _weights(config: Config) -> str:
    """Returns the SHA-256 of the encoder's weights, in place of their path."""
    path = config.trainer.weights
    if path is None:
        return ""
    path = config.resolve(path)
    found = hash_file(path)
    if found is None:
        raise UsageError(f"trainer.weights: {path} cannot be read. Give a file of weights, or remove trainer.weights.")
    return found.sha256.hex()


def _warm_start(config: Config) -> str:
    """Returns `trainer.warm_start` with the file's SHA-256 in place of its path."""
    start = config.trainer.warm_start
    if start in (FRESH, BLESSED):
        return "" if start == FRESH else start
    return weights_file(config.resolve(start))[1]


# Fields of a specification that are paths or do not shape the model: left out of its fingerprint.
_PLACES = ("dataset", "output", "export", "running", "checkpoints", "warm_from", "weights_from", "vocabularies")

# Options added later, with their defaults.
_OPTIONAL: dict[str, Any] = {
    field.name: field.default
    for field in dataclasses.fields(TrainRecipe)
    if field.default is not dataclasses.MISSING and field.name not in ("order", "version")
}


@dataclass(frozen=True)
class RunOptions:
    """Options of a run that do not shape the model.

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
        """Returns the options of a configuration."""
        trainer = config.trainer
        return cls(trainer.accelerator, trainer.hosts, trainer.checkpoint.every, trainer.checkpoint.keep)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON, without defaults."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}


AS_USUAL = RunOptions()


@dataclass(frozen=True)
class TextColumn:
    """A column of texts that a model reads.

    Attributes:
        column: its name in `transform.text`.
        feature: feature with the ingested texts.
        vocabulary: maximum number of words in the vocabulary.
        digest: SHA-256 of the list of these words.
        length: number of the first words of an image that count, as in `ids` of a fixed length; 0: all.
    """

    column: str
    feature: str
    vocabulary: int
    digest: str
    length: int = 0


@dataclass(frozen=True)
class TrainSpec:
    """All that a worker needs: the recipe, the dataset's facts, and where to read and write.

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
        class_weights: weight of every class in the loss; `None`: equal weights.
        running: accelerator, hosts and checkpoints.
        checkpoints: folder or URL for checkpoints.
        warm_from: file with the initial weights; empty: none.
        warm_digest: SHA-256 of that file.
        weights_from: file or URL of the encoder's weights; empty: random initial weights.
        texts: columns of texts, in the order of the model's vector.
        vocabularies: folder with the words of each.
        ingested: the ingest's image options, which serving repeats; see `serving_preprocess.as_ingested`.
    """

    recipe: TrainRecipe
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
        """Fingerprint of the training: it depends on data and recipe, not on paths."""
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
                del value[name]  # So that a later field does not change fingerprints of trainings without it.
        return {name: list(v) if isinstance(v, tuple) else v for name, v in value.items()}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TrainSpec:
        """Reads the form of `to_dict`."""
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
        plain["recipe"] = TrainRecipe.from_dict(value["recipe"])
        plain["running"] = RunOptions(**value.get("running", {}))
        plain["texts"] = tuple(TextColumn(**column) for column in value.get("texts", ()))
        return cls(**plain)

    def write(self, file: Path) -> None:
        """Writes the specification as JSON."""
        file.write_text(json.dumps(self.to_dict(), sort_keys=True, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> TrainSpec:
        """Reads a file of `write`."""
        return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))


# Key of the message with the estimated memory of a step: a process killed for its memory cannot send it later.
NEEDS = "needs"
