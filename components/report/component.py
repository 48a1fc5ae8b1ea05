"""Report: one HTML page of a dataset, its anomalies, its drift and its skew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.dsl.placeholder.placeholder import Placeholder
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from shardwright.components.report import executor
from shardwright.components.runtime.component_arguments import check_arguments
from shardwright.config import Config, as_config
from shardwright.config.evaluation import DriftConfig, SkewConfig
from shardwright.config.inline import as_section
from shardwright.drift.monitor import open_reference
from shardwright.ingest.baseline import REFERENCE, refuse_baseline, resolve_baseline
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
            drift=Drift(reference="datasets/january"),
        )
        gate = DataGate(
            validator.outputs["anomalies"],
            example_gen.outputs["examples"],
            schema_gen.outputs["schema"],
            report=report.outputs["report"],
        )
        ```

    Args:
        examples: the `examples` of ImageExampleGen.
        anomalies: the `anomalies` of TFX's ExampleValidator.
        schema: the schema they were validated against.
        drift: compares the images with an earlier dataset: `Drift(reference="DATASET")`, or a mapping of the keys of
            `gate.drift` in YAML. The reference is a path, and not `blessed`. It is opened now; its digest is part of
            the cache key.
        skew: compares the splits with each other: `Skew()`, or a mapping of the keys of `gate.skew`.
        checks: both as canonical JSON or a placeholder of it, instead of `drift` and `skew`; see `drift_checks`.

    Raises:
        ConfigError: a value is wrong; the message names it as a key of `gate` in YAML.
        UsageError: the reference is not a dataset, or an input is not an output of a component.
    """

    SPEC_CLASS = ReportSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    @partial(check_arguments, whole="checks")
    def __init__(
        self,
        examples: BaseChannel,
        anomalies: BaseChannel,
        schema: BaseChannel,
        *,
        drift: DriftConfig | Mapping[str, Any] | None = None,
        skew: SkewConfig | Mapping[str, Any] | None = None,
        checks: str | Placeholder | None = None,
    ) -> None:
        if checks is None:
            checks = drift_checks(
                None if drift is None else as_section(DriftConfig, drift, "drift"),
                None if skew is None else as_section(SkewConfig, skew, "skew"),
            )
        super().__init__(
            ReportSpec(
                examples=examples,
                anomalies=anomalies,
                schema=schema,
                drift=checks,
                report=Channel(type=simple_artifacts.File),
            )
        )

    @classmethod
    def from_config(
        cls, config: str | Config, examples: BaseChannel, anomalies: BaseChannel, schema: BaseChannel
    ) -> Report:
        """Takes the checks from `gate.drift` and `gate.skew` of a configuration, or of its YAML file."""
        loaded = resolve_baseline(as_config(config))
        drift = loaded.gate.drift
        if drift is not None:
            drift = replace(drift, reference=loaded.resolve(drift.reference))
        return cls(examples, anomalies, schema, drift=drift, skew=loaded.gate.skew)


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
