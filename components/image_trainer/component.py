"""The Trainer of the pipeline: TFX's own, told what to train by a recipe without paths."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tfx import v1 as tfx
from tfx.v1.types import BaseNode

from shardwright.components.image_trainer.run_fn import RECIPE_KEY, RUNNING_KEY, WARM_START_KEY, WEIGHTS_KEY
from shardwright.components.image_trainer.spec import AS_USUAL, Recipe, RunOptions
from shardwright.config import Config
from shardwright.config.trainer import BLESSED
from shardwright.evaluation.submission import layout_of_table
from shardwright.storage import is_remote

_RUN_FN = "shardwright.components.image_trainer.run_fn.run_fn"


def image_trainer(
    config: Config,
    transform: BaseNode,
    *,
    baseline: BaseNode | None = None,
    custom_job: Mapping[str, Any] | None = None,
) -> tfx.components.Trainer:
    """TFX's Trainer for a configuration.

    Args:
        config: its `trainer`, `loader` and `evaluator.threshold` make the recipe, which is all that TFX's cache sees.
        transform: the ImageTransform whose examples are learned from; its graph ties the model to the pixels in the
            lineage.
        baseline: the BaselineResolver whose model `trainer.warm_start: blessed` begins with.
        custom_job: what TFX's extension for Vertex AI is told; then a job there trains, on a machine of its own.

    Returns:
        A component with outputs `model` and `model_run`. Its `model_run` holds model.keras, history.json, spec.json and
        TensorBoard logs.
    """
    recipe = dataclasses.replace(Recipe.from_config(config), submission=_submission(config))
    held_out = [recipe.eval_split] if recipe.eval_split else ["train"]
    kind = tfx.components.Trainer
    if custom_job is not None:
        # Not above: it takes seconds, and nothing but compiling for Vertex AI needs it.
        from shardwright.components.image_trainer.custom_job import Trainer as CustomJobTrainer

        kind = CustomJobTrainer
    return kind(
        run_fn=_RUN_FN,
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=held_out),
        # Its artifact is another one whenever another model was blessed, and so is the cache key.
        base_model=baseline.outputs["model"] if baseline and recipe.warm_start == BLESSED else None,
        custom_config={RECIPE_KEY: recipe.to_dict(), **_how(config), **(custom_job or {})},
    )


def _how(config: Config) -> dict[str, Any]:
    """How it runs, where that is not the default: accelerator, hosts, checkpoints. No path of this machine."""
    running, start = RunOptions.from_config(config), config.trainer.warm_start
    told: dict[str, Any] = {} if running == AS_USUAL else {RUNNING_KEY: running.to_dict()}
    places = {WARM_START_KEY: start, WEIGHTS_KEY: config.trainer.weights or ""}
    return {**told, **{key: place for key, place in places.items() if is_remote(place)}}


def _submission(config: Config) -> str:
    """The layout of the table of masks that is learned from, where it is one that `predict` can write."""
    labels = config.input.labels
    if config.task != "segmentation" or labels.path is None or labels.code:
        return ""
    return layout_of_table(config.resolve(labels.path)) or ""
