"""The Trainer of the pipeline: TFX's own, configured by a recipe without paths."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tfx import v1 as tfx
from tfx.v1.types import BaseNode

from shardwright.components.image_trainer.run_fn import RECIPE_KEY, RUNNING_KEY, WARM_START_KEY, WEIGHTS_KEY
from shardwright.components.image_trainer.spec import AS_USUAL, RunOptions, TrainRecipe
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
        config: `trainer`, `loader` and `evaluator.threshold` make the recipe, the cache key of the component.
        transform: the ImageTransform with the training examples; its graph ties the model to the pixels in the lineage.
        baseline: the BaselineResolver with the initial weights of `trainer.warm_start: blessed`.
        custom_job: options of TFX's extension for Vertex AI; the training then runs in a job on another machine.

    Returns:
        A component with the outputs `model` and `model_run`. `model_run` contains model.keras, history.json, spec.json
        and TensorBoard logs.
    """
    recipe = dataclasses.replace(TrainRecipe.from_config(config), submission=_submission(config))
    held_out = [recipe.eval_split] if recipe.eval_split else ["train"]
    trainer = tfx.components.Trainer
    if custom_job is not None:
        # The import takes seconds, and only compiling for Vertex AI needs it.
        from shardwright.components.image_trainer.custom_job import Trainer as CustomJobTrainer

        trainer = CustomJobTrainer
    return trainer(
        run_fn=_RUN_FN,
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=held_out),
        # Its artifact, and so the cache key, changes whenever another model is blessed.
        base_model=baseline.outputs["model"] if baseline and recipe.warm_start == BLESSED else None,
        custom_config={RECIPE_KEY: recipe.to_dict(), **_run_options(config), **(custom_job or {})},
    )


def _run_options(config: Config) -> dict[str, Any]:
    """Returns accelerator, hosts and checkpoints that are not the default. No path of this machine."""
    running, start = RunOptions.from_config(config), config.trainer.warm_start
    options: dict[str, Any] = {} if running == AS_USUAL else {RUNNING_KEY: running.to_dict()}
    places = {WARM_START_KEY: start, WEIGHTS_KEY: config.trainer.weights or ""}
    return {**options, **{key: place for key, place in places.items() if is_remote(place)}}


def _submission(config: Config) -> str:
    """Returns the layout of the table of masks, if `predict` can write it."""
    labels = config.input.labels
    if config.task != "segmentation" or labels.path is None or labels.code:
        return ""
    return layout_of_table(config.resolve(labels.path)) or ""
