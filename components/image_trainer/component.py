"""The Trainer of the pipeline: TFX's own, told what to train by a recipe without paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import v1 as tfx
from tfx.v1.types import BaseNode

from shardwright.config import Config
from shardwright_components.image_trainer.run_fn import RECIPE_KEY
from shardwright_components.image_trainer.spec import Recipe

_RUN_FN = "shardwright_components.image_trainer.run_fn.run_fn"


def trainer(
    config: Config, transform: BaseNode, *, custom_job: Mapping[str, Any] | None = None
) -> tfx.components.Trainer:
    """TFX's Trainer for a configuration.

    Args:
        config: its `trainer`, `loader` and `evaluator.threshold` make the recipe, which is all that TFX's cache sees.
        transform: the ImageTransform whose examples are learned from; its graph ties the model to the pixels in the
            lineage.
        custom_job: what TFX's extension for Vertex AI is told; then a job there trains, on a machine of its own.

    Returns:
        A component with outputs `model` and `model_run`. Its `model_run` holds model.keras, history.json, spec.json and
        TensorBoard logs.
    """
    recipe = Recipe.from_config(config)
    held_out = [recipe.eval_split] if recipe.eval_split else ["train"]
    kind = tfx.components.Trainer
    if custom_job is not None:
        # Not above: it takes seconds, and nothing but compiling for Vertex AI needs it.
        from tfx.extensions.google_cloud_ai_platform.trainer.component import Trainer as VertexTrainer

        kind = VertexTrainer
    return kind(
        run_fn=_RUN_FN,
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=held_out),
        custom_config={RECIPE_KEY: recipe.to_dict(), **(custom_job or {})},
    )
