"""ImageTransform: images of one size for training, their TransformGraph, statistics and schema."""

from __future__ import annotations

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts

from shardwright.components.image_transform import executor
from shardwright.components.image_transform.transform_recipe import transform_recipe
from shardwright.components.runtime.component_arguments import FromConfig, Options, check_arguments
from shardwright.config.constructors import config_of
from shardwright.config.shards import RejectsConfig
from shardwright.config.transform import TransformConfig


class ImageTransformSpec(component_spec.ComponentSpec):
    """Channels and parameters of ImageTransform."""

    PARAMETERS = {"recipe": component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema, optional=True),
    }
    OUTPUTS = {
        "transformed_examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "transform_graph": component_spec.ChannelParameter(type=standard_artifacts.TransformGraph),
        "post_transform_stats": component_spec.ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "post_transform_schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
    }


class ImageTransform(base_beam_component.BaseBeamComponent):
    """Resizes all images of a dataset, with their masks, and measures the split `train`.

    The outputs are those of TFX's Transform: `transformed_examples` (a dataset in plain TFRecord shards),
    `transform_graph` (`transform_fn/`, `transformed_metadata/`, `metadata/`), `post_transform_stats` and
    `post_transform_schema`. Pixels stay encoded, so the transformed examples are not larger than the images.

    Example:
        ```python
        transform = ImageTransform(example_gen.outputs["examples"], transform=Transform(size=(256, 256)))
        trainer = ImageTrainer(transform.outputs["transformed_examples"], transform.outputs["transform_graph"])
        ```

    Args:
        examples: the `examples` of ImageExampleGen, or examples with its features from another component; those
            without a manifest are first copied into a dataset.
        schema: the schema that the examples were validated against; recorded in the lineage.
        transform: `Transform(size=(256, 256), encoding="png")`, or a mapping: size, encoding, masks, texts.
        rejects: `Rejects(max_fraction=0.05)`, or a mapping: how many images may be rejected because they cannot be
            decoded.
        task: `segmentation` or `classification`, which has no masks.

    Raises:
        ConfigError: a value is wrong; the message names it as the key of `transform` in YAML.
    """

    SPEC_CLASS = ImageTransformSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @check_arguments
    def __init__(
        self,
        examples: BaseChannel,
        schema: BaseChannel | None = None,
        *,
        transform: Options[TransformConfig] = None,
        rejects: Options[RejectsConfig] = None,
        task: str = "segmentation",
    ) -> None:
        recipe = transform_recipe(config_of(task=task, transform=transform, rejects=rejects))
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

    from_config = FromConfig(__init__)
