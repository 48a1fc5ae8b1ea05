"""Inputs and outputs of Report."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from shardwright.components.report import executor


class ReportSpec(component_spec.ComponentSpec):
    """Channels of Report. Its output has `report.html`, for people, and `verdict.json`, for DataGate."""

    PARAMETERS = {"drift": component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "anomalies": component_spec.ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
    }
    OUTPUTS = {"report": component_spec.ChannelParameter(type=simple_artifacts.File)}


class Report(base_component.BaseComponent):
    """Writes the report of the examples and their anomalies. It never stops a run; DataGate does.

    Args:
        examples: ImageExampleGen's output.
        anomalies: ExampleValidator's output.
        schema: the schema they were validated against.
        drift: `gate.drift` and `gate.skew`, if configured, as canonical JSON; the former with the digest of its
            reference, and its `location` unless `shardwright.drift.monitor.REFERENCE_VARIABLE` is set. Empty for
            neither.
    """

    SPEC_CLASS = ReportSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, examples: BaseChannel, anomalies: BaseChannel, schema: BaseChannel, drift: str = "") -> None:
        super().__init__(
            ReportSpec(
                examples=examples,
                anomalies=anomalies,
                schema=schema,
                drift=drift,
                report=Channel(type=simple_artifacts.File),
            )
        )
