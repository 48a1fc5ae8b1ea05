"""Figures with what they are of: no metric is shown without its split, its images, their size and the thresholds.

`Figures` holds metrics together with `Measured`. What shows metrics to people takes `Figures`, so that it has the words
for them: title and definition of each metric (`TITLES`), and `Measured.words`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardwright.evaluation.thresholds import Thresholds
from shardwright.untrusted import json_text as untrusted

KAGGLE = "kaggle_dice"
# Metric -> its title and, where the title is not enough, its definition.
TITLES: Mapping[str, tuple[str, str]] = {
    "accuracy": ("Accuracy", ""),
    "mean_dice": ("Mean Dice", "per class over the pixels of all images, then the mean of the classes"),
    "mean_iou": ("Mean IoU", "per class over the pixels of all images, then the mean of the classes"),
    "mean_f1": ("Mean F1", "per class over all images: whether an image shows it; then the mean of the classes"),
    KAGGLE: (
        "Kaggle's Dice",
        "of every image and class alone, 1 where neither truth nor prediction has any pixel; then the mean of all",
    ),
    "exact_match": ("Exact match", "images with all their classes predicted and no other"),
    "tuned_mean_dice": ("Mean Dice at the best thresholds", "each class at the best of five thresholds on this split"),
    "tuned_mean_f1": ("Mean F1 at the best thresholds", "each class at the best of five thresholds on this split"),
    "loss": ("Loss", ""),
    "dice": ("Dice", ""),
    "iou": ("IoU", ""),
    "f1": ("F1", ""),
}


_MEASURED = untrusted.record(
    {"split": untrusted.text, "images": untrusted.count, "size": untrusted.listed(untrusted.count)},
    {"thresholds": untrusted.listed(untrusted.number), "min_areas": untrusted.listed(untrusted.count)},
)


def title_of(metric: str) -> str:
    """Returns the title of a metric, or of a kind of metrics such as `dice`."""
    return TITLES.get(metric, (metric, ""))[0]


@dataclass(frozen=True)
class Measured:
    """What figures are of.

    Attributes:
        split: the split.
        images: how many images of it; those that cannot be decoded are left out.
        size: rows and columns of an image when it was measured.
        thresholds: of each class, from which a pixel or an image has it; empty where the likeliest class counts.
        min_areas: pixels of the smallest region of each class; empty where there are no masks.
    """

    split: str
    images: int
    size: tuple[int, int]
    thresholds: tuple[float, ...] = ()
    min_areas: tuple[int, ...] = ()

    @classmethod
    def of_model(
        cls, split: str, images: int, size: Sequence[int], task: str, multi: bool, chosen: Thresholds
    ) -> Measured:
        """Returns what is measured with thresholds, as far as the task uses them."""
        masks = task == "segmentation"
        return cls(
            split,
            images,
            (int(size[0]), int(size[1])),
            chosen.thresholds if masks or multi else (),
            chosen.min_areas if masks else (),
        )

    @classmethod
    def from_dict(cls, value: object) -> Measured:
        """Reads the form of `to_dict`.

        Raises:
            ValueError: it is not one.
        """
        checked = _MEASURED(value, "")
        height, width, *more = checked["size"]
        if more:
            raise ValueError(f"size: {checked['size']} are not rows and columns")
        return cls(
            checked["split"],
            checked["images"],
            (height, width),
            tuple(checked.get("thresholds", ())),
            tuple(checked.get("min_areas", ())),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON."""
        value: dict[str, Any] = {"split": self.split, "images": self.images, "size": list(self.size)}
        if self.thresholds:
            value["thresholds"] = list(self.thresholds)
        if self.min_areas:
            value["min_areas"] = list(self.min_areas)
        return value

    def words(self) -> str:
        """Returns it in words: `30 images of test, 176x264 pixels, threshold 0.40 to 0.61, any region`."""
        images = f"{self.images:,} {'image' if self.images == 1 else 'images'} of {self.split}"
        parts = [images, "{}x{} pixels".format(*self.size)]
        if self.thresholds:
            parts.append(f"threshold {_range(self.thresholds, '.2f')}")
        if self.min_areas:
            smallest = f"regions of {_range(self.min_areas, ',')} pixels or more"
            parts.append(smallest if max(self.min_areas) > 1 else "regions of any size")
        return ", ".join(parts)


@dataclass(frozen=True)
class Figures:
    """Metrics and what they are of.

    Attributes:
        values: `mean_dice`, `dice/<class>`, … -> value.
        measured: what they are of.
    """

    values: Mapping[str, float]
    measured: Measured

    def means(self, first: str = "") -> Iterator[tuple[str, float]]:
        """Yields the metrics of all classes together, one of them first."""
        names = sorted((name for name in self.values if "/" not in name), key=lambda name: (name != first, name))
        return ((name, self.values[name]) for name in names)

    def of_classes(self) -> dict[str, dict[str, float]]:
        """Returns class -> kind of metric -> value."""
        found: dict[str, dict[str, float]] = {}
        for name, value in sorted(self.values.items()):
            kind, slash, one = name.partition("/")
            if slash:
                found.setdefault(one, {})[kind] = value
        return found


def _range(values: Sequence[float], form: str) -> str:
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low} to {high}"
