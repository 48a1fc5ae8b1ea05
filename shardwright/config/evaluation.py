"""`evaluator`, `gate`: what stops a model, and what stops data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import between, one_of
from shardwright.config.drift import DriftConfig, SkewConfig
from shardwright.errors import ConfigError

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
