"""`gate.drift`, `gate.skew`: what the images of a run are compared with, and how sure an alarm must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.checks import at_least, between, one_of
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
            stands for that of the model in force (`shardwright.provenance.in_force`).
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
