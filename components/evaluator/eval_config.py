"""What TFMA computes and what a model must reach, from the configuration."""

from __future__ import annotations

import json
from collections.abc import Sequence

import tensorflow_model_analysis as tfma

from shardwright.config import Config
from shardwright.metrics import headline

SIGNATURE = "examples"
_METRICS_MODULE = "shardwright_components.evaluator.metrics"


def build_eval_config(config: Config, classes: Sequence[str]) -> tfma.EvalConfig:
    """The evaluation of a configuration: metrics per class, a floor, and the change against the last blessed model.

    Args:
        config: its `evaluator` section says what must be reached.
        classes: class names in the order of the model's channels.

    Returns:
        A configuration for TFX's Evaluator. Where there is no baseline TFX leaves the change out of it.
    """
    segmentation = config.task == "segmentation"
    floor = config.evaluator.min_dice if segmentation else config.evaluator.min_accuracy
    threshold = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(lower_bound={"value": floor}),
        change_threshold=tfma.GenericChangeThreshold(
            direction=tfma.MetricDirection.HIGHER_IS_BETTER, absolute={"value": config.evaluator.min_change}
        ),
    )
    metric = tfma.MetricConfig(
        class_name="MaskMetrics" if segmentation else "LabelMetrics",
        module=_METRICS_MODULE,
        config=json.dumps({"classes": list(classes)}, ensure_ascii=False),
    )
    return tfma.EvalConfig(
        # Without a model type TFMA tries to open the model with Keras first, which cannot read a SavedModel.
        model_specs=[tfma.ModelSpec(signature_name=SIGNATURE, model_type=tfma.TF_GENERIC)],
        slicing_specs=[tfma.SlicingSpec()],
        metrics_specs=[tfma.MetricsSpec(metrics=[metric], thresholds={headline(config.task): threshold})],
    )
