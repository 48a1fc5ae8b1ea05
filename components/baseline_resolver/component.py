"""Inputs and outputs of BaselineResolver."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.baseline_resolver import executor


class BaselineResolverSpec(component_spec.ComponentSpec):
    """Channels and parameters of BaselineResolver."""

    PARAMETERS = {
        executor.PUSH_DIRECTORY: component_spec.ExecutionParameter(type=str),
        executor.BASELINE_DIGEST: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: dict[str, component_spec.ChannelParameter] = {}
    OUTPUTS = {executor.MODEL: component_spec.ChannelParameter(type=standard_artifacts.Model)}


class BaselineResolver(base_component.BaseComponent):
    """Copies the model that `BLESSED.json` names.

    Its output `model` has the custom property `has_baseline`: 1 with a model, 0 (and empty) if none was ever blessed.

    Args:
        push_directory: the folder that Pusher pushes to; relative to the run.
        baseline_digest: `blessing.baseline_digest(push_directory)` when the pipeline is built; part of the cache key.
            `executor.IN_FORCE` uses the baseline model at run time; the component must then not be cached.
    """

    SPEC_CLASS = BaselineResolverSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, push_directory: str, baseline_digest: str) -> None:
        spec = BaselineResolverSpec(
            **{
                executor.PUSH_DIRECTORY: push_directory,
                executor.BASELINE_DIGEST: baseline_digest,
                executor.MODEL: Channel(type=standard_artifacts.Model),
            }
        )
        super().__init__(spec=spec)
