"""DataGate: stops a run whose data have anomalies."""

from __future__ import annotations

import difflib

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts
from tfx.types.experimental import simple_artifacts

from shardwright.components.data_gate import executor
from shardwright.components.data_gate.anomalies import ANOMALY_KINDS
from shardwright.components.runtime.component_arguments import FromConfig, Options, check_arguments
from shardwright.config.constructors import as_section
from shardwright.config.evaluation import GateConfig
from shardwright.errors import ConfigError
from shardwright.report.anomaly_chapter import KINDS
from shardwright.storage.fingerprint import canonical_json

# Contains `decision.json`, the anomalies that were found and allowed; nothing if the gate stops the run. Not a custom
# type: a compiled pipeline accepts only types that are classes of a top-level module.
GateDecision = simple_artifacts.File

_KINDS = (*ANOMALY_KINDS, *KINDS)


class DataGateSpec(component_spec.ComponentSpec):
    """Channels and parameters of DataGate."""

    PARAMETERS = {"allow": component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "anomalies": component_spec.ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
        "report": component_spec.ChannelParameter(type=simple_artifacts.File, optional=True),
    }
    OUTPUTS = {"decision": component_spec.ChannelParameter(type=GateDecision)}


class DataGate(base_component.BaseComponent):
    """Stops the run when ExampleValidator found anomalies; ExampleValidator itself never does.

    The message names every anomaly with the images that cause it. The output `decision` has `decision.json`, the
    anomalies that were found and allowed. Let what needs sound data wait for it: `transform.add_upstream_node(gate)`.

    A schema that lists the names of images (keys, file names, checksums) fits no other images. That is the schema's
    fault, so the run goes on with a note.

    Example:
        ```python
        gate = DataGate(
            validator.outputs["anomalies"],
            example_gen.outputs["examples"],
            schema_gen.outputs["schema"],
            report.outputs["report"],
            gate=Gate(allow_anomalies=["SCHEMA_NEW_COLUMN"]),
        )
        ```

    Args:
        anomalies: the `anomalies` of TFX's ExampleValidator.
        examples: the validated examples, of any component; read only for the keys of those that cause an anomaly.
        schema: the schema they were validated against, of SchemaGen or ImportSchemaGen.
        report: the `report` of Report, which has the checks of drift and skew. Leaks between splits and drift then
            stop the run, and the message names the file.
        gate: `Gate(allow_anomalies=["SCHEMA_NEW_COLUMN"])`, or a mapping: anomalies that do not stop the run, none by
            default.

    Raises:
        ConfigError: an anomaly that is allowed is of an unknown kind.
    """

    SPEC_CLASS = DataGateSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    @check_arguments
    def __init__(
        self,
        anomalies: BaseChannel,
        examples: BaseChannel,
        schema: BaseChannel,
        report: BaseChannel | None = None,
        *,
        gate: Options[GateConfig] = None,
    ) -> None:
        allowed = as_section(GateConfig, gate, "gate").allow_anomalies
        for kind in allowed:
            name = kind.partition(":")[0]
            if name not in _KINDS:
                close = difflib.get_close_matches(name, _KINDS, n=1)
                raise ConfigError(
                    "gate.allow_anomalies",
                    f"{kind!r} is not a known kind of anomaly",
                    f"Did you mean {close[0]}?" if close else "See AnomalyInfo.Type of TensorFlow Metadata.",
                )
        super().__init__(
            DataGateSpec(
                anomalies=anomalies,
                examples=examples,
                schema=schema,
                allow=canonical_json(sorted(allowed)),
                report=report,
                decision=Channel(type=GateDecision),
            )
        )

    from_config = FromConfig(__init__)
