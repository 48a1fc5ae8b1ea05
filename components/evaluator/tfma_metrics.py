"""TFMA metrics that add up the outputs of the model's `examples` signature over all images.

The signature returns sums per image and class (or probabilities and the label), so no mask and no pixel passes through
Beam. The arithmetic is that of `shardwright.evaluation.metrics`. TFMA imports the classes by the names in `component`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, ClassVar

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


class _Combiner(beam.CombineFn):
    """Adds up what is counted of each image, with `+`, to values with `report(classes)`."""

    sums: ClassVar[Any]

    def __init__(self, model_name: str, classes: list[str], keys: Keys) -> None:
        self._model_name, self._classes, self._keys = model_name, classes, keys

    def create_accumulator(self) -> Any:
        return self.sums.zero(len(self._classes))

    def add_input(self, accumulator: Any, element: metric_types.StandardMetricInputs) -> Any:
        return accumulator + self.count(element.get_predictions(self._model_name))

    def merge_accumulators(self, accumulators: Iterable[Any]) -> Any:
        return functools.reduce(lambda a, b: a + b, accumulators, self.create_accumulator())

    def extract_output(self, accumulator: Any) -> dict[metric_types.MetricKey, float]:
        # TFMA requires all promised keys; a class without examples has no value.
        values = {**accumulator.report(self._classes), **self.further(accumulator)}
        return {key: values.get(name, float("nan")) for name, key in self._keys.items()}

    def count(self, outputs: Any) -> Any:
        """Returns the sums of an image."""
        raise NotImplementedError

    def further(self, accumulator: Any) -> dict[str, float]:
        """Returns values in addition to the report."""
        return {IMAGES: float(accumulator.images)}


class _MaskCombiner(_Combiner):
    sums = MaskSums

    def count(self, outputs: Any) -> MaskSums:
        return MaskSums.of_images(*(np.reshape(outputs[n], (1, -1)) for n in ("intersection", "prediction", "truth")))


class _ClassCombiner(_Combiner):
    sums = ClassSums

    def count(self, outputs: Any) -> ClassSums:
        return ClassSums.of_labels(*(np.reshape(outputs[name], (1, -1)) for name in ("prediction", "truth")))


class _LabelCombiner(_Combiner):
    sums = LabelCounts

    def count(self, outputs: Any) -> LabelCounts:
        predicted, true = np.argmax(np.reshape(outputs["probabilities"], -1)), np.reshape(outputs["label"], -1)[0]
        return LabelCounts.of_labels([int(predicted)], [int(true)], len(self._classes))

    def further(self, accumulator: LabelCounts) -> dict[str, float]:
        cells = zip(confusion_names(len(self._classes)), accumulator.confusion.ravel().tolist(), strict=False)
        return {IMAGES: float(accumulator.confusion.sum()), **dict(cells)}


class _SummedMetrics(metric_types.Metric):
    """All metrics that follow from the same sums: of the whole, and of every class."""

    combiner: ClassVar[type[_Combiner]]
    of_all: ClassVar[tuple[str, ...]]
    of_class: ClassVar[tuple[str, ...]] = ("f1",)

    def __init__(self, classes: list[str], name: str = "") -> None:
        names = [*self.of_all, IMAGES, *(f"{metric}/{c}" for metric in self.of_class for c in classes)]
        names += confusion_names(len(classes)) if self.combiner is _LabelCombiner else []
        make = metric_util.merge_per_key_computations(functools.partial(_computations, self.combiner, names))
        super().__init__(make, name=name or type(self).__name__, classes=classes)


class MaskMetrics(_SummedMetrics):
    """`mean_dice`, `mean_iou`, `mean_f1`, `kaggle_dice`; `dice/`, `iou/` and `f1/<class>` of every class.

    Needs a model whose signature returns `intersection`, `prediction` and `truth`, float32 [N, C], in pixels.
    """

    combiner = _MaskCombiner
    of_all = ("mean_dice", "mean_iou", "mean_f1", "kaggle_dice")
    of_class = ("dice", "iou", "f1")


class LabelMetrics(_SummedMetrics):
    """`accuracy`, `mean_f1`, and `f1/<class>` of every class; the confusion matrix as `confusion/<true>/<predicted>`.

    Needs a model whose signature returns `probabilities`, float32 [N, K], and `label`, int64 [N].
    """

    combiner = _LabelCombiner
    of_all = ("accuracy", "mean_f1")


class ClassMetrics(_SummedMetrics):
    """`mean_f1`, `exact_match`, and `f1/<class>` of every class, where an image may have several.

    Needs a model whose signature returns `prediction` and `truth`, float32 [N, C], 0 or 1.
    """

    combiner = _ClassCombiner
    of_all = ("mean_f1", "exact_match")


for kind in (MaskMetrics, ClassMetrics, LabelMetrics):
    metric_types.register_metric(kind)


def _computations(
    combiner: type[_Combiner],
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
    key = functools.partial(
        metric_types.MetricKey, model_name=model_name, output_name=output_name, example_weighted=None
    )
    keys = {n: key(name=n) for n in metric_names}
    adding = combiner(model_name, classes, keys)
    return [metric_types.MetricComputation(keys=list(keys.values()), preprocessors=None, combiner=adding)]
