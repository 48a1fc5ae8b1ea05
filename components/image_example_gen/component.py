"""ImageExampleGen: from image files and annotations to examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.image_example_gen import executor
from shardwright.components.input_resolver.component import InputResolver
from shardwright.components.input_resolver.executor import FINGERPRINT, LOCATION, RECIPE, SETTLED_RECIPE
from shardwright.components.runtime.component_arguments import check_arguments
from shardwright.config import (
    Config,
    DuplicatesConfig,
    FeaturesConfig,
    ImagesConfig,
    RejectsConfig,
    ShardsConfig,
    SplitConfig,
    as_config,
)
from shardwright.config.inline import inline_config
from shardwright.config.input import LabelsConfig
from shardwright.errors import UsageError
from shardwright.ingest.baseline import SPLITS, refuse_baseline, resolve_baseline
from shardwright.ingest.identify import IngestSource
from shardwright.storage.spans import NEWEST


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
            "data/train_images",
            labels=RleCsv("data/train.csv"),
            classes=["Fish", "Flower", "Gravel", "Sugar"],
            split=Split(train=0.8, eval=0.2),
        )
        statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])
        ```

    Args:
        images: folder or glob of images, also `gs://` and `s3://`; relative paths start from the working directory.
        labels: the annotations: `RleCsv(...)`, `Coco(...)`, `MaskImages(...)`, `LabelCsv(...)`, `ClassFolders()`, …; by
            default the format is detected.
        task: `segmentation` or `classification`.
        classes: names of the classes in the order of their labels; by default those of the annotations.
        split: how images are divided: `Split(train=0.8, eval=0.2)`, or a mapping of the keys of `split` in YAML. The
            default is train 0.8, eval 0.1, test 0.1, by a hash of the image's name.
        shards: `Shards(count=4)`, `Shards(target_size="150MB")`, or a mapping.
        duplicates: `Duplicates(exact="first")`, or a mapping.
        features: `Features(preset="tfds")`, or a mapping.
        verify: `header`, or `full`: every image is decoded once before it is written.
        image_options: `Images(orientation="apply")`, or a mapping: size, encoding and checks of the stored images.
        rejects: `Rejects(max_fraction=0.05)`, or a mapping: how many inputs may be rejected.
        span: which deliveries of a path with `{SPAN}` or a date are read: `newest`, `all`, a number or a date, or a
            list of the first and the last.
        source: the ingest itself, in place of all the above; see `from_config` and `at_run`.

    Outputs:
        examples: `standard_artifacts.Examples` with its splits in `split_names`, and `span` and `version` of the newest
            delivery that was read, 0 where the paths name none; the features are in
            `docs/reference/tfrecord-features.md`.

    Raises:
        UsageError: the input is wrong, or neither `images` nor `source` is given.
        ConfigError: an option is wrong; the message names its YAML key.
        CheckFailed: nothing matches, or images without annotations are not allowed.
    """

    SPEC_CLASS = ImageExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @partial(check_arguments, whole="source")
    def __init__(
        self,
        images: str | None = None,
        *,
        labels: LabelsConfig | None = None,
        task: str = "segmentation",
        classes: Sequence[str] | Mapping[str, int] | str | None = None,
        split: SplitConfig | Mapping[str, Any] | None = None,
        shards: ShardsConfig | Mapping[str, Any] | None = None,
        duplicates: DuplicatesConfig | Mapping[str, Any] | None = None,
        features: FeaturesConfig | Mapping[str, Any] | None = None,
        verify: str | None = None,
        image_options: ImagesConfig | Mapping[str, Any] | None = None,
        rejects: RejectsConfig | Mapping[str, Any] | None = None,
        span: str | int | Sequence[Any] = NEWEST,
        source: IngestSource | None = None,
    ) -> None:
        if source is None:
            if images is None:
                raise UsageError("ImageExampleGen: neither images nor source is given. Give a folder of images.")
            sections: dict[str, Any] = {
                "split": split,
                "shards": shards,
                "duplicates": duplicates,
                "features": features,
            }
            sections |= {"images": image_options, "rejects": rejects}
            config = inline_config(
                images, task=task, labels=labels, classes=classes, verify=verify, span=span, **sections
            )
            refuse_baseline(SPLITS, config.split.keep_from)
            source = IngestSource.of(config)
        super().__init__(
            ImageExampleGenSpec(
                input_fingerprint=source.fingerprint,
                recipe=source.recipe,
                input_location=source.location,
                examples=Channel(type=standard_artifacts.Examples),
            )
        )

    @classmethod
    def from_config(cls, config: str | Config) -> ImageExampleGen:
        """Takes the input and its options from a configuration, or from its YAML file; hashes the input now."""
        return cls(source=IngestSource.of(resolve_baseline(as_config(config))))

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
        return cls(source=IngestSource(found[FINGERPRINT], recipe, found[LOCATION]))
