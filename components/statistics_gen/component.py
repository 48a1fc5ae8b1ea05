"""StatisticsGen: statistics of the features of images, without their pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts

from shardwright.components.runtime.component_arguments import FromConfig, check_arguments
from shardwright.components.statistics_gen import executor
from shardwright.errors import ConfigError
from shardwright.storage.fingerprint import canonical_json


class StatisticsGenSpec(component_spec.ComponentSpec):
    """Channels and parameters of StatisticsGen."""

    PARAMETERS = {
        executor.FEATURES: component_spec.ExecutionParameter(type=str),
        executor.REQUIRED: component_spec.ExecutionParameter(type=int, optional=True),
    }
    INPUTS = {"examples": component_spec.ChannelParameter(type=standard_artifacts.Examples)}
    OUTPUTS = {"statistics": component_spec.ChannelParameter(type=standard_artifacts.ExampleStatistics)}


class StatisticsGen(base_beam_component.BaseBeamComponent):
    """Writes the statistics of every split, like TFX's component of the same name, and those of its slices.

    Slices are the classes, and the folders of the images if there are several. The output `statistics` is that of
    TFX's component, so SchemaGen and ExampleValidator take it. TFX's own component can slice by the values of a feature
    only, and parses the pixels of every image before it drops them.

    Names and checksums of images, and other texts of which nearly all differ, have statistics without their values:
    SchemaGen would allow these values, and no other. For TFX's own component, see `statistics_options`.

    Example:
        ```python
        statistics_gen = StatisticsGen(example_gen.outputs["examples"])
        schema_gen = tfx.components.SchemaGen(statistics=statistics_gen.outputs["statistics"])
        ```

    Args:
        examples: the `examples` of ImageExampleGen.
        feature_names: the features with statistics; by default all but pixels and run lengths. Others are not read.
        allow_absent: whether to leave out features that the examples do not have, such as those of a schema. By default
            a name that they do not have is an error when the component runs.

    Raises:
        ConfigError: `feature_names` is empty, or contains a value that is not a text.
    """

    SPEC_CLASS = StatisticsGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    @check_arguments
    def __init__(
        self, examples: BaseChannel, feature_names: Sequence[str] | None = None, *, allow_absent: bool = False
    ) -> None:
        values: dict[str, Any] = {executor.FEATURES: ""}
        if feature_names is not None:
            if not feature_names or not all(isinstance(name, str) for name in feature_names):
                fix = 'Write for example ["image/height"], or leave it out for all but pixels and run lengths.'
                raise ConfigError("StatisticsGen: feature_names", f"{feature_names!r} is not a list of names", fix)
            values[executor.FEATURES] = canonical_json(sorted(feature_names))
            if not allow_absent:
                values[executor.REQUIRED] = 1
        super().__init__(
            StatisticsGenSpec(
                examples=examples, **values, statistics=Channel(type=standard_artifacts.ExampleStatistics)
            )
        )

    from_config = FromConfig(__init__)
