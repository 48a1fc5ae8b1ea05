"""ImageTrainer: a model of images, trained with options instead of code, or by a function of the user."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfx import v1 as tfx
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel

from shardwright.components.image_trainer.executor import CODE_KEY, Executor, OwnExecutor
from shardwright.components.image_trainer.run_fn import RECIPE_KEY, RUN_FN, RUNNING_KEY, WARM_START_KEY, WEIGHTS_KEY
from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.components.runtime.component_arguments import FromConfig, Options, check_arguments, check_json
from shardwright.components.runtime.user_code import check_defines, code_files, import_path, module_source
from shardwright.config import Config, EvaluatorConfig, InputConfig, LoaderConfig, SplitConfig, TrainerConfig
from shardwright.config.canonical import run_options
from shardwright.config.constructors import config_of
from shardwright.config.trainer import BLESSED
from shardwright.config.transform import TransformConfig
from shardwright.errors import UsageError
from shardwright.evaluation.submission import LAYOUTS, layout_of_table
from shardwright.storage import is_remote


class ImageTrainer(tfx.components.Trainer):
    """Trains a model on the examples of ImageTransform, and exports it as a SavedModel that takes encoded images.

    The outputs are those of TFX's Trainer: `model`, and `model_run` with `model.keras`, `history.json`, `training.json`
    and TensorBoard logs. The exported model has the signatures `serving_default` (`image_bytes`, encoded images) and
    `examples` (serialized `tf.train.Example`), and repeats what ingest and transform did with the images.

    Your own code may take part in three ways:

    * `trainer=Trainer(model="mine:build")`: a function that builds the Keras model;
    * `trainer=Trainer(callbacks="mine:callbacks")`: a function that returns Keras callbacks;
    * `run_fn` or `module_file`: a function that trains and exports, as TFX's Trainer calls it. It gets TFX's `FnArgs`;
      `fn_args.custom_config["recipe"]` has the options that differ from their defaults, by the sections of the
      configuration: `["trainer"]["epochs"]`. The model gets the lineage that Pusher needs.

    Example:
        ```python
        trainer = ImageTrainer(
            transform.outputs["transformed_examples"],
            transform.outputs["transform_graph"],
            task="classification",
            trainer=Trainer(epochs=20, batch_size=32),
            loader=Loader(augment=["flip_left_right"]),
        )
        ```

    Args:
        examples: the `transformed_examples` of ImageTransform.
        transform_graph: the `transform_graph` of ImageTransform.
        base_model: a model to begin with, such as BaselineResolver's `model`; needs `Trainer(warm_start="blessed")`.
        task: `segmentation` or `classification`.
        trainer: `Trainer(epochs=20, batch_size=32)`, or a mapping of the keys of `trainer` in YAML: the model, its
            loss and optimizer, devices and checkpoints.
        loader: `Loader(augment=["flip_left_right"])`, or a mapping: augmentations, normalization, order.
        evaluator: `Evaluator(threshold=0.5, flips=["left_right"])`, or a mapping. Only what the exported model has
            counts: `threshold` and `min_area`, by default chosen for each class on `eval`, and `flips`.
        split: that of ImageExampleGen. A split `eval` chooses the best epoch; without one the last epoch is kept.
        transform: that of ImageTransform, for `Trainer(text=["caption"])`.
        input: that of ImageExampleGen. If its masks are a table, `predict` writes the same layout by default.
        base: folder that relative paths start from; by default the working directory.
        run_fn: import path of your function, `package.module.run_fn`. Its code is part of the cache key, with
            all that it imports from your own folders.
        module_file: a Python file with your function `run_fn`, which TFX packs for the task.
        custom_config: further values for your function.
        custom_job: options of TFX's extension for Vertex AI (`ai_platform_enable_vertex`, `ai_platform_vertex_region`,
            `ai_platform_training_args`); the training, also that of your function, then runs in a CustomJob.

    Raises:
        ConfigError: a value is wrong; the message names it as a key of the YAML file.
        UsageError: `run_fn` and `module_file` are both given, or do not name a function; a file of weights cannot be
            read; only one of `base_model` and `warm_start="blessed"` is given.
    """

    @check_arguments
    def __init__(
        self,
        examples: BaseChannel,
        transform_graph: BaseChannel | None = None,
        base_model: BaseChannel | None = None,
        *,
        task: str = "segmentation",
        trainer: Options[TrainerConfig] = None,
        loader: Options[LoaderConfig] = None,
        evaluator: Options[EvaluatorConfig] = None,
        split: Options[SplitConfig] = None,
        transform: Options[TransformConfig] = None,
        input: Options[InputConfig] = None,  # noqa: A002 -- the name of the section
        base: str | None = None,
        run_fn: str | None = None,
        module_file: str | None = None,
        custom_config: Mapping[str, Any] | None = None,
        custom_job: Mapping[str, Any] | None = None,
    ) -> None:
        if run_fn and module_file:
            raise UsageError("ImageTrainer: run_fn and module_file are both given. Give one of them.")
        config = config_of(
            input,
            task=task,
            trainer=trainer,
            loader=loader,
            evaluator=evaluator,
            split=split,
            transform=transform,
            base=base,
        )
        recipe = dataclasses.replace(TrainRecipe.from_config(config), submission=_submission(config))
        if not (run_fn or module_file):
            _check_start(recipe, base_model)
        for option, given in (("custom_config", custom_config), ("custom_job", custom_job)):
            check_json(given, f"ImageTrainer: {option}")
        values = {RECIPE_KEY: recipe.to_dict(), **_run_options(config), **(custom_job or {}), **(custom_config or {})}
        values |= _own_code(run_fn, module_file)
        super().__init__(
            run_fn=None if module_file else (run_fn or RUN_FN).replace(":", "."),
            module_file=module_file,
            examples=examples,
            transform_graph=transform_graph,
            train_args=tfx.proto.TrainArgs(splits=["train"]),
            eval_args=tfx.proto.EvalArgs(splits=[recipe.eval_split or "train"]),
            base_model=base_model,
            custom_config=values,
        )
        if custom_job is not None:
            # The import takes seconds, and only compiling for Vertex AI needs it.
            from shardwright.components.image_trainer.custom_job import Executor as CustomJobExecutor

            self.executor_spec = executor_spec.ExecutorClassSpec(CustomJobExecutor)
        else:
            self.executor_spec = executor_spec.ExecutorClassSpec(OwnExecutor if run_fn or module_file else Executor)

    from_config = FromConfig(__init__)


def _check_start(recipe: TrainRecipe, base_model: BaseChannel | None) -> None:
    """Refuses a model to begin with that would not be used, and one that is missing."""
    blessed = recipe.trainer.warm_start == BLESSED
    if blessed and base_model is None:
        raise UsageError(
            "ImageTrainer: warm_start is 'blessed', and base_model is missing. "
            'Give base_model=BaselineResolver("pushed").outputs["model"].'
        )
    if base_model is not None and not blessed:
        raise UsageError(
            "ImageTrainer: base_model is given, and warm_start is not 'blessed'. "
            'Write trainer=Trainer(warm_start="blessed"), or leave base_model out.'
        )


def _own_code(run_fn: str | None, module_file: str | None) -> dict[str, Any]:
    """Returns the code of the user's function, which must be on this machine; a file on a bucket is not read.

    TFX packs the Python files next to `module_file`, whatever imports them, and they are part of its cache key. It does
    neither with packages and data files.

    Raises:
        UsageError: there is no such module, file or function, or TFX cannot pack it.
    """
    if run_fn:
        option = "ImageTrainer: run_fn"
        path = import_path(run_fn, option)
        code = code_files(path, os.getcwd(), option=option)
        module, _, name = path.partition(":")
        if (source := module_source(module)) is not None:
            check_defines(source, name, option=option)
        return {CODE_KEY: code}
    if module_file is None or is_remote(module_file):
        return {}
    option = "ImageTrainer: module_file"
    if not Path(module_file).is_file():
        raise UsageError(f"{option}: {module_file} is not a file. Give a Python file with a function run_fn.")
    check_defines(module_file, "run_fn", option=option)
    if importlib.util.find_spec("pip") is None:
        fix = "Install pip, for example by `uv pip install pip`, or give run_fn"
        raise UsageError(f"{option}: TFX installs the file with pip, which this environment does not have. {fix}.")
    folder = str(Path(module_file).absolute().parent)
    return {CODE_KEY: code_files(module_file, folder, option=option, any_import=True)}


def _run_options(config: Config) -> dict[str, Any]:
    """Returns accelerator, hosts and checkpoints that are not the default. No path of this machine."""
    running = run_options(config.trainer)
    places = {WARM_START_KEY: config.trainer.warm_start, WEIGHTS_KEY: config.trainer.weights or ""}
    remote = {key: place for key, place in places.items() if is_remote(place)}
    return {**({RUNNING_KEY: running} if running else {}), **remote}


def _submission(config: Config) -> str:
    """Returns the layout of the table of masks, if `predict` can write it."""
    labels = config.input.labels
    if config.task != "segmentation" or labels.path is None or labels.files:
        return ""
    name = layout_of_table(config.resolve(labels.path))
    if name is None:
        return ""
    dialect = LAYOUTS[name].dialect
    form = {"encoding": dialect.runs, "order": dialect.order, "start": dialect.base}
    # `init` spells out the form that it detected.
    return name if labels.rle.given.items() <= form.items() else ""
