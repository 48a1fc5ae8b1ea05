"""The Evaluator, with the inputs and outputs of TFX's, and TFMA's configuration: metrics, slices and thresholds."""

from __future__ import annotations

import json
from collections.abc import Sequence

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2
from tfx import v1 as tfx
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel

from shardwright.components.evaluator import executor
from shardwright.components.evaluator.slices import SLICES
from shardwright.config import Config
from shardwright.evaluation.metrics import headline

SIGNATURE = "examples"
_METRICS_MODULE = "shardwright.components.evaluator.metrics"


def build_eval_config(config: Config, classes: Sequence[str], *, multi: bool = False) -> tfma.EvalConfig:
    """Returns TFMA's configuration: metrics per class and slice, a minimum, and a minimum change from the baseline.

    The minimum and the change from the last blessed model refer to the whole split; slices are for information.

    Args:
        config: its `evaluator` section has the minimum values.
        classes: class names in the order of the model's channels.
        multi: whether an image may have several classes.

    Returns:
        A configuration for TFX's Evaluator. Without a baseline TFX removes the change from it.
    """
    limits = config.evaluator
    name = headline(config.task, multi=multi)
    metrics, floor = {
        "mean_dice": ("MaskMetrics", limits.min_dice),
        "accuracy": ("LabelMetrics", limits.min_accuracy),
        "mean_f1": ("ClassMetrics", limits.min_f1),
    }[name]
    threshold = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(lower_bound={"value": floor}),
        change_threshold=tfma.GenericChangeThreshold(
            direction=tfma.MetricDirection.HIGHER_IS_BETTER, absolute={"value": config.evaluator.min_change}
        ),
    )
    # `thresholds` would apply to every slice.
    overall = config_pb2.PerSliceMetricThresholds(
        thresholds=[config_pb2.PerSliceMetricThreshold(slicing_specs=[tfma.SlicingSpec()], threshold=threshold)]
    )
    metric = tfma.MetricConfig(
        class_name=metrics,
        module=_METRICS_MODULE,
        config=json.dumps({"classes": list(classes)}, ensure_ascii=False),
    )
    return tfma.EvalConfig(
        # Without a model type TFMA tries to open the model with Keras first, which cannot read a SavedModel.
        model_specs=[tfma.ModelSpec(signature_name=SIGNATURE, model_type=tfma.TF_GENERIC)],
        slicing_specs=[tfma.SlicingSpec(), *(tfma.SlicingSpec(feature_keys=[feature]) for feature in SLICES)],
        metrics_specs=[tfma.MetricsSpec(metrics=[metric], per_slice_thresholds={name: overall})],
    )


class Evaluator(tfx.components.Evaluator):
    """TFX's Evaluator with an executor that accepts a missing baseline.

    Args: see `tfx.components.Evaluator`; `baseline_model` is BaselineResolver's output.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)


def image_evaluator(
    config: Config,
    classes: Sequence[str],
    examples: BaseChannel,
    model: BaseChannel,
    baseline_model: BaseChannel,
    *,
    multi: bool = False,
) -> Evaluator:
    """Returns the Evaluator of a configuration.

    Args:
        config: its `evaluator` section has the split and the minimum values.
        classes: class names in the order of the model's outputs.
        examples: ImageExampleGen's, not transformed: the model prepares them as in serving.
        model: the Trainer's `model`.
        baseline_model: BaselineResolver's `model`.
        multi: whether an image may have several classes.
    """
    return Evaluator(
        examples=examples,
        model=model,
        baseline_model=baseline_model,
        eval_config=build_eval_config(config, classes, multi=multi),
        example_splits=[config.evaluator.split],
    )
