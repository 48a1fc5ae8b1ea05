"""What goes into Report and what comes out."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from shardwright.components.report import executor


class ReportSpec(component_spec.ComponentSpec):
    """Channels of Report. Its output holds `report.html`, for people, and `verdict.json`, for DataGate."""

    PARAMETERS = {"drift": component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "anomalies": component_spec.ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
    }
    OUTPUTS = {"report": component_spec.ChannelParameter(type=simple_artifacts.File)}


class Report(base_component.BaseComponent):
    """Writes the report of the examples and of what is odd about them. Never stops a run; that is for DataGate.

    Args:
        examples: ImageExampleGen's output.
        anomalies: ExampleValidator's output.
        schema: the schema they were validated against.
        drift: `gate.drift` and `gate.skew` as canonical JSON, those that are asked for; the former with the digest of
            its reference, and its `location` where the environment (`shardwright.drift.monitor.REFERENCE_VARIABLE`)
            does not say it. Empty for neither.
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
