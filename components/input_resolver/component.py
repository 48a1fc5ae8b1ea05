"""Inputs and outputs of InputResolver."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.input_resolver import executor
from shardwright.ingest.baseline import BaselineRequest


class InputResolverSpec(component_spec.ComponentSpec):
    """Channels and parameters of InputResolver."""

    PARAMETERS = {
        name: component_spec.ExecutionParameter(type=str)
        for name in (executor.RECIPE, executor.PLACES, executor.DATA_ROOT, executor.SPAN)
    } | {executor.BLESSED: component_spec.ExecutionParameter(type=str, optional=True)}
    INPUTS: dict[str, component_spec.ChannelParameter] = {}
    OUTPUTS = {
        name: component_spec.ChannelParameter(type=standard_artifacts.String, optional=name in executor.SETTLED)
        for name in (executor.FINGERPRINT, executor.LOCATION, *executor.SETTLED)
    }


class InputResolver(base_component.BaseComponent):
    """Lists the input when the pipeline runs, so that a compiled, scheduled pipeline reads new data.

    Its outputs are parameters of the next components, so their cache keys depend on the input's content. It must not be
    cached itself. Local runs do not need it: `shardwright run` lists the input before it builds the graph.

    Args:
        recipe: ImageExampleGen's options as canonical JSON; they decide which files belong to the input.
        places: paths of the input below `data_root`, as JSON (`shardwright.ingest.recipe`).
        data_root: folder or URL; a runtime parameter.
        span: `input.span`; a runtime parameter. `newest` is pinned to the span that is newest now.
        blessed: request for the dataset of the baseline model, if the configuration names `blessed`; adds the outputs
            `settled_recipe` and `settled_drift`.
    """

    SPEC_CLASS = InputResolverSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self, recipe: str, places: str, data_root: Any, span: Any, blessed: BaselineRequest | None = None
    ) -> None:
        values = {
            executor.RECIPE: recipe,
            executor.PLACES: places,
            executor.DATA_ROOT: data_root,
            executor.SPAN: span,
        }
        outputs: tuple[str, ...] = (executor.FINGERPRINT, executor.LOCATION)
        if blessed is not None:
            values[executor.BLESSED] = blessed.to_json()
            outputs += executor.SETTLED
        channels = {name: Channel(type=standard_artifacts.String) for name in outputs}
        super().__init__(InputResolverSpec(**values, **channels))
