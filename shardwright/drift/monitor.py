"""Checks for drift: a dataset against a reference, the splits of a dataset, or a folder of images against a dataset.

A gate, the `drift` command and notebooks call these functions. `drift_page` renders the results as one HTML page.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shardwright.config.check_arguments import check_list, check_whole
from shardwright.config.evaluation import ALPHA, DriftConfig, SkewConfig
from shardwright.config.images import HEADER, images_config
from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.dataset.reader import ImageDataset
from shardwright.display.histograms import plain_number
from shardwright.display.html import document, finding_list, isolate, join, section
from shardwright.drift.chapter import Heading, Tile, drift_chapter
from shardwright.drift.compare import LEAST, Comparison, compare
from shardwright.drift.sampling import SIZE, Sample, sample_dataset, sample_folder, shared_contents
from shardwright.errors import DatasetError, UsageError
from shardwright.report.anomaly_chapter import DRIFT, SKEW, Anomaly
from shardwright.report.page import Chapter
from shardwright.running.progress import SILENT, Progress
from shardwright.storage import is_remote, read_bytes

# Path of the reference of a local run. It is passed in the environment, as a path must not be part of a cache key.
REFERENCE_VARIABLE = "SHARDWRIGHT_DRIFT_REFERENCE"
_LISTED = 6


@dataclass(frozen=True)
class DriftCheck:
    """A comparison with the samples that were compared.

    Attributes:
        kind: kind of the anomaly if images have changed: `DRIFT` or `SKEW`.
        comparison: the findings of all measures.
        reference: the reference sample.
        current: the current sample.
    """

    kind: str
    comparison: Comparison
    reference: Sample
    current: Sample

    def anomalies(self) -> list[Anomaly]:
        """Returns one anomaly for all measures that have changed; empty if none has."""
        drifted = self.comparison.drifted
        if not drifted:
            return []
        changes = []
        for finding in drifted[:_LISTED]:
            means = [plain_number(mean) for mean in (finding.reference, finding.current) if mean is not None]
            moved = f" {' -> '.join(means)}" if means else ""
            changes.append(f"{finding.words}{moved} (p {finding.p:.2g})")
        more = f" and {len(drifted) - _LISTED} more" if len(drifted) > _LISTED else ""
        compared = self.comparison
        new = ", new ones" if compared.current_known else ""
        what = (
            f"{compared.current_sample}{new}, against {compared.reference_sample} of {compared.reference}: "
            f"{'; '.join(changes)}{more}"
        )
        where = "images" if self.kind == DRIFT else f"split {self.current.name}"
        return [Anomaly(self.kind, where, what)]

    def chapter(self, tile: Tile, number: int = 0) -> Chapter:
        """Renders the check as chapter `number` of a page; `tile` renders images of the current sample."""
        name, title = {
            DRIFT: ("Drift", f"Drift against {self.reference.name}"),
            SKEW: (f"Skew of {self.current.name}", f"Split {self.current.name} compared with {self.reference.name}"),
        }[self.kind]
        heading = Heading(f"{self.kind.lower()}{number or ''}", name, title)
        return drift_chapter(self.comparison, self.reference, self.current, tile, heading)


def check_drift(dataset: ImageDataset, config: DriftConfig, digest: str) -> DriftCheck:
    """Compares a dataset with its reference.

    Images that the reference has, too, are left out, if at least `LEAST` others remain. The old images of a dataset
    that grows would hide a change of the new ones, and the tests assume samples without common images.

    Args:
        dataset: the new one.
        config: `gate.drift`, with an absolute path or a URL as its reference.
        digest: digest of the reference's manifest when the run was planned.

    Raises:
        UsageError: the reference is not a dataset, or has changed since.
    """
    reference = open_reference(config.reference)
    if reference.manifest.digest != digest:
        raise UsageError(
            f"gate.drift.reference: {config.reference} contains another dataset (digest "
            f"{reference.manifest.digest[:12]}) than when the run was planned ({digest[:12]}). Restore "
            "it, or run or compile again."
        )
    before = sample_dataset(reference, size=config.images, name="the reference")
    now = _sample_new(dataset, reference, config.images, "this dataset")
    return DriftCheck(DRIFT, compare(before, now, alpha=config.alpha, ignore=config.ignore), before, now)


def check_splits(dataset: ImageDataset, config: SkewConfig, shown: Progress = SILENT) -> list[DriftCheck]:
    """Compares every split with the largest one; returns an empty list if there is only one.

    Args:
        dataset: the dataset.
        config: `gate.skew`; its bound on false alarms holds for all comparisons together.
        shown: advances with every image.

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
    """Opens the dataset of `gate.drift.reference`.

    Raises:
        UsageError: the path is not a dataset.
    """
    try:
        return ImageDataset.open(reference)
    except DatasetError as error:
        raise UsageError(f"gate.drift.reference: {error}") from None


def drift_page(checks: Sequence[DriftCheck], tile: Tile) -> str:
    """Renders comparisons.

    Args:
        checks: the comparisons, at least one.
        tile: renders an image (`drift.chapter` has implementations).

    Returns:
        HTML of at most 5 MB.

    Raises:
        DatasetError: the dataset has changed since it was measured.
    """
    chapters = [check.chapter(tile, number) for number, check in enumerate(checks)]
    findings = [finding for chapter in chapters for finding in chapter.findings]
    findings = findings or [("good", "Nothing has changed more than by chance.")]
    links = [(chapter.ident, chapter.title) for chapter in chapters]
    body = join([section("look", "Findings", finding_list(findings)), *(chapter.body for chapter in chapters)])
    sides = {check.comparison.current: None for check in checks}
    current = join([isolate(name, 80) for name in sides], ", ")
    lead = join([current, isolate(checks[0].comparison.reference, 80)], " against ")
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
    """Detects whether images have changed more than by chance.

    Args:
        reference: a dataset with the expected images.
        current: a dataset, or a folder of images.
        images: number of images of each side, chosen by a hash of their keys.
        alpha: chance of a false alarm, from 5e-05 to 0.5; from 1e-06 if `embedding` is ignored.
        ignore: a list of measures that may change.
        shown: advances with every image.

    Returns:
        The findings of all measures; a notebook shows them.

    Raises:
        ConfigError: an option is out of range.
        DatasetError: the reference is not a dataset, or a dataset is damaged.
        UsageError: there are no images.
    """
    check_whole("images", images)
    check_list("ignore", ignore)
    config = DriftConfig(os.fspath(reference), images, alpha, tuple(ignore))
    return check_paths(config, current, shown).comparison


def check_paths(config: DriftConfig, current: str | os.PathLike[str], shown: Progress = SILENT) -> DriftCheck:
    """Compares as `compare_datasets` does, and returns the samples, too, so that they can be shown."""
    names = _names(config.reference, os.fspath(current))
    reference = ImageDataset.open(config.reference)
    before = sample_dataset(reference, size=config.images, name=names[0], shown=shown)
    now = sample_of(current, config.images, shown, reference)
    now.name = names[1]
    return DriftCheck(DRIFT, compare(before, now, alpha=config.alpha, ignore=config.ignore), before, now)


def _names(*places: str) -> list[str]:
    """Returns names of paths: as many of their last parts as make them distinct."""
    parts = [[part for part in place.split("/") if part] for place in places]
    most = max(map(len, parts))

    def distinct(count: int) -> bool:
        ends = {tuple(way[-count:]) for way in parts}
        # The folders of a run's datasets are numbers, which next to numbers of images mean nothing.
        return len(ends) == len(parts) and not any("".join(end).isdecimal() for end in ends)

    count = next(filter(distinct, range(1, most)), most)
    return ["/".join(way[-count:]) for way in parts]


def sample_of(
    place: str | os.PathLike[str], images: int, shown: Progress = SILENT, reference: ImageDataset | None = None
) -> Sample:
    """Samples a dataset, or a folder of images if it has no manifest.

    Args:
        place: the dataset or folder.
        images: most images of the sample.
        shown: advances with every image.
        reference: a dataset whose images are left out, see `check_drift`.

    Raises:
        DatasetError: the dataset is damaged.
        UsageError: there are no images.
    """
    name = os.fspath(place)
    try:
        read_bytes(os.path.join(name, MANIFEST_FILE))
    except OSError:
        folder = name if is_remote(name) else os.path.abspath(name)
        options = images_config({} if reference is None else reference.manifest.recipe.get("images", {}))
        options = replace(options, verify=HEADER)  # The measures decode each image.
        sample = sample_folder(folder, size=images, known_to=reference, options=options, shown=shown)
        if not sample.known or sample.total >= LEAST:
            return sample
        return sample_folder(folder, size=images, options=options, shown=shown)
    dataset = ImageDataset.open(name)
    if reference is None:
        return sample_dataset(dataset, size=images, name=name, shown=shown)
    return _sample_new(dataset, reference, images, name, shown)


def _sample_new(
    dataset: ImageDataset, reference: ImageDataset, images: int, name: str, shown: Progress = SILENT
) -> Sample:
    """Samples the images that the reference does not have, or all where these are too few for a verdict."""
    sample = sample_dataset(dataset, size=images, name=name, known=shared_contents(dataset, reference), shown=shown)
    if not sample.known or sample.total >= LEAST:
        return sample
    return sample_dataset(dataset, size=images, name=name, shown=shown)
