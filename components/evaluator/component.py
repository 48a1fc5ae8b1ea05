"""ImageEvaluator: TFX's Evaluator with metrics of masks and classes, an optional baseline, and pictures."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2
from tfx import v1 as tfx
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel

from shardwright.components.evaluator import executor
from shardwright.components.evaluator.slices import SLICES
from shardwright.components.runtime.arguments import check_arguments
from shardwright.components.runtime.user_code import code_files
from shardwright.config import Config, as_config
from shardwright.config.evaluation import EvaluatorConfig
from shardwright.evaluation.metrics import headline
from shardwright.fingerprint import canonical_json

SIGNATURE = "examples"
_METRICS = {"mean_dice": "MaskMetrics", "accuracy": "LabelMetrics", "mean_f1": "ClassMetrics"}


def build_eval_config(
    limits: EvaluatorConfig, task: str | None, classes: Sequence[str], *, multi: bool = False
) -> tfma.EvalConfig:
    """Returns TFMA's configuration: metrics per class and slice, a minimum, and a minimum change from the baseline.

    The minimum and the change from the last blessed model refer to the whole split; slices are for information.

    Args:
        limits: the minimum values.
        task: the task of the model; `None`: the executor keeps the metrics that fit the model.
        classes: class names in the order of the model's channels; if empty, the executor takes those of the model.
        multi: whether an image may have several classes.

    Returns:
        A configuration for TFX's Evaluator. Without a baseline TFX removes the change from it.
    """
    minimum = {"mean_dice": limits.min_dice, "accuracy": limits.min_accuracy, "mean_f1": limits.min_f1}
    names = list(minimum) if task is None else [headline(task, multi=multi)]
    return tfma.EvalConfig(
        # Without a model type TFMA tries to open the model with Keras first, which cannot read a SavedModel.
        model_specs=[tfma.ModelSpec(signature_name=SIGNATURE, model_type=tfma.TF_GENERIC)],
        slicing_specs=[tfma.SlicingSpec(), *(tfma.SlicingSpec(feature_keys=[feature]) for feature in SLICES)],
        metrics_specs=[_metrics(name, minimum[name], limits.min_improvement, classes) for name in names],
    )


def _metrics(name: str, minimum: float, min_improvement: float, classes: Sequence[str]) -> tfma.MetricsSpec:
    threshold = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(lower_bound={"value": minimum}),
        change_threshold=tfma.GenericChangeThreshold(
            direction=tfma.MetricDirection.HIGHER_IS_BETTER, absolute={"value": min_improvement}
        ),
    )
    # `thresholds` would apply to every slice.
    overall = config_pb2.PerSliceMetricThresholds(
        thresholds=[config_pb2.PerSliceMetricThreshold(slicing_specs=[tfma.SlicingSpec()], threshold=threshold)]
    )
    metric = tfma.MetricConfig(
        class_name=_METRICS[name],
        module=executor.METRICS_MODULE,
        config=json.dumps({"classes": list(classes)}, ensure_ascii=False),
    )
    return tfma.MetricsSpec(metrics=[metric], per_slice_thresholds={name: overall})


def _code_of_metrics(eval_config: tfma.EvalConfig) -> dict[str, str]:
    """Returns the code of the metrics that are the user's own."""
    modules = {metric.module for specs in eval_config.metrics_specs for metric in specs.metrics}
    code: dict[str, str] = {}
    for module in sorted(modules - {"", executor.METRICS_MODULE}):
        code |= code_files(f"{module}:", os.getcwd(), option="ImageEvaluator: eval_config")
    return code


class ImageEvaluator(tfx.components.Evaluator):
    """Measures a model of ImageTrainer, compares it with the last blessed one, and blesses it or not.

    Segmentation: Dice and intersection over union for each class, pixels that are ignored left out. Classification:
    accuracy, or with several classes for each image their mean F1. The outputs are those of TFX's Evaluator:
    `evaluation` (TFMA's files, `summary.json`, pictures of the best and worst predictions, `lineage.json`) and
    `blessing`.

    Example:
        ```python
        baseline = BaselineResolver("pushed")
        evaluator = ImageEvaluator(
            example_gen.outputs["examples"], trainer.outputs["model"], baseline.outputs["model"], min_dice=0.6
        )
        ```

    Args:
        examples: the `examples` of ImageExampleGen, not transformed: the model prepares the images as in serving.
        model: the `model` of ImageTrainer.
        baseline_model: the `model` of BaselineResolver, which may be empty; without one only the minimum counts.
        split: name of the split to evaluate.
        min_dice: minimum of the mean Dice of the classes, 0 to 1; for segmentation.
        min_accuracy: minimum accuracy, 0 to 1; for one class for each image.
        min_f1: minimum of the mean F1 of the classes, 0 to 1; for several classes for each image.
        min_improvement: by how much the model must be better than the baseline, -1 to 1.
        eval_config: TFMA's configuration, instead of the minimum values. The code of metrics of your own is part of the
            cache key.

    Raises:
        ConfigError: a value is out of range; the message names it as a key of `evaluator` in YAML.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @check_arguments
    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        baseline_model: BaseChannel | None = None,
        *,
        split: str = EvaluatorConfig.split,
        min_dice: float = EvaluatorConfig.min_dice,
        min_accuracy: float = EvaluatorConfig.min_accuracy,
        min_f1: float = EvaluatorConfig.min_f1,
        min_improvement: float = EvaluatorConfig.min_improvement,
        eval_config: tfma.EvalConfig | None = None,
    ) -> None:
        limits = EvaluatorConfig(split, min_dice, min_accuracy, min_f1, min_improvement)
        super().__init__(
            examples=examples,
            model=model,
            baseline_model=baseline_model,
            eval_config=eval_config or build_eval_config(limits, None, ()),
            example_splits=[split],
        )
        code = _code_of_metrics(eval_config) if eval_config is not None else {}
        if code:
            # TFX has no parameter for it, and an edited metric must be computed again.
            self.spec.exec_properties[executor.CODE_KEY] = canonical_json(code)

    @classmethod
    def from_config(
        cls,
        config: str | Config,
        examples: BaseChannel,
        model: BaseChannel,
        baseline_model: BaseChannel | None = None,
        *,
        classes: Sequence[str] = (),
        multi: bool | None = None,
    ) -> ImageEvaluator:
        """Takes the split and the minimum values from the section `evaluator` of a configuration.

        Args:
            config: the configuration, or its YAML file.
            examples: see above.
            model: see above.
            baseline_model: see above.
            classes: class names in the order of the model's outputs; with `multi`.
            multi: whether an image may have several classes. `None`: the executor looks both up in the model.
        """
        loaded = as_config(config)
        if multi is None:
            eval_config = build_eval_config(loaded.evaluator, None, ())
        else:
            eval_config = build_eval_config(loaded.evaluator, loaded.task, classes, multi=multi)
        return cls(examples, model, baseline_model, split=loaded.evaluator.split, eval_config=eval_config)
