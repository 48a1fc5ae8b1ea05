"""What goes into the Evaluator and what comes out: as TFX's Evaluator."""

from __future__ import annotations

from collections.abc import Sequence

from tfx import v1 as tfx
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel

from shardwright.components.evaluator import executor
from shardwright.components.evaluator.eval_config import build_eval_config
from shardwright.config import Config


class Evaluator(tfx.components.Evaluator):
    """TFX's Evaluator with an executor that does without a baseline where there is none.

    Args: see `tfx.components.Evaluator`; `baseline_model` is BaselineResolver's output.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)


def evaluator(
    config: Config,
    classes: Sequence[str],
    examples: BaseChannel,
    model: BaseChannel,
    baseline_model: BaseChannel,
    *,
    multi: bool = False,
) -> Evaluator:
    """The Evaluator of a configuration.

    Args:
        config: its `evaluator` section says on which split, and what must be reached.
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
