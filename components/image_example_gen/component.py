"""ImageExampleGen: from image files and annotations to examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.image_example_gen import executor
from shardwright.components.input_resolver.component import IngestSections, InputResolver, ingest_config
from shardwright.components.input_resolver.executor import FINGERPRINT, LOCATION, RECIPE, SETTLED_RECIPE
from shardwright.components.runtime.component_arguments import FromConfig, Options, check_arguments, component_of
from shardwright.config import InputConfig
from shardwright.errors import UsageError
from shardwright.ingest.identify import IngestSource

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
    """Writes a dataset of `tf.train.Example` in plain TFRecord shards, from image files and their annotations.

    The content of the input is hashed when the component is constructed, and is its cache key: the same images give a
    cache hit even if their dates differ. (TFX's FileBasedExampleGen writes gzip only, and its cache key has the
    modification times.)

    Example:
        ```python
        example_gen = ImageExampleGen(
            Input("data/train_images", labels=RleCsv("data/train.csv"), classes=["Fish", "Flower", "Gravel", "Sugar"]),
            split=Split(train=0.8, eval=0.2),
        )
        statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])
        ```

    Args:
        input: the images and their annotations: `Input("train_images", labels=RleCsv("train.csv"))`, or a mapping of
            the keys of `input` in YAML. Labels are `RleCsv(...)`, `Coco(...)`, `MaskImages(...)`, `LabelCsv(...)`,
            `ClassFolders()`, …; by default the format is detected.
        task: `segmentation` or `classification`.
        base: folder that relative paths start from; by default the working directory.
        images: `Images(verify="full", orientation="apply")`, or a mapping: checks, size and encoding of the stored
            images.
        split: how images are divided: `Split(train=0.8, eval=0.2)`, or a mapping. The default is train 0.8, eval 0.1,
            test 0.1, by a hash of the image's name.
        shards: `Shards(count=4)`, `Shards(target_size="150MB")`, or a mapping.
        duplicates: `Duplicates(exact="first")`, or a mapping.
        features: `Features(preset="tfds")`, or a mapping.
        rejects: `Rejects(max_fraction=0.05)`, or a mapping: how many inputs may be rejected.
        reuse_from: dataset of an earlier ingest: images that have not changed are copied from there.

    Outputs:
        examples: `standard_artifacts.Examples` with its splits in `split_names`, and `span` and `version` of the newest
            delivery that was read, 0 where the paths name none; the features are in
            `docs/reference/tfrecord-features.md`.

    Raises:
        UsageError: the input is wrong, or missing.
        ConfigError: an option is wrong; the message names its YAML key.
        CheckFailed: nothing matches, or images without annotations are not allowed.
    """

    SPEC_CLASS = ImageExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @check_arguments
    def __init__(
        self,
        input: Options[InputConfig] = None,  # noqa: A002 -- the name of the section
        *,
        task: str = "segmentation",
        base: str | None = None,
        **sections: Unpack[IngestSections],
    ) -> None:
        config = ingest_config("ImageExampleGen", input, task, base, sections)
        super().__init__(_spec(IngestSource.of(config)))

    from_config = FromConfig(__init__, with_baseline=True)

    @classmethod
    def of_source(cls, source: IngestSource) -> ImageExampleGen:
        """Takes an input that was listed and hashed before, or is when the pipeline runs."""
        return component_of(cls, _spec(source))

    @classmethod
    def at_run(cls, resolver: InputResolver) -> ImageExampleGen:
        """Takes what a task of the same pipeline finds when it runs: for compiled and scheduled pipelines.

        Args:
            resolver: lists and hashes the input when the pipeline runs, with the options that it was given.
        """
        if not isinstance(resolver, InputResolver):
            problem = f"{resolver!r} is not an InputResolver"
            raise UsageError(f"ImageExampleGen.at_run: resolver: {problem}. Give the component itself.")
        found = {name: output.future()[0].value for name, output in resolver.outputs.items()}
        recipe = found.get(SETTLED_RECIPE, resolver.exec_properties[RECIPE])
        return cls.of_source(IngestSource(found[FINGERPRINT], recipe, found[LOCATION]))


def _spec(source: IngestSource) -> ImageExampleGenSpec:
    return ImageExampleGenSpec(
        input_fingerprint=source.fingerprint,
        recipe=source.recipe,
        input_location=source.location,
        examples=Channel(type=standard_artifacts.Examples),
    )
