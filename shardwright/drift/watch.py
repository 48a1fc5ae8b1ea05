"""Compares a dataset with an earlier one, as a gate asks for it, and one's splits with each other."""

from __future__ import annotations

from dataclasses import dataclass

from shardwright.config.drift import DriftConfig, SkewConfig
from shardwright.console import SILENT, Progress
from shardwright.dataset import Dataset
from shardwright.drift.compare import Comparison, compare
from shardwright.drift.sample import Sample, sample_dataset
from shardwright.drift.show import Heading, Tile, drift_chapter
from shardwright.errors import DatasetError, UsageError
from shardwright.report.page import Chapter
from shardwright.report.troubles import DRIFT, SKEW, Trouble

# Says where the reference of a run on this machine lies: a place is no part of what is cached.
REFERENCE_VARIABLE = "SHARDWRIGHT_DRIFT_REFERENCE"
_TOLD = 6


@dataclass(frozen=True)
class Watched:
    """A comparison together with what it was made of.

    Attributes:
        kind: of the trouble that it is where something has changed: `DRIFT` or `SKEW`.
        comparison: what every measure says.
        reference: the one side.
        current: the other.
    """

    kind: str
    comparison: Comparison
    reference: Sample
    current: Sample

    def troubles(self) -> list[Trouble]:
        """One for all that has changed; none where nothing has."""
        drifted = self.comparison.drifted
        if not drifted:
            return []
        told = []
        for finding in drifted[:_TOLD]:
            moved = "" if finding.reference is None else f" {finding.reference:.4g} -> {finding.current:.4g}"
            told.append(f"{finding.words}{moved} (p {finding.p:.2g})")
        more = f" and {len(drifted) - _TOLD} more" if len(drifted) > _TOLD else ""
        what = (
            f"{self.comparison.current_images} images against {self.comparison.reference_images} of "
            f"{self.comparison.reference}: {'; '.join(told)}{more}"
        )
        where = "images" if self.kind == DRIFT else f"split {self.current.name}"
        return [Trouble(self.kind, where, what)]

    def chapter(self, tile: Tile, number: int = 0) -> Chapter:
        """For a page, whose chapter of that number it is; `tile` shows images of the current side."""
        name, title = {
            DRIFT: ("Drift", f"Drift against {self.reference.name}"),
            SKEW: (f"Skew of {self.current.name}", f"Split {self.current.name} beside {self.reference.name}"),
        }[self.kind]
        heading = Heading(f"{self.kind.lower()}{number or ''}", name, title)
        return drift_chapter(self.comparison, self.reference, self.current, tile, heading)


def watch(dataset: Dataset, config: DriftConfig, digest: str) -> Watched:
    """Compares a dataset with its reference.

    Args:
        dataset: the new one.
        config: `gate.drift`, with an absolute path or a URL as its reference.
        digest: of the reference's manifest, as it was when the run was planned.

    Raises:
        UsageError: the reference is no dataset, or another one by now.
    """
    reference = open_reference(config.reference)
    if reference.manifest.digest != digest:
        raise UsageError(
            f"gate.drift.reference: {config.reference} holds another dataset (digest {reference.manifest.digest[:12]}) "
            f"than when the run was planned ({digest[:12]}). Restore it, or run or compile again."
        )
    before = sample_dataset(reference, size=config.images, name="the reference")
    now = sample_dataset(dataset, size=config.images, name="this dataset")
    return Watched(DRIFT, compare(before, now, alpha=config.alpha, ignore=config.ignore), before, now)


def watch_splits(dataset: Dataset, config: SkewConfig, shown: Progress = SILENT) -> list[Watched]:
    """Compares every split with the largest one; none where there is only one.

    Args:
        dataset: the dataset.
        config: `gate.skew`; its bound on false alarms holds for all comparisons together.
        shown: told of every image.

    Raises:
        ConfigError: the bound is too small for so many comparisons.
        DatasetError: the dataset is damaged.
    """
    if len(dataset.splits) < 2:
        return []
    config.shared(len(dataset.splits) - 1)
    splits = sorted(dataset.splits, key=lambda split: (-dataset.num_records(split), split))
    first, *others = (sample_dataset(dataset, [split], size=config.images, name=split, shown=shown) for split in splits)
    alpha = config.shared(len(others))
    return [Watched(SKEW, compare(first, other, alpha=alpha, ignore=config.ignore), first, other) for other in others]


def open_reference(reference: str) -> Dataset:
    """The dataset that `gate.drift.reference` names.

    Raises:
        UsageError: there is none.
    """
    try:
        return Dataset.open(reference)
    except DatasetError as error:
        raise UsageError(f"gate.drift.reference: {error}") from None
