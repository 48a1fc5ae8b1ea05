"""Inputs and outputs of InlineSchema."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.inline_schema import executor


class InlineSchemaSpec(component_spec.ComponentSpec):
    """Channels and parameters of InlineSchema."""

    PARAMETERS = {executor.SCHEMA_TEXT: component_spec.ExecutionParameter(type=str)}
    INPUTS: dict[str, component_spec.ChannelParameter] = {}
    OUTPUTS = {executor.SCHEMA: component_spec.ChannelParameter(type=standard_artifacts.Schema)}


class InlineSchema(base_component.BaseComponent):
    """Writes the schema in its parameter, so that the cache key depends on the schema's content.

    Args:
        schema_text: the schema as text-format protobuf.
    """

    SPEC_CLASS = InlineSchemaSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, schema_text: str) -> None:
        channel = Channel(type=standard_artifacts.Schema)
        super().__init__(InlineSchemaSpec(**{executor.SCHEMA_TEXT: schema_text, executor.SCHEMA: channel}))
