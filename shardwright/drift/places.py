"""Two places whose images are compared: datasets, or a folder such as that of the images a model was asked about."""

from __future__ import annotations

import os
from collections.abc import Sequence

from shardwright.config.drift import ALPHA, DriftConfig
from shardwright.console import SILENT, Progress
from shardwright.dataset import Dataset
from shardwright.drift.compare import Comparison, compare
from shardwright.drift.sample import SIZE, Sample, sample_dataset, sample_folder
from shardwright.drift.watch import Watched
from shardwright.manifest import MANIFEST_FILE
from shardwright.report.troubles import DRIFT
from shardwright.storage import is_remote, read_bytes


def compare_images(
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


def watch_places(config: DriftConfig, current: str | os.PathLike[str], shown: Progress = SILENT) -> Watched:
    """The same, together with what was measured, so that it can be shown; see `compare_images`."""
    names = _names(config.reference, os.fspath(current))
    before = sample_dataset(Dataset.open(config.reference), size=config.images, name=names[0], shown=shown)
    now = sample_of(current, config.images, shown)
    now.name = names[1]
    return Watched(DRIFT, compare(before, now, alpha=config.alpha, ignore=config.ignore), before, now)


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
    return sample_dataset(Dataset.open(name), size=images, name=name, shown=shown)
