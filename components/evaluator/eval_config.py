"""TFMA's configuration of an evaluation, made when the model is known: metrics per class and slice, and the minimum."""

from __future__ import annotations

import json
from collections.abc import Sequence

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2

from shardwright.components.evaluator.slices import SLICES
from shardwright.evaluation.metrics import headline
from shardwright.evaluation.verdict import Limits

SIGNATURE = "examples"
METRICS_MODULE = "shardwright.components.evaluator.tfma_metrics"
_METRICS = {"mean_dice": "MaskMetrics", "accuracy": "LabelMetrics", "mean_f1": "ClassMetrics"}


def build_eval_config(limits: Limits, task: str, classes: Sequence[str], *, multi: bool = False) -> tfma.EvalConfig:
    """Returns TFMA's configuration.

    The minimum refers to the whole split; slices are for information. All other conditions of a blessing follow from
    the answers to single images (`shardwright.evaluation.verdict`), which TFMA's thresholds do not see.

    Args:
        limits: the minimum values.
        task: the task of the model.
        classes: class names in the order of the model's channels.
        multi: whether an image may have several classes.
    """
    name = headline(task, multi=multi)
    threshold = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(lower_bound={"value": limits.least(name, len(classes))})
    )
    # `thresholds` would apply to every slice.
    overall = config_pb2.PerSliceMetricThresholds(
        thresholds=[config_pb2.PerSliceMetricThreshold(slicing_specs=[tfma.SlicingSpec()], threshold=threshold)]
    )
    metric = tfma.MetricConfig(
        class_name=_METRICS[name],
        module=METRICS_MODULE,
        config=json.dumps({"classes": list(classes)}, ensure_ascii=False),
    )
    return tfma.EvalConfig(
        # Without a model type TFMA tries to open the model with Keras first, which cannot read a SavedModel.
        model_specs=[tfma.ModelSpec(signature_name=SIGNATURE, model_type=tfma.TF_GENERIC)],
        slicing_specs=[tfma.SlicingSpec(), *(tfma.SlicingSpec(feature_keys=[feature]) for feature in SLICES)],
        metrics_specs=[tfma.MetricsSpec(metrics=[metric], per_slice_thresholds={name: overall})],
    )
