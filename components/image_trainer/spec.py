"""The recipe and the specification of a training, frozen values that the Trainer passes to its workers as JSON.

The recipe has the options that shape the model. The specification adds the dataset's facts, and paths.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.training.warm_start import weights_file
from shardwright.components.runtime.user_code import code_files
from shardwright.config import Config, EvaluatorConfig, LoaderConfig, TrainerConfig
from shardwright.config.canonical import read_section, recipe_options
from shardwright.config.trainer import BLESSED, DIGEST, FRESH, is_import_path
from shardwright.errors import ConfigError, UsageError
from shardwright.storage import hash_file
from shardwright.storage.fingerprint import fingerprint

# Part of every recipe: raised when the same options give another model, so that caches drop the old one.
RECIPE_VERSION = 6

EVAL_SPLIT = "eval"

# The threshold until thresholds are tuned.
_UNTUNED = 0.5

# Files in the output folder of a training.
SPEC_FILE = "spec.json"
MODEL_FILE = "model.keras"
LOG_FOLDER = "logs"


@dataclass(frozen=True)
class TrainRecipe:
    """The sections that shape a model, without paths: the cache key of the Trainer.

    Attributes:
        trainer: `trainer` as `TrainerConfig.effective` returns it, with the digests of files in place of their paths.
        loader: `loader`.
        evaluator: `threshold`, `min_area` and `flips` of `evaluator`; the model is exported with them.
        eval_split: split that chooses the best epoch; empty: the last epoch is kept.
        code: the code of a custom model, see `shardwright.components.runtime.user_code`.
        callbacks_code: that of `trainer.callbacks`.
        submission: layout of the table of masks, see `shardwright.evaluation.submission`; the default of `predict`.
    """

    trainer: TrainerConfig
    loader: LoaderConfig
    evaluator: EvaluatorConfig
    eval_split: str = ""
    code: Mapping[str, str] = dataclasses.field(default_factory=dict)
    callbacks_code: Mapping[str, str] = dataclasses.field(default_factory=dict)
    submission: str = ""

    @classmethod
    def from_config(cls, config: Config) -> TrainRecipe:
        """Returns the recipe of a configuration; the task decides `model: auto`."""
        trainer, evaluator = config.trainer, config.evaluator
        trainer = dataclasses.replace(
            trainer.effective(config.task), weights=_weights(config), warm_start=_warm_start(config)
        )
        shaping = EvaluatorConfig(
            threshold=evaluator.threshold,
            min_area=evaluator.min_area,
            flips=tuple(dict.fromkeys(evaluator.flips)),
        )
        return cls(
            trainer,
            config.loader,
            shaping,
            eval_split=EVAL_SPLIT if EVAL_SPLIT in config.split.names else "",
            code=_code("trainer.model", trainer.model if is_import_path(trainer.model) else None, config),
            callbacks_code=_code("trainer.callbacks", trainer.callbacks, config),
        )

    @property
    def threshold(self) -> float:
        """Probability from which a pixel belongs to a class, before any threshold is tuned."""
        threshold = self.evaluator.threshold
        return _UNTUNED if isinstance(threshold, str) else threshold

    @property
    def min_area(self) -> int:
        """Pixels of the smallest region of a mask, before any area is tuned."""
        area = self.evaluator.min_area
        return 0 if isinstance(area, str) else area

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON, without options at their defaults."""
        sections = {name: recipe_options(getattr(self, name)) for name in _SECTIONS}
        facts = {name: getattr(self, name) for name in _FACTS}
        given = {name: value for name, value in {**sections, **facts}.items() if value}
        return {"version": RECIPE_VERSION, **given}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TrainRecipe:
        """Reads the form of `to_dict`.

        Raises:
            UsageError: an option is unknown, or another version of Shardwright wrote the recipe.
        """
        version, wrong = value.get("version"), sorted(set(value) - {"version", *_SECTIONS, *_FACTS})
        # Once a checksum of one file.
        wrong += [name for name in ("code", "callbacks_code") if isinstance(value.get(name), str)]
        if version != RECIPE_VERSION or wrong:
            raise _of_another_version(version, f"unknown fields: {', '.join(wrong) or 'none'}")
        try:
            sections = {name: read_section(kind, value.get(name, {}), name) for name, kind in _SECTIONS.items()}
        except ConfigError as error:
            raise _of_another_version(version, str(error)) from None
        return cls(**sections, **{name: value[name] for name in _FACTS if name in value})


_SECTIONS: dict[str, type[Any]] = {"trainer": TrainerConfig, "loader": LoaderConfig, "evaluator": EvaluatorConfig}
_FACTS = ("eval_split", "code", "callbacks_code", "submission")


def _of_another_version(version: object, problem: str) -> UsageError:
    return UsageError(
        f"this trainer's recipe is of another Shardwright (version {version!r}, this one writes {RECIPE_VERSION}; "
        f"{problem}). Run it with the Shardwright that wrote it, or compile the pipeline again."
    )


def _code(option: str, path: str | None, config: Config) -> dict[str, str]:
    return code_files(path, config.base, option=option) if path else {}


def _weights(config: Config) -> str | None:
    """Returns `trainer.weights` with the file's digest in place of its path."""
    path = config.trainer.weights
    if path is None:
        return None
    path = config.resolve(path)
    found = hash_file(path)
    if found is None:
        raise UsageError(f"trainer.weights: {path} cannot be read. Give a file of weights, or remove trainer.weights.")
    return DIGEST + found.content_id.hex()


def _warm_start(config: Config) -> str:
    """Returns `trainer.warm_start` with the file's digest in place of its path."""
    start = config.trainer.warm_start
    return start if start in (FRESH, BLESSED) else DIGEST + weights_file(config.resolve(start))[1]


# Fields of a specification that are paths or do not shape the model: left out of its fingerprint.
_PLACES = ("dataset", "output", "export", "running", "checkpoints", "warm_from", "weights_from", "vocabularies")


@dataclass(frozen=True)
class RunOptions:
    """Options of a run that do not shape the model.

    Attributes:
        accelerator: `trainer.accelerator`, see `placement`.
        hosts: `trainer.hosts`.
        every: steps between two checkpoints.
        keep: checkpoints that are kept.
        log_every: steps between two lines of the log.
        profile: the first step of a trace and the one after its last; empty: no trace.
    """

    accelerator: str = "auto"
    hosts: int = 1
    every: int = 500
    keep: int = 2
    log_every: int = 50
    profile: Sequence[int] = ()

    @classmethod
    def from_config(cls, config: Config) -> RunOptions:
        """Returns the options of a configuration."""
        trainer = config.trainer
        return cls(
            accelerator=trainer.accelerator,
            hosts=trainer.hosts,
            every=trainer.checkpoint.every,
            keep=trainer.checkpoint.keep,
            log_every=trainer.log_every,
            profile=trainer.profile.steps,
        )

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
        digest: BLAKE3 of the list of these words.
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
        warm_digest: BLAKE3 of that file.
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
    def epochs(self) -> int:
        """Number of epochs; `run_fn.spec_of` puts it in the place of the default.

        Raises:
            ValueError: the recipe has the default still.
        """
        if self.recipe.trainer.epochs is None:
            raise ValueError("a specification needs the number of epochs")
        return self.recipe.trainer.epochs

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the training: it depends on data and recipe, not on paths."""
        value = self.to_dict()
        for place in _PLACES:
            value.pop(place, None)
        return fingerprint(value)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON."""
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
