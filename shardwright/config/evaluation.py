"""`evaluator`: the conditions for blessing a model. `gate`: the conditions, drift and skew too, for training at all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.options import Pattern, Section, between, option

# Chance of any false alarm over all measures; docs/how-to/drift.md has the result of 500 resamples.
ALPHA = 0.006
# Alpha of one comparison: a fifth of it is the embedding's, and 100,000 permutations show no smaller chance.
LEAST_ALPHA = 5e-5
_MOST_ALPHA = 0.5
_EMBEDDING = "embedding"
TUNED, AUTO = "tuned", "auto"
FLIPS = ("left_right", "up_down")
ANOMALY_KIND = re.compile(r"[A-Z][A-Z0-9_]*")
_ANOMALY = Pattern(
    re.compile(rf"{ANOMALY_KIND.pattern}(:.+)?"), "Use e.g. INVALID_FEATURE_SHAPE.", "is not a kind of anomaly"
)
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


class _Comparison(Section):
    alpha: float
    ignore: tuple[str, ...]

    def check(self, path: str) -> None:
        """Refuses an alpha that the embedding cannot show."""
        super().check(path)
        if _EMBEDDING not in self.ignore:
            between(f"{path}.alpha", self.alpha, LEAST_ALPHA, _MOST_ALPHA)


@dataclass(frozen=True)
class DriftConfig(_Comparison):
    """Comparison of the images with an earlier dataset."""

    PATH: ClassVar[str] = "gate.drift"

    reference: str = option(
        help="A dataset, folder or URL. `blessed`, for `shardwright run` and `shardwright compile`, is the dataset of "
        "the last pushed model; in a TFX pipeline of your own, give a path."
    )
    images: int = option(2000, least=20, help="How many of each dataset are compared.")
    alpha: float = option(
        ALPHA,
        least=1e-6,
        most=_MOST_ALPHA,
        help="Chance of a false alarm. Less than 5e-05 needs `ignore: [embedding]`.",
    )
    ignore: tuple[str, ...] = option((), choices=MEASURES, help="Measures that may change.")

    def check(self, path: str) -> None:
        """Refuses an empty reference, too."""
        super().check(path)
        if not self.reference:
            raise self.error("reference", "'' is not a dataset", "Name the folder of an earlier dataset.")


@dataclass(frozen=True)
class SkewConfig(_Comparison):
    """Comparison of every split with the largest one."""

    PATH: ClassVar[str] = "gate.skew"

    images: int = option(2000, least=20, help="How many of each split are compared.")
    alpha: float = option(
        ALPHA,
        least=1e-6,
        most=_MOST_ALPHA,
        help="Chance of a false alarm, shared by all comparisons; less than 5e-05 for each needs `ignore: "
        "[embedding]`.",
    )
    ignore: tuple[str, ...] = option((), choices=MEASURES, help="Measures that may differ.")

    def shared(self, comparisons: int) -> float:
        """Returns the alpha of each of so many comparisons.

        Raises:
            ConfigError: it is smaller than a comparison can use.
        """
        if _EMBEDDING not in self.ignore and self.alpha < LEAST_ALPHA * comparisons:
            raise self.error(
                "alpha",
                f"{self.alpha:g} for {comparisons} comparisons leaves less than {LEAST_ALPHA:g} for each, which the "
                "embedding cannot show",
                f"Give {LEAST_ALPHA * comparisons:g} or more, or ignore: [{_EMBEDDING}].",
            )
        return self.alpha / comparisons


@dataclass(frozen=True)
class EvaluatorConfig(Section):
    """Conditions that a model must meet to be blessed, and how it turns probabilities into masks and classes."""

    PATH: ClassVar[str] = "evaluator"

    split: str = option("test", help="Split on which the model is measured.")
    min_dice: float = option(0.5, least=0, most=1, help="Minimum mean Dice of masks.")
    min_accuracy: float | None = option(
        None,
        least=0,
        most=1,
        help="Minimum accuracy, with one class per image; by default halfway from guessing to always right: 0.75 "
        "with two classes, 0.6 with five, 0.55 with ten.",
    )
    min_f1: float = option(0.5, least=0, most=1, help="Minimum mean F1, with several classes per image.")
    min_improvement: float = option(
        0.0,
        least=-1,
        most=1,
        help="The model must be better than the last blessed one by more than this, in the same metric on the same "
        "images, with 95 % confidence. Negative: it may be worse by so much; -1: it is not compared.",
    )
    min_images: int | str = option(
        AUTO,
        choices=(AUTO,),
        least=1,
        help="Minimum number of images in the split. `auto`: 50, and as many as make the 95 % interval of the "
        "metric ±0.1 or narrower. A number leaves out the interval.",
    )
    min_per_class: int = option(5, least=0, help="Minimum number of images of each class in the split.")
    allow_missing_classes: bool = option(
        False, help="Judges a model even if a split has no image of some classes; the result names them."
    )
    beat_trivial: bool = option(
        True,
        help="The Dice or F1 of every class must be above that of a constant answer, which is always or never yes.",
    )
    threshold: float | str = option(
        TUNED,
        choices=(TUNED,),
        least=0,
        most=1,
        help="Probability from which a pixel or image has a class; `tuned`: chosen per class on the split `eval`.",
    )
    min_area: int | str = option(
        TUNED,
        choices=(TUNED,),
        least=0,
        most=2**31,
        help="Pixels (of `transform.size`) of the smallest region of a mask; `tuned`: chosen per class on the split "
        "`eval`.",
    )
    flips: tuple[str, ...] = option(
        (),
        choices=FLIPS,
        help="Test-time augmentation: the exported model returns the mean over the image and these flips.",
    )

    @property
    def tuned(self) -> tuple[str, ...]:
        """Those of `threshold` and `min_area` that are chosen per class on the split `eval`."""
        return tuple(name for name in ("threshold", "min_area") if getattr(self, name) == TUNED)


@dataclass(frozen=True)
class GateConfig(Section):
    """Checks that stop a run before it trains."""

    PATH: ClassVar[str] = "gate"

    allow_anomalies: tuple[str, ...] = option(
        (),
        form=_ANOMALY,
        help="Anomalies that do not stop the run: `KIND:FEATURE`, or `KIND` for all features, also those of "
        "classes. Kinds are the names of TFDV's `AnomalyInfo.Type`, `DRIFT`, `SKEW`, `LEAKAGE` and "
        "`NEAR_LEAKAGE`.",
    )
    drift: DriftConfig | None = option(None, help="Compares the images with another dataset.")
    skew: SkewConfig | None = option(None, help="Compares the splits with each other.")
