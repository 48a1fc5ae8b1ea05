"""StatisticsGen: statistics of the features of images, without their pixels."""

from __future__ import annotations

from collections.abc import Sequence

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts

from shardwright.components.runtime.arguments import check_arguments
from shardwright.components.statistics_gen import executor
from shardwright.config import Config, as_config
from shardwright.fingerprint import canonical_json


class StatisticsGenSpec(component_spec.ComponentSpec):
    """Channels and parameters of StatisticsGen."""

    PARAMETERS = {"features": component_spec.ExecutionParameter(type=str)}
    INPUTS = {"examples": component_spec.ChannelParameter(type=standard_artifacts.Examples)}
    OUTPUTS = {"statistics": component_spec.ChannelParameter(type=standard_artifacts.ExampleStatistics)}


class StatisticsGen(base_beam_component.BaseBeamComponent):
    """Writes the statistics of every split, like TFX's component of the same name, and those of its slices.

    Slices are the classes, and the folders of the images if there are several. The output `statistics` is that of
    TFX's component, so SchemaGen and ExampleValidator take it. TFX's own component can slice by the values of a feature
    only, and parses the pixels of every image before it drops them.

    Example:
        ```python
        statistics_gen = StatisticsGen(example_gen.outputs["examples"])
        schema_gen = tfx.components.SchemaGen(statistics=statistics_gen.outputs["statistics"])
        ```

    Args:
        examples: the `examples` of ImageExampleGen.
        features: names of the features with statistics; by default all but pixels and run lengths. Others are not read.
    """

    SPEC_CLASS = StatisticsGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @check_arguments
    def __init__(self, examples: BaseChannel, features: Sequence[str] | None = None) -> None:
        super().__init__(
            StatisticsGenSpec(
                examples=examples,
                features="" if features is None else canonical_json(sorted(features)),
                statistics=Channel(type=standard_artifacts.ExampleStatistics),
            )
        )

    @classmethod
    def from_config(cls, config: str | Config, examples: BaseChannel) -> StatisticsGen:
        """Checks a configuration, or its YAML file, which has no options of statistics: they are those of a run."""
        as_config(config)
        return cls(examples)
