"""Metrics of a model on a whole split, over all hosts; and the keys of a batch's images, for messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from keras import ops

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.dataset.reader import ImageDataset
from shardwright.evaluation.metrics import KAGGLE_UNITS, TUNED, ClassSums, LabelCounts, MaskSums, headline
from shardwright.evaluation.thresholds import LEVELS
from shardwright.masks.regions import IGNORE_VALUE
from shardwright.text.escaping import escape

_SHOWN = 8
# Batches that the devices work on while the next one is read.
_AHEAD = 1
# The part of a packed count that says how many of the pixels are true.
_TRUE = 1 << 16
# Every second tenth of the levels that are tried at the end: each costs a pass over the pixels.
_LEVELS = tuple(LEVELS[9::20].tolist())
# Called with images, targets and which of them count, bool [B]; starts to evaluate them. What it returns waits for the
# counts of this host's images, and for the mean loss of all hosts' images that count.
Launch = Callable[[Any, Any, Any], Callable[[], tuple[npt.NDArray[Any], float]]]
Together = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]


def keys_at(dataset: str, split: str, positions: Sequence[int]) -> list[str]:
    """Returns the keys of the images at some positions of a split, in the order of the positions."""
    wanted = set(positions)
    numbered = enumerate(islice(ImageDataset.open(dataset).keys(split), max(wanted, default=-1) + 1))
    keys = {position: key for position, key in numbered if position in wanted}
    return [keys[position] for position in positions]


def shown(keys: Sequence[str]) -> str:
    """Lists the first keys, and the number of the others."""
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(escape(key) for key in keys[:_SHOWN]) + more


@dataclass(frozen=True)
class Counting:
    """What a compiled step counts of a batch's predictions, so that only counts travel to the host.

    Attributes:
        task: `segmentation` or `classification`.
        multi: whether an image may have several classes.
        ignore: whether masks mark pixels that are ignored.
        levels: probabilities from which a class is predicted, float32, rising.
        chosen: index of the threshold of the recipe among them.
    """

    task: str
    multi: bool
    ignore: bool
    levels: tuple[float, ...]
    chosen: int

    @staticmethod
    def of(spec: TrainSpec) -> Counting:
        """Returns that of a training: the threshold of its recipe and, if it will be tuned, four others."""
        threshold, levels = spec.recipe.threshold, _LEVELS
        tuned = "threshold" in spec.recipe.evaluator.tuned and (spec.task == "segmentation" or spec.multi)
        if not tuned or threshold not in levels:
            levels = (float(np.float32(threshold)),)
        return Counting(spec.task, spec.multi, spec.ignore, levels, levels.index(float(np.float32(threshold))))

    def __call__(self, probabilities: Any, targets: Any) -> Any:
        """Returns the counts of each image, int32.

        Args:
            probabilities: float32 [B, H, W, C] or [B, C].
            targets: masks [B, H, W, C], labels [B], or 0 and 1 [B, C].

        Returns:
            Of masks and of several classes [B, C, 1 + 2 L]: what is true, and for each level what is predicted and
            true, and what is predicted. Of labels [B, 2], the likeliest class and the true one.
        """
        if self.task != "segmentation" and not self.multi:
            likeliest = ops.cast(ops.argmax(probabilities, axis=-1), "int32")
            return ops.stack([likeliest, ops.cast(targets, "int32")], axis=-1)
        # Two counts in one whole number, since every pass over the pixels costs: those that are true as well have a
        # second bit. In a row of fewer than 32,768 pixels neither overflows.
        pixels = ops.cast(ops.not_equal(targets, 0), "int32") * _TRUE + 1
        if self.ignore:
            pixels = pixels * ops.cast(ops.not_equal(targets, IGNORE_VALUE), "int32")
        predictions = (ops.cast(ops.greater_equal(probabilities, np.float32(at)), "int32") for at in self.levels)
        packed = ops.stack([_over_rows(pixels), *(_over_rows(pixels * predicted) for predicted in predictions)], -1)
        axes = tuple(range(1, len(packed.shape) - 2))
        both = ops.stack([ops.sum(packed // _TRUE, axis=axes), ops.sum(packed % _TRUE, axis=axes)], -1)
        counts = ops.reshape(both, (*both.shape[:-2], 2 * len(self.levels) + 2))
        # Of all pixels only those that are true are of interest.
        return ops.concatenate([counts[..., :1], counts[..., 2:]], axis=-1)


def _over_rows(pixels: Any) -> Any:
    return ops.sum(pixels, axis=2) if len(pixels.shape) == 4 else pixels


def evaluate(
    launch: Launch,
    batches: Iterable[tuple[Any, ...]],
    spec: TrainSpec,
    together: Together = lambda values: values,
) -> dict[str, float]:
    """Returns metrics over all batches, and `loss`, the mean over the images of their batch's loss.

    Where thresholds will be tuned, `tuned_mean_dice` (or `tuned_mean_f1`) is the mean with the best of five thresholds
    for each class: nearer to what is exported than the figure at the recipe's threshold.

    Args:
        launch: a backend's `evaluate`. While it computes a batch the next one is read.
        batches: images uint8 or float32 [B, H, W, 3], targets, and possibly weights [B], 0 for images that do not
            count.
        spec: the training.
        together: adds up numbers over the hosts.
    """
    counting = Counting.of(spec)
    kind: Any = MaskSums if spec.task == "segmentation" else ClassSums if spec.multi else LabelCounts
    sums, by_level = kind.zero(len(spec.classes)), np.zeros((len(spec.classes), 1 + 2 * len(counting.levels)))
    total = images_seen = 0.0
    for counted, (counts, loss) in _finished(launch, batches):
        if not counted.any():
            continue
        counts = counts[counted]
        total += loss * len(counts)
        images_seen += len(counts)
        if counts.ndim == 2:
            sums += LabelCounts.of_labels(counts[:, 0], counts[:, 1], len(spec.classes))
            continue
        by_level += counts.sum(0, dtype=np.int64)
        truth, hits, predicted = (counts[..., at] for at in (0, 1 + 2 * counting.chosen, 2 + 2 * counting.chosen))
        if spec.task == "segmentation":
            sums += MaskSums.of_images(hits, predicted, truth)
        else:
            sums += ClassSums.of_labels(predicted, truth)
    sums, others = _over_hosts(sums, (total, images_seen, *by_level.ravel().tolist()), together)
    metrics = {**sums.report(spec.classes), "loss": others[0] / max(others[1], 1)}
    if len(counting.levels) > 1:
        # The mean over the classes with something true of 2I / (P + T) at the best level of each.
        name, counts = headline(spec.task, multi=spec.multi), np.reshape(others[2:], by_level.shape)
        truth, hits, predicted = counts[:, :1], counts[:, 1::2], counts[:, 2::2]
        best = np.max(2 * hits / np.maximum(predicted + truth, 1), axis=1)[truth[:, 0] > 0]
        metrics[TUNED + name] = float(best.mean()) if best.size else metrics[name]
    return metrics


def _finished(launch: Launch, batches: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, Any]]:
    """Yields which images of each batch count, and its result, when the next batch has been started."""
    started: deque[tuple[Any, Any]] = deque()
    for images, targets, *weights in batches:
        counted = np.asarray(weights[0]) > 0 if weights else np.ones(len(targets), bool)
        started.append((counted, launch(images, targets, counted)))
        if len(started) > _AHEAD:
            counted, result = started.popleft()
            yield counted, result()
    for counted, result in started:
        yield counted, result()


def _over_hosts(sums: Any, others: tuple[float, ...], together: Together) -> tuple[Any, list[float]]:
    """Adds up sums, and other numbers, over all hosts in one exchange of float64."""
    # Whole numbers of `1 / KAGGLE_UNITS` are too large for float64.
    fields = {
        name: np.array([one / KAGGLE_UNITS for one in value]) if isinstance(value, tuple) else np.asarray(value, float)
        for name, value in vars(sums).items()
    }
    flat = together(np.concatenate([*(value.ravel() for value in fields.values()), np.array(others)]))
    added: dict[str, Any] = {}
    place = 0
    for name, value in fields.items():
        part = flat[place : place + value.size].reshape(value.shape)
        if isinstance(getattr(sums, name), tuple):
            added[name] = tuple(int(Fraction(one) * KAGGLE_UNITS) for one in part.tolist())
        else:
            added[name] = part if value.shape else int(part)
        place += value.size
    return type(sums)(**added), flat[place:].tolist()
