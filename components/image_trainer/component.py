"""ImageTrainer: a model of images, trained with options instead of code, or by a function of the user."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from tfx import v1 as tfx
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel

from shardwright.components.image_trainer.executor import CODE_KEY, Executor, OwnExecutor
from shardwright.components.image_trainer.run_fn import RECIPE_KEY, RUN_FN, RUNNING_KEY, WARM_START_KEY, WEIGHTS_KEY
from shardwright.components.image_trainer.spec import AS_USUAL, RunOptions, TrainRecipe
from shardwright.components.runtime.component_arguments import check_arguments, check_json
from shardwright.components.runtime.user_code import check_defines, code_files, import_path, module_source
from shardwright.config import Config, as_config
from shardwright.config.inline import inline_config
from shardwright.config.trainer import BLESSED
from shardwright.errors import UsageError
from shardwright.evaluation.submission import LAYOUTS, layout_of_table
from shardwright.storage import is_remote

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TrainerOptions(TypedDict, total=False):
    """The keys of `trainer` in YAML."""

    model: str
    epochs: int | None
    batch_size: int
    learning_rate: float | None
    base_filters: int
    seed: int
    loss: str
    label_smoothing: float
    outputs: str
    class_weights: str
    encoder: str
    weights: str | None
    encoder_rate: float
    encoder_trainable_from: int
    optimizer: str
    weight_decay: float | None
    decayed: list[str] | tuple[str, ...]
    clip_norm: float
    rate_rule: str
    schedule: str
    warm_up: float
    patience: int | None
    precision: str
    warm_start: str
    text: list[str] | tuple[str, ...]
    ema: float | None
    accumulate: int
    callbacks: str | None
    evaluate_every: int
    log_every: int
    profile: Mapping[str, list[int]]
    accelerator: str
    hosts: int
    checkpoint: Mapping[str, int]


class ImageTrainer(tfx.components.Trainer):
    """Trains a model on the examples of ImageTransform, and exports it as a SavedModel that takes encoded images.

    The outputs are those of TFX's Trainer: `model`, and `model_run` with `model.keras`, `history.json`, `training.json`
    and TensorBoard logs. The exported model has the signatures `serving_default` (`image_bytes`, encoded images) and
    `examples` (serialized `tf.train.Example`), and repeats what ingest and transform did with the images.

    Your own code may take part in three ways:

    * `model="mine:build"`: a function that builds the Keras model;
    * `callbacks="mine:callbacks"`: a function that returns Keras callbacks;
    * `run_fn` or `module_file`: a function that trains and exports, as TFX's Trainer calls it. It gets TFX's `FnArgs`;
      `fn_args.custom_config["recipe"]` has the options below that differ from their defaults, by the sections of the
      configuration: `["trainer"]["epochs"]`. The model gets the lineage that Pusher needs.

    Example:
        ```python
        trainer = ImageTrainer(
            transform.outputs["transformed_examples"],
            transform.outputs["transform_graph"],
            task="classification",
            epochs=20,
            batch_size=32,
            loader={"augment": ["flip_left_right"]},
        )
        ```

    Args:
        examples: the `transformed_examples` of ImageTransform.
        transform_graph: the `transform_graph` of ImageTransform.
        base_model: a model to begin with, such as BaselineResolver's `model`; needs `warm_start="blessed"`.
        task: `segmentation` or `classification`.
        eval_split: whether a split `eval` chooses the best epoch; without one the last epoch is kept.
        loader: keys of `loader` in YAML: `normalize` ("imagenet_torch"), `augment` (["auto"]), `order` ("fast"),
            `shuffle_buffer` (1024 images).
        evaluator: keys of `evaluator` in YAML that the exported model has: `threshold` and `min_area` ("tuned": chosen
            for each class on `eval`), `flips` (none).
        run_fn: import path of your function, `package.module.run_fn`. Its code is part of the cache key, with
            all that it imports from your own folders.
        module_file: a Python file with your function `run_fn`, which TFX packs for the task.
        custom_config: further values for your function.
        recipe: the options of `trainer`, `loader` and `evaluator` together, instead of those.
        run_options: accelerator, hosts and checkpoints, with `recipe`.
        custom_job: options of TFX's extension for Vertex AI (`ai_platform_enable_vertex`, `ai_platform_vertex_region`,
            `ai_platform_training_args`); the training, also that of your function, then runs in a CustomJob.
        **trainer: keys of `trainer` in YAML, with the same defaults: `model` ("auto"), `epochs` (from the number of
            images), `batch_size` (16 images over all devices), `learning_rate` (from the model), `base_filters` (16),
            `seed` (1). Loss: `loss` ("auto"), `label_smoothing` (0.0), `class_weights` ("auto"), `outputs` ("auto").
            Encoder: `encoder` ("compact"), `weights` (file of the encoder's weights), `encoder_rate` (1.0),
            `encoder_trainable_from` (1). Optimizer: `optimizer` ("adamw"), `weight_decay` (0.001), `decayed`
            (patterns, `["*kernel"]`), `clip_norm` (1.0), `rate_rule` ("none"), `schedule` ("cosine"), `warm_up` (0.05
            of the steps), `accumulate` (1 batch for each update), `ema` (none), `patience` (none). Devices: `precision`
            ("float32"), `accelerator` ("auto"), `hosts` (1). Others: `warm_start` ("none"), `text` (columns of
            ImageTransform's `text`), `callbacks` (import path), `evaluate_every` (1 epoch), `log_every` (50 steps),
            `profile` (`{"steps": [100, 110]}`), `checkpoint` (`{"every": 500, "keep": 2}`).

    Raises:
        ConfigError: a value is wrong; the message names it as a key of the YAML file.
        UsageError: `run_fn` and `module_file` are both given, or do not name a function; a file of weights cannot be
            read; only one of `base_model` and `warm_start="blessed"` is given.
    """

    @partial(
        check_arguments,
        whole="recipe",
        allowed=("run_options", "custom_job", "custom_config", "run_fn", "module_file"),
    )
    def __init__(
        self,
        examples: BaseChannel,
        transform_graph: BaseChannel | None = None,
        base_model: BaseChannel | None = None,
        *,
        task: str = "segmentation",
        eval_split: bool = True,
        loader: Mapping[str, Any] | None = None,
        evaluator: Mapping[str, Any] | None = None,
        run_fn: str | None = None,
        module_file: str | None = None,
        custom_config: Mapping[str, Any] | None = None,
        recipe: TrainRecipe | None = None,
        run_options: Mapping[str, Any] | None = None,
        custom_job: Mapping[str, Any] | None = None,
        **trainer: Unpack[TrainerOptions],
    ) -> None:
        if run_fn and module_file:
            raise UsageError("ImageTrainer: run_fn and module_file are both given. Give one of them.")
        if recipe is None:
            config = _config(task, loader, evaluator, trainer)
            recipe, run_options = TrainRecipe.from_config(config), _run_options(config)
            recipe = recipe if eval_split else dataclasses.replace(recipe, eval_split="")
        if not (run_fn or module_file):
            _check_start(recipe, base_model)
        for option, given in (("custom_config", custom_config), ("custom_job", custom_job)):
            check_json(given, f"ImageTrainer: {option}")
        values = {RECIPE_KEY: recipe.to_dict(), **(run_options or {}), **(custom_job or {}), **(custom_config or {})}
        if run_fn:
            values |= _source(run_fn)
        if module_file:
            values |= _module_source(module_file)
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

    @classmethod
    def from_config(
        cls,
        config: str | Config,
        examples: BaseChannel,
        transform_graph: BaseChannel,
        base_model: BaseChannel | None = None,
        *,
        custom_job: Mapping[str, Any] | None = None,
    ) -> ImageTrainer:
        """Takes the options from the sections `trainer`, `loader` and `evaluator` of a configuration.

        Args:
            config: the configuration, or its YAML file.
            examples: see above.
            transform_graph: see above.
            base_model: used where `trainer.warm_start` is `blessed`, and needed there.
            custom_job: options of TFX's extension for Vertex AI; the training then runs in a job on another machine.
        """
        loaded = as_config(config)
        recipe = dataclasses.replace(TrainRecipe.from_config(loaded), submission=_submission(loaded))
        return cls(
            examples,
            transform_graph,
            # Its artifact, and so the cache key, changes whenever another model is blessed.
            base_model if recipe.trainer.warm_start == BLESSED else None,
            recipe=recipe,
            run_options=_run_options(loaded),
            custom_job=custom_job,
        )


def _config(
    task: str, loader: Mapping[str, Any] | None, evaluator: Mapping[str, Any] | None, trainer: Mapping[str, Any]
) -> Config:
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in trainer.items()}
    given = {name: value for name, value in options.items() if value is not None}
    # The columns are those of ImageTransform, which checks their options.
    text = given.get("text", ())
    columns = text if isinstance(text, list) else [text]
    transform: dict[str, Any] = {"text": {column: {} for column in columns if isinstance(column, str)}}
    return inline_config(
        ".", task=task, transform=transform, trainer=given, loader=loader or {}, evaluator=evaluator or {}
    )


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
            'Write warm_start="blessed", or leave base_model out.'
        )


def _source(run_fn: str) -> dict[str, Any]:
    """Returns the code of a function, which must be on this machine, like that of `trainer.model`.

    Raises:
        UsageError: there is no such module or function.
    """
    option = "ImageTrainer: run_fn"
    path = import_path(run_fn, option)
    code = code_files(path, os.getcwd(), option=option)
    module, _, name = path.partition(":")
    file = module_source(module)
    if file is not None:
        check_defines(file, name, option=option)
    return {CODE_KEY: code}


def _module_source(file: str) -> dict[str, Any]:
    """Returns the code of a file with the function that TFX calls. A file on a bucket is not read.

    TFX packs the Python files next to it, whatever imports them, and they are part of its cache key. It does neither
    with packages and data files.

    Raises:
        UsageError: there is no such file or function, or TFX cannot pack it.
    """
    if is_remote(file):
        return {}
    option = "ImageTrainer: module_file"
    if not Path(file).is_file():
        raise UsageError(f"{option}: {file} is not a file. Give a Python file with a function run_fn.")
    check_defines(file, "run_fn", option=option)
    if importlib.util.find_spec("pip") is None:
        fix = "Install pip, for example by `uv pip install pip`, or give run_fn"
        raise UsageError(f"{option}: TFX installs the file with pip, which this environment does not have. {fix}.")
    return {CODE_KEY: code_files(file, str(Path(file).absolute().parent), option=option, any_import=True)}


def _run_options(config: Config) -> dict[str, Any]:
    """Returns accelerator, hosts and checkpoints that are not the default. No path of this machine."""
    running, start = RunOptions.from_config(config), config.trainer.warm_start
    options: dict[str, Any] = {} if running == AS_USUAL else {RUNNING_KEY: running.to_dict()}
    places = {WARM_START_KEY: start, WEIGHTS_KEY: config.trainer.weights or ""}
    return {**options, **{key: place for key, place in places.items() if is_remote(place)}}


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
