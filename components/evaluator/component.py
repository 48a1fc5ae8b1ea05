"""ImageEvaluator: TFX's Evaluator with metrics of masks and classes, an optional baseline, and pictures."""

from __future__ import annotations

import dataclasses
import json
import os

import tensorflow_model_analysis as tfma
from tfx import v1 as tfx
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts, standard_component_specs

from shardwright.components.evaluator import executor
from shardwright.components.evaluator.eval_config import METRICS_MODULE
from shardwright.components.runtime.component_arguments import check_arguments
from shardwright.components.runtime.user_code import code_files
from shardwright.config import Config, as_config
from shardwright.config.evaluation import EvaluatorConfig
from shardwright.evaluation.verdict import Limits
from shardwright.storage.fingerprint import canonical_json


class ImageEvaluatorSpec(standard_component_specs.EvaluatorSpec):
    """Channels and parameters of TFX's Evaluator, and the conditions of a blessing."""

    PARAMETERS = {
        **standard_component_specs.EvaluatorSpec.PARAMETERS,
        executor.LIMITS: component_spec.ExecutionParameter(type=str),
    }


def _code_of_metrics(eval_config: tfma.EvalConfig) -> dict[str, str]:
    """Returns the code of the metrics that are the user's own."""
    modules = {metric.module for specs in eval_config.metrics_specs for metric in specs.metrics}
    code: dict[str, str] = {}
    for module in sorted(modules - {"", METRICS_MODULE}):
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
        baseline_model: the `model` of BaselineResolver, which may be empty; without one there is no comparison.
        split: name of the split to evaluate.
        min_dice: minimum of the mean Dice of the classes, 0 to 1; for segmentation.
        min_accuracy: minimum accuracy, 0 to 1; for one class for each image. By default halfway from guessing to always
            right.
        min_f1: minimum of the mean F1 of the classes, 0 to 1; for several classes for each image.
        min_improvement: by how much, with 95 % confidence, the model must be better than the baseline on the same
            images, -1 to 1; -1: it is not compared.
        min_images: minimum number of images; `"auto"`: 50, and as many as make the metric's 95 % interval ±0.1.
        min_per_class: minimum number of images of each class.
        allow_missing_classes: bless a model although the split has no image of some classes.
        beat_trivial: whether the Dice or F1 of every class must be above that of a constant answer.
        eval_config: TFMA's configuration, instead of `min_dice`, `min_accuracy` and `min_f1`. The code of metrics of
            your own is part of the cache key.

    Raises:
        ConfigError: a value is out of range; the message names it as a key of `evaluator` in YAML.
    """

    SPEC_CLASS = ImageEvaluatorSpec
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
        min_accuracy: float | None = EvaluatorConfig.min_accuracy,
        min_f1: float = EvaluatorConfig.min_f1,
        min_improvement: float = EvaluatorConfig.min_improvement,
        min_images: int | str = EvaluatorConfig.min_images,
        min_per_class: int = EvaluatorConfig.min_per_class,
        allow_missing_classes: bool = EvaluatorConfig.allow_missing_classes,
        beat_trivial: bool = EvaluatorConfig.beat_trivial,
        eval_config: tfma.EvalConfig | None = None,
    ) -> None:
        checked = EvaluatorConfig(
            split=split,
            min_dice=min_dice,
            min_accuracy=min_accuracy,
            min_f1=min_f1,
            min_improvement=min_improvement,
            min_images=min_images,
            min_per_class=min_per_class,
            allow_missing_classes=allow_missing_classes,
            beat_trivial=beat_trivial,
        )
        spec = ImageEvaluatorSpec(
            examples=examples,
            model=model,
            baseline_model=baseline_model,
            eval_config=eval_config,
            fairness_indicator_thresholds="null",
            example_splits=json.dumps([split]),
            evaluation=Channel(type=standard_artifacts.ModelEvaluation),
            blessing=Channel(type=standard_artifacts.ModelBlessing),
            **{executor.LIMITS: limits_of(checked)},
        )
        code = _code_of_metrics(eval_config) if eval_config is not None else {}
        if code:
            # An edited metric must be computed again.
            spec.exec_properties[executor.CODE_KEY] = canonical_json(code)
        # The constructor of TFX's Evaluator knows no further parameter.
        super(tfx.components.Evaluator, self).__init__(spec=spec)

    @classmethod
    def from_config(
        cls,
        config: str | Config,
        examples: BaseChannel,
        model: BaseChannel,
        baseline_model: BaseChannel | None = None,
    ) -> ImageEvaluator:
        """Takes the split and the conditions from the section `evaluator` of a configuration.

        Args:
            config: the configuration, or its YAML file.
            examples: see above.
            model: see above.
            baseline_model: see above.
        """
        section = as_config(config).evaluator
        return cls(examples, model, baseline_model, split=section.split, **json.loads(limits_of(section)))


def limits_of(section: EvaluatorConfig) -> str:
    """Returns the conditions of a blessing as canonical JSON, the executor's parameter."""
    conditions = {field.name: getattr(section, field.name) for field in dataclasses.fields(Limits)}
    return json.dumps(conditions, sort_keys=True)
