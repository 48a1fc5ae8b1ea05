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
from shardwright.components.runtime.component_arguments import FromConfig, Options, check_arguments
from shardwright.components.runtime.user_code import code_files
from shardwright.config.constructors import as_section
from shardwright.config.evaluation import EvaluatorConfig
from shardwright.evaluation.verdict import Limits
from shardwright.storage.fingerprint import canonical_json


class ImageEvaluatorSpec(standard_component_specs.EvaluatorSpec):
    """Channels and parameters of TFX's Evaluator, and the conditions of a blessing."""

    PARAMETERS = {
        **standard_component_specs.EvaluatorSpec.PARAMETERS,
        executor.LIMITS: component_spec.ExecutionParameter(type=str),
    }


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
            example_gen.outputs["examples"],
            trainer.outputs["model"],
            baseline.outputs["model"],
            evaluator=Evaluator(min_dice=0.6),
        )
        ```

    Args:
        examples: the `examples` of ImageExampleGen, not transformed: the model prepares the images as in serving.
        model: the `model` of ImageTrainer.
        baseline_model: the `model` of BaselineResolver, which may be empty; without one there is no comparison.
        evaluator: `Evaluator(split="test", min_dice=0.6)`, or a mapping: the split to evaluate, and the conditions of a
            blessing.
        eval_config: TFMA's configuration, in place of the metrics and of `min_dice`, `min_accuracy` and `min_f1`. The
            code of metrics of your own is part of the cache key.

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
        evaluator: Options[EvaluatorConfig] = None,
        eval_config: tfma.EvalConfig | None = None,
    ) -> None:
        section = as_section(EvaluatorConfig, evaluator, "evaluator")
        spec = ImageEvaluatorSpec(
            examples=examples,
            model=model,
            baseline_model=baseline_model,
            eval_config=eval_config,
            fairness_indicator_thresholds="null",
            example_splits=json.dumps([section.split]),
            evaluation=Channel(type=standard_artifacts.ModelEvaluation),
            blessing=Channel(type=standard_artifacts.ModelBlessing),
            **{executor.LIMITS: limits_of(section)},
        )
        metrics = () if eval_config is None else (m for specs in eval_config.metrics_specs for m in specs.metrics)
        code: dict[str, str] = {}
        for module in sorted({metric.module for metric in metrics} - {"", METRICS_MODULE}):
            code |= code_files(f"{module}:", os.getcwd(), option="ImageEvaluator: eval_config")
        if code:
            # An edited metric must be computed again.
            spec.exec_properties[executor.CODE_KEY] = canonical_json(code)
        # The constructor of TFX's Evaluator knows no further parameter.
        super(tfx.components.Evaluator, self).__init__(spec=spec)

    from_config = FromConfig(__init__)


def limits_of(section: EvaluatorConfig) -> str:
    """Returns the conditions of a blessing as canonical JSON, the executor's parameter."""
    conditions = {field.name: getattr(section, field.name) for field in dataclasses.fields(Limits)}
    return json.dumps(conditions, sort_keys=True)
