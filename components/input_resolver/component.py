"""What goes into InputResolver and what comes out."""

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
    """Looks at the input when the pipeline runs, so that a compiled, scheduled one sees what came in since.

    Its outputs are handed on as parameters: what follows is cached by the content of the input. It must never be cached
    itself. Locally none of this is needed: `shardwright run` looks before it builds the graph.

    Args:
        recipe: ImageExampleGen's options as canonical JSON; they say what belongs to the input.
        places: where the input lies below `data_root`, as JSON (`shardwright.ingest.recipe`).
        data_root: folder or URL; a runtime parameter.
        span: `input.span`; a runtime parameter. `newest` is pinned to the span that is newest now.
        blessed: what is to be looked up of the model in force, where a dataset is named `blessed`: then there are also
            outputs `settled_recipe` and `settled_drift`, with what was found.
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
