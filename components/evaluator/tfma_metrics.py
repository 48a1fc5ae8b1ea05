"""TFMA metrics that add up the outputs of the model's `examples` signature over all images.

The signature returns sums per image and class (or probabilities and the label), so no mask and no pixel passes through
Beam. The arithmetic is that of `shardwright.evaluation.metrics`. TFMA imports the classes by the names in `component`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis.metrics import metric_types, metric_util

from shardwright.components.evaluator.result_files import CONFUSION, IMAGES
from shardwright.evaluation.metrics import ClassSums, LabelCounts, MaskSums

Keys = dict[str, metric_types.MetricKey]

# Above this number of classes the confusion matrix is unreadable and omitted.
MOST_CONFUSED = 20


def confusion_names(classes: int) -> list[str]:
    """Returns names for the entries of a confusion matrix, by class indices, row by row; a row is a true class."""
    if classes > MOST_CONFUSED:
        return []
    return [f"{CONFUSION}{true}/{predicted}" for true in range(classes) for predicted in range(classes)]


class MaskMetrics(metric_types.Metric):
    """`mean_dice`, `mean_iou`, `mean_f1`, `kaggle_dice`; `dice/`, `iou/` and `f1/<class>` of every class.

    Needs a model whose signature returns `intersection`, `prediction` and `truth`, float32 [N, C], in pixels.
    """

    def __init__(self, classes: list[str], name: str = "mask_metrics") -> None:
        names = ["mean_dice", "mean_iou", "mean_f1", "kaggle_dice", IMAGES]
        names += [f"{metric}/{c}" for metric in ("dice", "iou", "f1") for c in classes]
        make = functools.partial(_computations, _MaskCombiner, names)
        super().__init__(metric_util.merge_per_key_computations(make), name=name, classes=classes)


class LabelMetrics(metric_types.Metric):
    """`accuracy`, `mean_f1`, and `f1/<class>` of every class; the confusion matrix as `confusion/<true>/<predicted>`.

    Needs a model whose signature returns `probabilities`, float32 [N, K], and `label`, int64 [N].
    """

    def __init__(self, classes: list[str], name: str = "label_metrics") -> None:
        names = ["accuracy", "mean_f1", IMAGES, *(f"f1/{c}" for c in classes), *confusion_names(len(classes))]
        make = functools.partial(_computations, _LabelCombiner, names)
        super().__init__(metric_util.merge_per_key_computations(make), name=name, classes=classes)


class ClassMetrics(metric_types.Metric):
    """`mean_f1`, `exact_match`, and `f1/<class>` of every class, where an image may have several.

    Needs a model whose signature returns `prediction` and `truth`, float32 [N, C], 0 or 1.
    """

    def __init__(self, classes: list[str], name: str = "class_metrics") -> None:
        names = ["mean_f1", "exact_match", IMAGES, *(f"f1/{c}" for c in classes)]
        make = functools.partial(_computations, _ClassCombiner, names)
        super().__init__(metric_util.merge_per_key_computations(make), name=name, classes=classes)


metric_types.register_metric(MaskMetrics)
metric_types.register_metric(ClassMetrics)
metric_types.register_metric(LabelMetrics)


def _computations(
    combiner: Callable[[str, list[str], Keys], beam.CombineFn],
    metric_names: list[str],
    name: str,
    classes: list[str],
    model_name: str = "",
    output_name: str = "",
) -> metric_types.MetricComputations:
    """Returns one computation of all metrics of a model; TFMA calls it once per model.

    TFMA decides by the names of the positional parameters what to pass: `model_name` must be one of them.
    """
    del name  # The name of the class; each metric has another one.
    # `example_weighted` None, not False: TFMA looks up thresholds that name a metric under None.
    keys = {
        n: metric_types.MetricKey(name=n, model_name=model_name, output_name=output_name, example_weighted=None)
        for n in metric_names
    }
    computation = metric_types.MetricComputation(
        keys=list(keys.values()), preprocessors=None, combiner=combiner(model_name, classes, keys)
    )
    return [computation]


class _SumCombiner(beam.CombineFn):
    """Adds up values with `+` and `report(classes)`."""

    def __init__(self, model_name: str, classes: list[str], keys: Keys) -> None:
        self._model_name = model_name
        self._classes = classes
        self._keys = keys

    def merge_accumulators(self, accumulators: Iterable[Any]) -> Any:
        return functools.reduce(lambda a, b: a + b, accumulators, self.create_accumulator())

    def extract_output(self, accumulator: Any) -> dict[metric_types.MetricKey, float]:
        # TFMA requires all promised keys; a class without examples has no value.
        values = {**accumulator.report(self._classes), **self._further(accumulator)}
        return {key: values.get(name, float("nan")) for name, key in self._keys.items()}

    def _further(self, accumulator: Any) -> dict[str, float]:
        """Returns values in addition to the report."""
        return {IMAGES: float(accumulator.images)}


class _MaskCombiner(_SumCombiner):
    def create_accumulator(self) -> MaskSums:
        return MaskSums.zero(len(self._classes))

    def add_input(self, accumulator: MaskSums, element: metric_types.StandardMetricInputs) -> MaskSums:
        sums = element.get_predictions(self._model_name)
        rows = (np.reshape(sums[name], (1, len(self._classes))) for name in ("intersection", "prediction", "truth"))
        return accumulator + MaskSums.of_images(*rows)


class _ClassCombiner(_SumCombiner):
    def create_accumulator(self) -> ClassSums:
        return ClassSums.zero(len(self._classes))

    def add_input(self, accumulator: ClassSums, element: metric_types.StandardMetricInputs) -> ClassSums:
        outputs = element.get_predictions(self._model_name)
        rows = (np.reshape(outputs[name], (1, len(self._classes))) for name in ("prediction", "truth"))
        return accumulator + ClassSums.of_labels(*rows)


class _LabelCombiner(_SumCombiner):
    def create_accumulator(self) -> LabelCounts:
        return LabelCounts.zero(len(self._classes))

    def add_input(self, accumulator: LabelCounts, element: metric_types.StandardMetricInputs) -> LabelCounts:
        outputs = element.get_predictions(self._model_name)
        predicted = int(np.argmax(np.reshape(outputs["probabilities"], -1)))
        true = int(np.reshape(outputs["label"], -1)[0])
        return accumulator + LabelCounts.of_labels([predicted], [true], len(self._classes))

    def _further(self, accumulator: LabelCounts) -> dict[str, float]:
        matrix = accumulator.confusion
        names = confusion_names(len(self._classes))
        cells = dict(zip(names, matrix.ravel().tolist(), strict=True)) if names else {}
        return {IMAGES: float(matrix.sum()), **cells}
