"""Report: one HTML page of a dataset, its anomalies, its drift and its skew."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from shardwright.components.report import executor
from shardwright.components.runtime.component_arguments import FromConfig, Options, check_arguments, component_of
from shardwright.config.constructors import as_section, config_of
from shardwright.config.evaluation import DriftConfig, GateConfig, SkewConfig
from shardwright.drift.monitor import open_reference
from shardwright.ingest.baseline import REFERENCE, refuse_baseline
from shardwright.storage.fingerprint import canonical_json


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

    The output `report` has `report.html`, for people, and `verdict.json`, for DataGate.

    Example:
        ```python
        report = Report(
            example_gen.outputs["examples"],
            validator.outputs["anomalies"],
            schema_gen.outputs["schema"],
            gate=Gate(drift=Drift("datasets/january")),
        )
        gate = DataGate(
            validator.outputs["anomalies"],
            example_gen.outputs["examples"],
            schema_gen.outputs["schema"],
            report.outputs["report"],
        )
        ```

    Args:
        examples: the `examples` of ImageExampleGen.
        anomalies: the `anomalies` of TFX's ExampleValidator.
        schema: the schema they were validated against.
        gate: `Gate(drift=Drift("datasets/january"), skew=Skew())`, or a mapping: comparisons with an earlier dataset,
            and of the splits with each other. The reference is a path, and not `blessed`. It is opened now; its digest
            is part of the cache key.
        base: folder that a relative path of the reference starts from; by default the working directory.

    Raises:
        ConfigError: a value is wrong; the message names it as a key of `gate` in YAML.
        UsageError: the reference is not a dataset, or an input is not an output of a component.
    """

    SPEC_CLASS = ReportSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    @check_arguments
    def __init__(
        self,
        examples: BaseChannel,
        anomalies: BaseChannel,
        schema: BaseChannel,
        *,
        gate: Options[GateConfig] = None,
        base: str | None = None,
    ) -> None:
        section = as_section(GateConfig, gate, "gate")
        drift = section.drift
        if drift is not None:
            refuse_baseline(REFERENCE, drift.reference)
            drift = replace(drift, reference=config_of(base=base).resolve(drift.reference))
        super().__init__(_spec(examples, anomalies, schema, drift_checks(drift, section.skew)))

    from_config = FromConfig(__init__, with_baseline=True)

    @classmethod
    def of_checks(cls, examples: BaseChannel, anomalies: BaseChannel, schema: BaseChannel, checks: Any) -> Report:
        """Takes the result of `drift_checks`, which may be known only when the pipeline runs."""
        return component_of(cls, _spec(examples, anomalies, schema, checks))


def _spec(examples: BaseChannel, anomalies: BaseChannel, schema: BaseChannel, checks: Any) -> ReportSpec:
    report = Channel(type=simple_artifacts.File)
    return ReportSpec(examples=examples, anomalies=anomalies, schema=schema, drift=checks, report=report)


def drift_checks(drift: DriftConfig | None, skew: SkewConfig | None, *, with_location: bool = True) -> str:
    """Returns Report's parameter: the checks as canonical JSON, with the digest of the reference; empty for none.

    Args:
        drift: `gate.drift`; its reference is an absolute path, a URL, or relative to the working directory.
        skew: `gate.skew`.
        with_location: whether the parameter has the location of the reference. Without it, the environment variable
            `shardwright.drift.monitor.REFERENCE_VARIABLE` has it, and the cache key contains no path.

    Raises:
        UsageError: the reference is not a dataset.
    """
    options: dict[str, Any] = {}
    if drift is not None:
        values = asdict(drift)
        location = values.pop("reference")
        refuse_baseline(REFERENCE, location)
        values["digest"] = open_reference(location).manifest.digest
        options["drift"] = {**values, "location": location} if with_location else values
    if skew is not None:
        options["skew"] = asdict(skew)
    return canonical_json(options) if options else ""
