"""`evaluator`: the conditions for blessing a model. `gate`: the conditions, drift and skew too, for training at all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.parsing import at_least, between, one_of
from shardwright.errors import ConfigError

# Chance of any false alarm over all measures; docs/explain/drift.md has the result of 500 resamples.
ALPHA = 0.006
# Alpha of one comparison: a fifth of it is the embedding's, and 100,000 permutations show no smaller chance.
LEAST_ALPHA = 5e-5
_EMBEDDING = "embedding"
MEASURES = (
    "brightness",
    "contrast",
    "sharpness",
    "colorfulness",
    "warmth",
    "green",
    "pixels",
    "aspect",
    "bytes",
    "steps",
    "format",
    "size",
    "channels",
    _EMBEDDING,
    "classes",
    "area",
)


@dataclass(frozen=True)
class DriftConfig:
    """Comparison of the images with an earlier dataset.

    Attributes:
        reference: a dataset, folder or URL; relative paths start from the folder the command is called in. `blessed`
            stands for the dataset of the baseline model (`shardwright.ingest.baseline`) in configurations of
            `shardwright run` and `shardwright compile`; in a TFX pipeline of your own give a path.
        images: how many of each dataset are compared.
        alpha: the chance that a run is stopped though nothing has changed. Less than 5e-05 needs `ignore: [embedding]`.
        ignore: measures that may change.
    """

    PATH: ClassVar[str] = "gate.drift"

    reference: str
    images: int = 2000
    alpha: float = ALPHA
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.reference:
            raise ConfigError("gate.drift.reference", "'' is not a dataset", "Name the folder of an earlier dataset.")
        _check(self.PATH, self.images, self.alpha, self.ignore)


@dataclass(frozen=True)
class SkewConfig:
    """Comparison of every split with the largest one.

    Attributes:
        images: how many of each split are compared.
        alpha: the chance that a run is stopped though all splits are alike. All comparisons share it; less than 5e-05
            for each needs `ignore: [embedding]`.
        ignore: measures that may differ.
    """

    PATH: ClassVar[str] = "gate.skew"

    images: int = 2000
    alpha: float = ALPHA
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self.PATH, self.images, self.alpha, self.ignore)

    def shared(self, comparisons: int) -> float:
        """Returns the alpha of each of so many comparisons.

        Raises:
            ConfigError: it is smaller than a comparison can use.
        """
        if _EMBEDDING not in self.ignore and self.alpha < LEAST_ALPHA * comparisons:
            raise ConfigError(
                f"{self.PATH}.alpha",
                f"{self.alpha:g} for {comparisons} comparisons leaves less than {LEAST_ALPHA:g} for each, which the "
                "embedding cannot show",
                f"Give {LEAST_ALPHA * comparisons:g} or more, or ignore: [{_EMBEDDING}].",
            )
        return self.alpha / comparisons


def _check(path: str, images: int, alpha: float, ignore: tuple[str, ...]) -> None:
    at_least(f"{path}.images", images, 20)
    between(f"{path}.alpha", alpha, 1e-6 if _EMBEDDING in ignore else LEAST_ALPHA, 0.5)
    for measure in ignore:
        one_of(f"{path}.ignore", measure, MEASURES)


TUNED, AUTO = "tuned", "auto"
FLIPS = ("left_right", "up_down")
ANOMALY_KIND = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class EvaluatorConfig:
    """Conditions that a model must meet to be blessed, and how it turns probabilities into masks and classes.

    Attributes:
        split: Split that models are judged on.
        min_dice: Least mean Dice of masks.
        min_accuracy: Least accuracy of one class an image; by default halfway from guessing to always right: 0.75 with
            two classes, 0.6 with five, 0.55 with ten.
        min_f1: Least mean F1 of several classes an image.
        min_improvement: The model must be better than the last blessed one by more than this, in the same metric on the
            same images, with 95 % confidence. Negative: it may be worse by so much; -1: it is not compared.
        min_images: Least number of images in the split. `auto`: 50, and as many as make the 95 % interval of the metric
            ±0.1 or narrower. A number leaves out the interval.
        min_per_class: Least number of images of each class in the split.
        allow_missing_classes: Judges a model although a split has no image of some classes; the result names them.
        beat_trivial: The Dice or F1 of every class must be above that of a constant answer, which is always or never
            yes.
        threshold: Probability from which a pixel or image has a class; `tuned`: chosen per class on the split `eval`.
        min_area: Pixels (of `transform.size`) of the smallest region of a mask; `tuned`: chosen per class on the split
            `eval`.
        flips: The exported model also predicts on images that are flipped so, and takes the mean.
    """

    PATH: ClassVar[str] = "evaluator"

    split: str = "test"
    min_dice: float = 0.5
    min_accuracy: float | None = None
    min_f1: float = 0.5
    min_improvement: float = 0.0
    min_images: int | str = AUTO
    min_per_class: int = 5
    allow_missing_classes: bool = False
    beat_trivial: bool = True
    threshold: float | str = TUNED
    min_area: int | str = TUNED
    flips: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        between("evaluator.min_dice", self.min_dice, 0, 1)
        if self.min_accuracy is not None:
            between("evaluator.min_accuracy", self.min_accuracy, 0, 1)
        between("evaluator.min_f1", self.min_f1, 0, 1)
        between("evaluator.min_improvement", self.min_improvement, -1, 1)
        if isinstance(self.min_images, int):
            at_least("evaluator.min_images", self.min_images, 1)
        elif self.min_images != AUTO:
            problem = f"{self.min_images!r} is not a number of images"
            raise ConfigError("evaluator.min_images", problem, "Write a whole number, or auto.")
        at_least("evaluator.min_per_class", self.min_per_class, 0)
        for flip in self.flips:
            one_of("evaluator.flips", flip, FLIPS)
        for name, value, most in (("threshold", self.threshold, 1), ("min_area", self.min_area, 2**31)):
            if isinstance(value, str):
                one_of(f"evaluator.{name}", value, (TUNED,))
            else:
                between(f"evaluator.{name}", value, 0, most)

    @property
    def tuned(self) -> tuple[str, ...]:
        """Those of `threshold` and `min_area` that are chosen per class on the split `eval`."""
        return tuple(name for name in ("threshold", "min_area") if getattr(self, name) == TUNED)


@dataclass(frozen=True)
class GateConfig:
    """Checks that stop a run before it trains.

    Attributes:
        allow_anomalies: Anomalies that do not stop it: `KIND:FEATURE`, or `KIND` for all features, those with the
            classes too. Kinds are the names of TFDV's `AnomalyInfo.Type`, `DRIFT`, `SKEW`, `LEAKAGE` and
            `NEAR_LEAKAGE`.
        drift: Compares the images with another dataset.
        skew: Compares the splits with each other.
    """

    PATH: ClassVar[str] = "gate"

    allow_anomalies: tuple[str, ...] = ()
    drift: DriftConfig | None = None
    skew: SkewConfig | None = None

    def __post_init__(self) -> None:
        for kind in self.allow_anomalies:
            name, feature, rest = kind.partition(":")
            if not ANOMALY_KIND.fullmatch(name) or (feature and not rest):
                raise ConfigError(
                    "gate.allow_anomalies", f"{kind!r} is not a kind of anomaly", "Use e.g. INVALID_FEATURE_SHAPE."
                )
