"""ImageTransform: images of one size for training, their TransformGraph, statistics and schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts

from shardwright.components.image_transform import executor
from shardwright.components.image_transform.transform_recipe import transform_recipe
from shardwright.components.runtime.component_arguments import check_arguments
from shardwright.config import Config, as_config
from shardwright.config.inline import inline_config
from shardwright.config.shards import TF_VISION, RejectsConfig
from shardwright.config.transform import INDEX, RLE, TextConfig


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
        transform = ImageTransform(example_gen.outputs["examples"], size=(256, 256))
        trainer = ImageTrainer(transform.outputs["transformed_examples"], transform.outputs["transform_graph"])
        ```

    Args:
        examples: the `examples` of ImageExampleGen, or examples with its features from another component; those
            without a manifest are first copied into a dataset.
        schema: the schema that the examples were validated against; recorded in the lineage.
        size: height and width in pixels; (352, 544) by default, and none with `resize="keep"`.
        resize: `stretch`, `fill_crop`, `letterbox`, or `keep` for the size of each image.
        encoding: `jpeg`, `png`, `tensor`, `raw`, or `auto`, which is `raw` where all images take at most 4 GB so, and
            else `jpeg`.
        quality: of JPEG, 1 to 100.
        optimize: whether to make JPEG and PNG files smaller, which takes longer.
        chroma: chroma subsampling of JPEG: 420, 422 or 444.
        masks: `rle`, or `png` for an image of 0 and 1 for each class.
        labels: `index`; `one_hot` or `multi_hot` adds a number for each class.
        preset: names and forms of the features: `tf_vision`, or another of `shardwright.dataset.feature_presets`.
        text: columns of texts and how they are stored: `{"caption": Text(vocabulary=2000)}`, or mappings.
        max_rejects: the share of images that may be rejected because they cannot be decoded, 0 to 1; with 0 none.
        recipe: all options as canonical JSON, instead of the others; see `recipe.transform_recipe`.

    Raises:
        ConfigError: a value is wrong; the message names it as the key of `transform` in YAML.
    """

    SPEC_CLASS = ImageTransformSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @partial(check_arguments, whole="recipe")
    def __init__(
        self,
        examples: BaseChannel,
        schema: BaseChannel | None = None,
        *,
        size: tuple[int, int] | None = None,
        resize: str = "stretch",
        encoding: str = "jpeg",
        quality: int = 90,
        optimize: bool = False,
        chroma: int = 420,
        masks: str = RLE,
        labels: str = INDEX,
        preset: str = TF_VISION,
        text: Mapping[str, TextConfig | Mapping[str, Any]] | None = None,
        max_rejects: float = RejectsConfig.max_fraction,
        recipe: str | None = None,
    ) -> None:
        if recipe is None:
            section: dict[str, Any] = {"resize": resize, "encoding": encoding, "quality": quality, "masks": masks}
            section |= {"optimize": optimize, "chroma": chroma, "labels": labels, "preset": preset}
            section["text"] = {name: _plain(options) for name, options in (text or {}).items()}
            if size is not None:
                section["size"] = list(size)
            recipe = transform_recipe(inline_config(".", transform=section, rejects={"max_fraction": max_rejects}))
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

    @classmethod
    def from_config(
        cls, config: str | Config, examples: BaseChannel, schema: BaseChannel | None = None
    ) -> ImageTransform:
        """Takes the options from the sections `transform` and `rejects` of a configuration, or of its YAML file."""
        loaded = as_config(config)
        return cls(examples, schema, recipe=transform_recipe(loaded))


def _plain(text: TextConfig | Mapping[str, Any]) -> Mapping[str, Any]:
    return vars(text) if isinstance(text, TextConfig) else text
