"""Comparisons of images as a page of their own, with the images that stand out.

Two places whose images are compared: datasets, or a folder such as that of the images a model was asked about.

Compares a dataset with an earlier one, as a gate asks for it, and one's splits with each other.
"""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass

from shardwright.config.evaluation import ALPHA, DriftConfig, SkewConfig
from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.dataset.reader import ImageDataset
from shardwright.display.html import escape, finding_list, section
from shardwright.display.page import document
from shardwright.drift.chapter import Heading, Tile, drift_chapter
from shardwright.drift.compare import Comparison, compare
from shardwright.drift.sample import SIZE, Sample, sample_dataset, sample_folder
from shardwright.errors import DatasetError, UsageError
from shardwright.progress import SILENT, Progress
from shardwright.report.anomalies import DRIFT, SKEW, Anomaly
from shardwright.report.page import Chapter
from shardwright.storage import is_remote, read_bytes

# Says where the reference of a run on this machine lies: a place is no part of what is cached.
REFERENCE_VARIABLE = "SHARDWRIGHT_DRIFT_REFERENCE"
_TOLD = 6


@dataclass(frozen=True)
class DriftCheck:
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

    def troubles(self) -> list[Anomaly]:
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
        return [Anomaly(self.kind, where, what)]

    def chapter(self, tile: Tile, number: int = 0) -> Chapter:
        """For a page, whose chapter of that number it is; `tile` shows images of the current side."""
        name, title = {
            DRIFT: ("Drift", f"Drift against {self.reference.name}"),
            SKEW: (f"Skew of {self.current.name}", f"Split {self.current.name} beside {self.reference.name}"),
        }[self.kind]
        heading = Heading(f"{self.kind.lower()}{number or ''}", name, title)
        return drift_chapter(self.comparison, self.reference, self.current, tile, heading)


def check_drift(dataset: ImageDataset, config: DriftConfig, digest: str) -> DriftCheck:
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
    return DriftCheck(DRIFT, compare(before, now, alpha=config.alpha, ignore=config.ignore), before, now)


def watch_splits(dataset: ImageDataset, config: SkewConfig, shown: Progress = SILENT) -> list[DriftCheck]:
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
    return [
        DriftCheck(SKEW, compare(first, other, alpha=alpha, ignore=config.ignore), first, other) for other in others
    ]


def open_reference(reference: str) -> ImageDataset:
    """The dataset that `gate.drift.reference` names.

    Raises:
        UsageError: there is none.
    """
    try:
        return ImageDataset.open(reference)
    except DatasetError as error:
        raise UsageError(f"gate.drift.reference: {error}") from None


def drift_page(compared: Sequence[DriftCheck], tile: Tile) -> str:
    """Renders comparisons.

    Args:
        compared: what was compared, at least one.
        tile: shows an image (`drift.tiles`).

    Returns:
        HTML of at most 5 MB.

    Raises:
        DatasetError: the dataset has changed since it was measured.
    """
    chapters = [watched.chapter(tile, number) for number, watched in enumerate(compared)]
    findings = [finding for chapter in chapters for finding in chapter.findings]
    findings = findings or [("good", "Nothing has changed beyond what chance does.")]
    links = "".join(f'<li><a href="#{chapter.ident}">{html.escape(chapter.title)}</a></li>' for chapter in chapters)
    body = section("look", "Worth a look", finding_list(findings)) + "".join(chapter.body for chapter in chapters)
    sides = {watched.comparison.current: None for watched in compared}
    lead = f"{', '.join(escape(name, 80) for name in sides)} against {escape(compared[0].comparison.reference, 80)}"
    return document("Have the images changed?", "Comparison of images", lead, "", body, links=links)


def compare_datasets(
    reference: str | os.PathLike[str],
    current: str | os.PathLike[str],
    *,
    images: int = SIZE,
    alpha: float = ALPHA,
    ignore: Sequence[str] = (),
    shown: Progress = SILENT,
) -> Comparison:
    """Tells whether images have changed, beyond what chance does.

    Args:
        reference: a dataset: what is expected.
        current: a dataset, or a folder of images.
        images: of each side, chosen by a hash of their keys.
        alpha: chance of a false alarm.
        ignore: measures that may change.
        shown: told of every image.

    Returns:
        What every measure says; a notebook shows it.

    Raises:
        ConfigError: an option makes no sense.
        DatasetError: the reference is no dataset, or one is damaged.
        UsageError: there are no images.
    """
    config = DriftConfig(os.fspath(reference), images, alpha, tuple(ignore))
    return watch_places(config, current, shown).comparison


def watch_places(config: DriftConfig, current: str | os.PathLike[str], shown: Progress = SILENT) -> DriftCheck:
    """The same, together with what was measured, so that it can be shown; see `compare_datasets`."""
    names = _names(config.reference, os.fspath(current))
    before = sample_dataset(ImageDataset.open(config.reference), size=config.images, name=names[0], shown=shown)
    now = sample_of(current, config.images, shown)
    now.name = names[1]
    return DriftCheck(DRIFT, compare(before, now, alpha=config.alpha, ignore=config.ignore), before, now)


def _names(*places: str) -> list[str]:
    """What to call places: their last parts, as many as tell them apart."""
    parts = [[part for part in place.split("/") if part] for place in places]
    most = max(map(len, parts))
    count = next((n for n in range(1, most) if len({tuple(way[-n:]) for way in parts}) == len(parts)), most)
    return ["/".join(way[-count:]) for way in parts]


def sample_of(place: str | os.PathLike[str], images: int, shown: Progress = SILENT) -> Sample:
    """Draws and measures images of a dataset, or of a folder where there is no manifest.

    Raises:
        DatasetError: the dataset is damaged.
        UsageError: there are no images.
    """
    name = os.fspath(place)
    try:
        read_bytes(os.path.join(name, MANIFEST_FILE))
    except OSError:
        return sample_folder(name if is_remote(name) else os.path.abspath(name), size=images, shown=shown)
    return sample_dataset(ImageDataset.open(name), size=images, name=name, shown=shown)
