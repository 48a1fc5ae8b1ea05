"""`evaluator`, `gate`: what stops a model, and what stops data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import between
from shardwright.errors import ConfigError

ANOMALY_KIND = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class EvaluatorConfig:
    """What a model must reach on `split` to be blessed, and by how much it must beat the last blessed one."""

    PATH: ClassVar[str] = "evaluator"

    split: str = "test"
    min_dice: float = 0.5
    min_accuracy: float = 0.5
    min_f1: float = 0.5
    min_change: float = 0.0
    threshold: float = 0.5

    def __post_init__(self) -> None:
        between("evaluator.min_dice", self.min_dice, 0, 1)
        between("evaluator.min_accuracy", self.min_accuracy, 0, 1)
        between("evaluator.min_f1", self.min_f1, 0, 1)
        between("evaluator.min_change", self.min_change, -1, 1)
        between("evaluator.threshold", self.threshold, 0, 1)


@dataclass(frozen=True)
class GateConfig:
    """Kinds of anomalies (names of TFDV's `AnomalyInfo.Type`) that do not stop the run."""

    PATH: ClassVar[str] = "gate"

    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in self.allow:
            if not ANOMALY_KIND.fullmatch(kind):
                raise ConfigError("gate.allow", f"{kind!r} names no kind of anomaly", "Use e.g. INVALID_FEATURE_SHAPE.")
