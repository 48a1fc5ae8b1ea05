"""Predictor: a table of predictions for a folder of images."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from shardwright.components.predictor import executor
from shardwright.components.runtime.component_arguments import FromConfig, Options, check_arguments, required
from shardwright.config.constructors import config_of
from shardwright.config.input import InputConfig
from shardwright.config.options import at_least
from shardwright.errors import ConfigError
from shardwright.evaluation.submission import LAYOUTS
from shardwright.storage.fingerprint import canonical_json


class PredictorSpec(component_spec.ComponentSpec):
    """Channels and parameters of Predictor."""

    PARAMETERS = {
        executor.FINGERPRINT: component_spec.ExecutionParameter(type=str),
        executor.OPTIONS: component_spec.ExecutionParameter(type=str),
    }
    INPUTS = {executor.MODEL: component_spec.ChannelParameter(type=standard_artifacts.Model)}
    OUTPUTS = {executor.PREDICTIONS: component_spec.ChannelParameter(type=simple_artifacts.File)}


class Predictor(base_beam_component.BaseBeamComponent):
    """Predicts a folder of images with a model of ImageTrainer, into one table.

    The output `predictions` has two files. `predictions.csv` has masks in a published layout such as `image,class,rle`,
    or a label with the probability of each class. `predictions.json` has the number of images, and the images that
    were left out because they cannot be read. Beam's workers predict parts of the folder. TFX's BulkInferrer predicts
    examples instead, into TFRecords.

    Example:
        ```python
        predictor = Predictor(trainer.outputs["model"], Input("data/test_images"))
        ```

    Args:
        model: the `model` of ImageTrainer or BaselineResolver.
        input: `Input("data/test_images")`, or a mapping; only its images count. Their content is hashed when the
            component is constructed, and is part of the cache key.
        dialect: layout of the table of masks, see `shardwright.evaluation.submission`; by default that of the table the
            model was trained from.
        batch_size: images for each call of the model.
        base: folder that relative paths start from; by default the working directory.

    Raises:
        ConfigError: the layout is not known, `batch_size` is less than 1, or an option has a wrong type.
        UsageError: the images do not exist.
    """

    SPEC_CLASS = PredictorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @check_arguments
    def __init__(
        self,
        model: BaseChannel,
        input: Options[InputConfig] = None,  # noqa: A002 -- the name of the section
        *,
        dialect: str | None = None,
        batch_size: int = 16,
        base: str | None = None,
    ) -> None:
        at_least("Predictor: batch_size", batch_size, 1)
        required("Predictor", "input", input, 'Input("images")')
        config = config_of(input, base=base)
        images = config.resolve(config.input.images)
        if dialect is not None and dialect not in LAYOUTS:
            raise ConfigError("Predictor: dialect", f"{dialect!r} is not known", f"Use one of: {', '.join(LAYOUTS)}.")
        options: dict[str, Any] = {"images": images, "batch_size": batch_size}
        if dialect is not None:
            options["dialect"] = dialect
        super().__init__(
            PredictorSpec(
                **{
                    executor.FINGERPRINT: executor.fingerprint_of(images),
                    executor.OPTIONS: canonical_json(options),
                    executor.MODEL: model,
                    executor.PREDICTIONS: Channel(type=simple_artifacts.File),
                }
            )
        )

    from_config = FromConfig(__init__)
