"""What goes into ImageExampleGen and what comes out."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.image_example_gen import executor


class ImageExampleGenSpec(component_spec.ComponentSpec):
    """Channels and parameters of ImageExampleGen."""

    PARAMETERS = {
        "input_fingerprint": component_spec.ExecutionParameter(type=str),
        "recipe": component_spec.ExecutionParameter(type=str),
        "input_location": component_spec.ExecutionParameter(type=str, optional=True),
    }
    INPUTS: dict[str, Any] = {}
    OUTPUTS = {"examples": component_spec.ChannelParameter(type=standard_artifacts.Examples)}


class ImageExampleGen(base_beam_component.BaseBeamComponent):
    """Writes a dataset of `tf.train.Example` in plain TFRecord shards.

    It is no FileBasedExampleGen: that one writes gzip only, keys its cache on modification times, and loses its machine
    sizes on Vertex. Here the cache key is the input's content.

    Args:
        input_fingerprint: content fingerprint of the input, from `shardwright.ingest.input_fingerprint`; a plain value
            locally, a dynamic one in compiled specifications. Other content is refused.
        recipe: options as canonical JSON, from `shardwright.ingest.ingest_recipe`.
        input_location: where the input lies, as JSON with absolute `images` and `labels`. Empty where the environment
            variable `SHARDWRIGHT_INPUT` says so, which keeps paths out of the cache key.
    """

    SPEC_CLASS = ImageExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, input_fingerprint: Any, recipe: str, input_location: str = "") -> None:
        super().__init__(
            ImageExampleGenSpec(
                input_fingerprint=input_fingerprint,
                recipe=recipe,
                input_location=input_location,
                examples=Channel(type=standard_artifacts.Examples),
            )
        )
