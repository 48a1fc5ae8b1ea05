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

from shardwright.components.image_trainer.training.warm_start import weights_file
from shardwright.components.runtime.user_code import code_files
from shardwright.config import Config, EvaluatorConfig, LoaderConfig, TrainerConfig
from shardwright.config.canonical import read_section, recipe_options, run_options
from shardwright.config.parse_values import parse_section, plain_value
from shardwright.config.trainer import BLESSED, DIGEST, FRESH, is_import_path
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, UsageError
from shardwright.evaluation.figures import Measured
from shardwright.evaluation.thresholds import Thresholds
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

_SECTIONS: dict[str, type[Any]] = {"trainer": TrainerConfig, "loader": LoaderConfig, "evaluator": EvaluatorConfig}
_FACTS = ("eval_split", "code", "callbacks_code", "submission")
# Fields of a specification that are paths or do not shape the model: left out of its fingerprint.
_PLACES = ("dataset", "output", "export", "running", "checkpoints", "warm_from", "weights_from", "vocabularies")
# Key of the message with the estimated memory of a step: a process killed for its memory cannot send it later.
NEEDS = "needs"


@dataclass(frozen=True)
class TrainRecipe:
    """The sections that shape a model, without paths: the cache key of the Trainer.

    Attributes:
        trainer: `trainer` as `TrainerConfig.effective` returns it, with the digests of files in place of their paths.
            Accelerator, hosts, checkpoints and logs are not in the cache key; see `running`.
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
    def from_config(cls, config: Config, *, given: bool = False) -> TrainRecipe:
        """Returns the recipe of a configuration; the task decides `model: auto`.

        Args:
            config: the configuration.
            given: whether `trainer.model` may be the digest of a model that `shardwright.train` was given.

        Raises:
            UsageError: a file of weights cannot be read.
            ConfigError: the model is a digest that no file belongs to.
        """
        trainer, evaluator = config.trainer, config.evaluator
        if trainer.model.startswith(DIGEST) and not given:
            raise ConfigError("trainer.model", f"{trainer.model!r} names no model", "Write package.module:function.")
        weights, start = trainer.weights, trainer.warm_start
        if weights is not None:
            path = config.resolve(weights)
            hashed = hash_file(path)
            if hashed is None:
                fix = "Give a file of weights, or remove trainer.weights"
                raise UsageError(f"trainer.weights: {path} cannot be read. {fix}.")
            weights = DIGEST + hashed.content_id.hex()
        if start not in (FRESH, BLESSED):
            start = DIGEST + weights_file(config.resolve(start))[1]

        def code(option: str, path: str | None) -> dict[str, str]:
            return code_files(path, config.base, option=option) if path else {}

        return cls(
            dataclasses.replace(trainer.effective(config.task), weights=weights, warm_start=start),
            config.loader,
            EvaluatorConfig(
                threshold=evaluator.threshold,
                min_area=evaluator.min_area,
                flips=tuple(dict.fromkeys(evaluator.flips)),
            ),
            eval_split=EVAL_SPLIT if EVAL_SPLIT in config.split.names else "",
            code=code("trainer.model", trainer.model if is_import_path(trainer.model) else None),
            callbacks_code=code("trainer.callbacks", trainer.callbacks),
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

    @property
    def running(self) -> dict[str, Any]:
        """The options of `trainer` that do not shape the model, as plain values without defaults."""
        return run_options(self.trainer)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON, without options at their defaults."""
        sections = {name: recipe_options(getattr(self, name)) for name in _SECTIONS}
        facts = {name: getattr(self, name) for name in _FACTS}
        return {"version": RECIPE_VERSION, **{name: value for name, value in (sections | facts).items() if value}}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], running: Mapping[str, Any] | None = None) -> TrainRecipe:
        """Reads the forms of `to_dict` and `running`.

        Raises:
            UsageError: an option is unknown, or another version of Shardwright wrote the recipe.
        """
        version, wrong = value.get("version"), sorted(set(value) - {"version", *_SECTIONS, *_FACTS})
        # Once a checksum of one file.
        wrong += [name for name in ("code", "callbacks_code") if isinstance(value.get(name), str)]
        problem = f"unknown fields: {', '.join(wrong) or 'none'}"
        try:
            if version == RECIPE_VERSION and not wrong:
                sections = {name: read_section(kind, value.get(name, {}), name) for name, kind in _SECTIONS.items()}
                if running:
                    trainer = {**plain_value(sections["trainer"]), **running}
                    sections["trainer"] = parse_section(TrainerConfig, trainer, TrainerConfig.PATH)
                return cls(**sections, **{name: value[name] for name in _FACTS if name in value})
        except ConfigError as error:
            problem = str(error)
        raise UsageError(
            f"this trainer's recipe is of another Shardwright (version {version!r}, this one writes {RECIPE_VERSION}; "
            f"{problem}). Run it with the Shardwright that wrote it, or compile the pipeline again."
        )


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
        checkpoints: folder or URL for checkpoints.
        warm_from: file with the initial weights; empty: none.
        warm_digest: BLAKE3 of that file.
        weights_from: file or URL of the encoder's weights, or the file of a given model; empty: random initial
            weights.
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
    def statistics(self) -> dict[str, Any] | None:
        """Mean and deviation as `loader.load` takes them, for `normalize: dataset`."""
        return None if self.mean is None else {"mean": self.mean, "std": self.std}

    @property
    def held_out(self) -> int:
        """Images of the split that chooses the best epoch and the thresholds; 0 without one."""
        return ImageDataset.open(self.dataset).num_records(self.recipe.eval_split) if self.recipe.eval_split else 0

    def measured(self, chosen: Thresholds) -> Measured:
        """Returns what figures of that split are of."""
        size = (self.height, self.width)
        return Measured.of_model(self.recipe.eval_split, self.held_out, size, self.task, self.multi, chosen)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the training: it depends on data and recipe, not on paths."""
        return fingerprint({name: value for name, value in self.to_dict().items() if name not in _PLACES})

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON. Empty options are left out: a later one changes no fingerprint without it."""
        fields = dataclasses.fields(self)
        needed = {field.name for field in fields if field.default is field.default_factory is dataclasses.MISSING}
        value = {field.name: plain_value(getattr(self, field.name)) for field in fields}
        value |= {"recipe": self.recipe.to_dict(), "running": self.recipe.running}
        return {name: inner for name, inner in value.items() if inner or name in needed}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TrainSpec:
        """Reads the form of `to_dict`."""
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
        plain["recipe"] = TrainRecipe.from_dict(value["recipe"], plain.pop("running", None))
        plain["texts"] = tuple(TextColumn(**column) for column in value.get("texts", ()))
        return cls(**plain)

    def write(self, file: Path) -> None:
        """Writes the specification as JSON."""
        file.write_text(json.dumps(self.to_dict(), sort_keys=True, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> TrainSpec:
        """Reads a file of `write`."""
        return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))
