"""How good a reviewing model is by the annotations it reviews, and whether its ranking can find their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardwright.dataset.manifest import MASKS, MULTI
from shardwright.evaluation.figures import title_of
from shardwright.evaluation.metrics import ClassSums, LabelCounts, MaskSums
from shardwright.pipelines.reviewing.answers import Annotated, Answer
from shardwright.running.progress import counted

# What `docs/tutorials/review-labels.md` measures: a twentieth of the annotations is wrong, and a tenth is looked at.
_WRONG, _FIRST = 0.05, 0.1
# Of one class an image, for an oracle. Models of an accuracy of 0.64 found 0.77 of the errors (an oracle 0.67), those
# of 0.43 found 0.38 (0.48).
_LEAST_FOUND = 0.6
# Of masks, the weakest model with which rankings were measured; of several classes an image, below it the model and the
# annotations contradict each other more than twice as often as they agree that a class is there.
_LEAST = {"mean_dice": 0.37, "mean_f1": 0.5}


@dataclass(frozen=True)
class Strength:
    """How far a model agrees with annotations.

    Attributes:
        metric: `accuracy`, `mean_f1` or `mean_dice`.
        value: of the annotations as they are, 0 to 1; with wrong ones among them it is a bit too low.
        images: how many it is of.
        splits: their splits.
    """

    metric: str
    value: float
    images: int
    splits: tuple[str, ...]

    @classmethod
    def of(
        cls, kind: str, answers: Sequence[Answer], annotated: Mapping[str, Annotated], classes: Sequence[str]
    ) -> Strength:
        """Measures answers by the annotations of their images, which are of a kind of `Manifest.labels`."""
        rows = [annotated[answer.key] for answer in answers]
        splits = tuple(sorted({row.split for row in rows}))
        sums: Any
        if kind == MASKS:
            metric, columns = "mean_dice", ("shared", "predicted", "annotated")
            parts = ([[getattr(one, name) for one in answer.differences] for answer in answers] for name in columns)
            sums = MaskSums.of_images(*parts)
        elif kind == MULTI:
            metric = "mean_f1"
            pairs = [[one.labels for one in answers], [row.labels for row in rows]]
            sums = ClassSums.of_labels(
                *(np.array([np.isin(range(len(classes)), labels) for labels in side]) for side in pairs)
            )
        else:
            metric = "accuracy"
            sums = LabelCounts.of_labels(
                np.array([answer.labels[0] for answer in answers]),
                np.array([row.labels[0] for row in rows]),
                len(classes),
            )
        return cls(metric, sums.report(classes)[metric], len(answers), splits)

    @property
    def findable(self) -> float | None:
        """Of the errors, the share that an oracle would find which knows what answers are right; of one class only.

        It puts the errors among these images first, and the other images in the order of chance.
        """
        if self.metric != "accuracy":
            return None
        sure = self.value * _WRONG
        return self.value + (1 - self.value) * (_FIRST - sure) / (1 - sure)

    @property
    def is_weak(self) -> bool:
        """Whether a ranking by the model finds little."""
        found = self.findable
        return self.value < _LEAST[self.metric] if found is None else found < _LEAST_FOUND

    def words(self, suspected: int | None = None) -> str:
        """Returns what the model reaches and, of a weak one, what that means for the ranking."""
        told = (
            f"{title_of(self.metric)} {self.value:.2f} on {counted(self.images, 'image')} of {', '.join(self.splits)}"
        )
        if not self.is_weak:
            return told
        if self.findable is None:
            why = f"none below {_LEAST[self.metric]} was seen to find errors"
        else:
            why = f"even an oracle with this accuracy would have {self.findable:.0%} of the errors in the first tenth"
        own = f", and most of the {suspected:,} suspected are its own mistakes" if suspected else ""
        return f"{told}: a ranking by so weak a model finds little, {why}{own}. Train a better one"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON."""
        found = {} if self.findable is None else {"findable": round(self.findable, 4)}
        value = {"metric": self.metric, "value": round(self.value, 6), "images": self.images}
        return {**value, "splits": list(self.splits), "weak": self.is_weak, **found}
