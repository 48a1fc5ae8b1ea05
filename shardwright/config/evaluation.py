"""`evaluator`, `gate`: what stops a model, and what stops data.

`gate.drift`, `gate.skew`: what the images of a run are compared with, and how sure an alarm must be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.parsing import at_least, between, one_of
from shardwright.errors import ConfigError

# Of any false alarm over all measures; docs/drift.md tells what 500 resamples come to.
ALPHA = 0.006
# Of one comparison: a fifth of it is the embedding's, and 100,000 permutations show no smaller chance.
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
    """What the images are compared with.

    Attributes:
        reference: a dataset, folder or URL; relative paths start from the folder the command is called in. `blessed`
            stands for that of the model in force (`shardwright.ingest.baseline`).
        images: how many of each side are looked at.
        alpha: the chance that a run is stopped though nothing has changed.
        ignore: measures that may change.
    """

    PATH: ClassVar[str] = "gate.drift"

    reference: str
    images: int = 2000
    alpha: float = ALPHA
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.reference:
            raise ConfigError("gate.drift.reference", "'' is no dataset", "Name the folder of an earlier dataset.")
        _check(self.PATH, self.images, self.alpha, self.ignore)


@dataclass(frozen=True)
class SkewConfig:
    """That every split is compared with the largest one.

    Attributes:
        images: how many of each split are looked at.
        alpha: the chance that a run is stopped though all splits are alike.
        ignore: measures that may differ.
    """

    PATH: ClassVar[str] = "gate.skew"

    images: int = 2000
    alpha: float = ALPHA
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self.PATH, self.images, self.alpha, self.ignore)

    def shared(self, comparisons: int) -> float:
        """The alpha of each of so many comparisons.

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


TUNED = "tuned"
FLIPS = ("left_right", "up_down")
ANOMALY_KIND = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class EvaluatorConfig:
    """What a model must reach on `split` to be blessed, and by how much it must beat the last blessed one.

    `threshold` and `min_area` (in pixels of `transform.size`) say what of the model's probabilities is a mask; `tuned`:
    chosen per class on the split `eval`. `flips`: the exported model also looks at the image flipped so.
    """

    PATH: ClassVar[str] = "evaluator"

    split: str = "test"
    min_dice: float = 0.5
    min_accuracy: float = 0.5
    min_f1: float = 0.5
    min_change: float = 0.0
    threshold: float | str = TUNED
    min_area: int | str = TUNED
    flips: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        between("evaluator.min_dice", self.min_dice, 0, 1)
        between("evaluator.min_accuracy", self.min_accuracy, 0, 1)
        between("evaluator.min_f1", self.min_f1, 0, 1)
        between("evaluator.min_change", self.min_change, -1, 1)
        for flip in self.flips:
            one_of("evaluator.flips", flip, FLIPS)
        for name, value, most in (("threshold", self.threshold, 1), ("min_area", self.min_area, 2**31)):
            if isinstance(value, str):
                one_of(f"evaluator.{name}", value, (TUNED,))
            else:
                between(f"evaluator.{name}", value, 0, most)

    @property
    def tuned(self) -> tuple[str, ...]:
        """Which of `threshold` and `min_area` are chosen per class on the split `eval`."""
        return tuple(name for name in ("threshold", "min_area") if getattr(self, name) == TUNED)


@dataclass(frozen=True)
class GateConfig:
    """What stops a run before it trains.

    `allow` are kinds of anomalies that do not: names of TFDV's `AnomalyInfo.Type`, or `DRIFT`, `SKEW`, `LEAKAGE` and
    `NEAR_LEAKAGE`. `drift` compares what is in the images with another dataset, `skew` the splits with each other.
    """

    PATH: ClassVar[str] = "gate"

    allow: tuple[str, ...] = ()
    drift: DriftConfig | None = None
    skew: SkewConfig | None = None

    def __post_init__(self) -> None:
        for kind in self.allow:
            if not ANOMALY_KIND.fullmatch(kind):
                raise ConfigError("gate.allow", f"{kind!r} names no kind of anomaly", "Use e.g. INVALID_FEATURE_SHAPE.")
