"""The Trainer of the pipeline: TFX's own, told what to train by a recipe without paths."""

from __future__ import annotations

from tfx import v1 as tfx
from tfx.v1.types import BaseNode

from shardwright.config import Config
from shardwright_components.image_trainer.run_fn import RECIPE_KEY
from shardwright_components.image_trainer.spec import Recipe

_RUN_FN = "shardwright_components.image_trainer.run_fn.run_fn"


def trainer(config: Config, transform: BaseNode) -> tfx.components.Trainer:
    """TFX's Trainer for a configuration.

    Args:
        config: its `trainer`, `loader` and `evaluator.threshold` make the recipe, which is all that TFX's cache sees.
        transform: the ImageTransform whose examples are learned from; its graph ties the model to the pixels in the
            lineage.

    Returns:
        A component with outputs `model` and `model_run`. Its `model_run` holds model.keras, history.json, spec.json and
        TensorBoard logs.
    """
    recipe = Recipe.from_config(config)
    held_out = [recipe.eval_split] if recipe.eval_split else ["train"]
    return tfx.components.Trainer(
        run_fn=_RUN_FN,
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=held_out),
        custom_config={RECIPE_KEY: recipe.to_dict()},
    )
