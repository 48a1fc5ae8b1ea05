"""Inputs and outputs of ImageTransform."""

from __future__ import annotations

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts

from shardwright.components.image_transform import executor


class ImageTransformSpec(component_spec.ComponentSpec):
    """Channels and parameters of ImageTransform."""

    PARAMETERS = {"recipe": component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
    }
    OUTPUTS = {
        "transformed_examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "transform_graph": component_spec.ChannelParameter(type=standard_artifacts.TransformGraph),
        "post_transform_stats": component_spec.ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "post_transform_schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
    }


class ImageTransform(base_beam_component.BaseBeamComponent):
    """Resizes all images of a dataset, with their masks, and measures the train split.

    Outputs `transformed_examples`, `transform_graph` and, like TFX's Transform, `post_transform_stats` and
    `post_transform_schema` of the transformed examples.

    Args:
        examples: ImageExampleGen's output.
        schema: the schema they were checked against; recorded in the lineage.
        recipe: result of `recipe.transform_recipe`.
    """

    SPEC_CLASS = ImageTransformSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(self, examples: BaseChannel, schema: BaseChannel, recipe: str) -> None:
        super().__init__(
            ImageTransformSpec(
                examples=examples,
                schema=schema,
                recipe=recipe,
                transformed_examples=Channel(type=standard_artifacts.Examples),
                transform_graph=Channel(type=standard_artifacts.TransformGraph),
                post_transform_stats=Channel(type=standard_artifacts.ExampleStatistics),
                post_transform_schema=Channel(type=standard_artifacts.Schema),
            )
        )
