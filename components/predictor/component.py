"""Predictor: a table of predictions for a folder of images."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from shardwright.components.predictor import executor
from shardwright.components.runtime.component_arguments import check_arguments
from shardwright.config import Config, as_config
from shardwright.config.constructors import Unlabeled
from shardwright.config.inline import inline_config
from shardwright.config.options import at_least
from shardwright.errors import ConfigError
from shardwright.evaluation.submission import LAYOUTS
from shardwright.ingest.identify import IngestSource
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
        predictor = Predictor(trainer.outputs["model"], "data/test_images")
        ```

    Args:
        model: the `model` of ImageTrainer or BaselineResolver.
        images: folder or glob of images, also `gs://` and `s3://`. Their content is hashed when the component is
            constructed, and is part of the cache key.
        dialect: layout of the table of masks, see `shardwright.evaluation.submission`; by default that of the table the
            model was trained from.
        batch_size: images for each call of the model.

    Raises:
        ConfigError: the layout is not known, `batch_size` is less than 1, or an option has a wrong type.
        UsageError: the images do not exist.
    """

    SPEC_CLASS = PredictorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @check_arguments
    def __init__(self, model: BaseChannel, images: str, *, dialect: str | None = None, batch_size: int = 16) -> None:
        at_least("Predictor: batch_size", batch_size, 1)
        config = inline_config(images, task="classification", labels=Unlabeled())
        if dialect is not None and dialect not in LAYOUTS:
            raise ConfigError("Predictor: dialect", f"{dialect!r} is not known", f"Use one of: {', '.join(LAYOUTS)}.")
        options: dict[str, Any] = {"images": config.resolve(images), "batch_size": batch_size}
        if dialect is not None:
            options["dialect"] = dialect
        super().__init__(
            PredictorSpec(
                **{
                    executor.FINGERPRINT: IngestSource.of(config).fingerprint,
                    executor.OPTIONS: canonical_json(options),
                    executor.MODEL: model,
                    executor.PREDICTIONS: Channel(type=simple_artifacts.File),
                }
            )
        )

    @classmethod
    def from_config(cls, config: str | Config, model: BaseChannel, images: str | None = None) -> Predictor:
        """Takes the images, unless others are given, and the batch size from a configuration, or from its YAML file."""
        loaded = as_config(config)
        return cls(model, loaded.resolve(images or loaded.input.images), batch_size=loaded.trainer.batch_size)
