"""A local run that reports for every component whether it ran, how long it took, and the URIs of its outputs.

The runner's own pipeline and those of the components run on Beam's in-process Fn API runner: Beam 2.77 would otherwise
first try to download Prism, another runner, for each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.compiler import constants
from tfx.orchestration import metadata

from shardwright.components.runtime.beam import in_process_beam
from shardwright.components.runtime.tfx_compat import NodeRunner, runner_of

_STATES = metadata_store_pb2.Execution.State


@dataclass(frozen=True)
class NodeReport:
    """The report of one component of a run.

    Attributes:
        node: id of the component.
        cached: its earlier outputs were reused.
        seconds: wall time.
        outputs: output key -> URIs of the artifacts.
    """

    node: str
    cached: bool
    seconds: float
    outputs: dict[str, tuple[str, ...]]


@dataclass
class RunRecord:
    """The reports of a run so far; `failure` is the first component that failed, with its error."""

    nodes: list[NodeReport] = field(default_factory=list)
    failure: tuple[str, BaseException] | None = None
    on_node: Callable[[NodeReport], None] = lambda report: None

    def output(self, node: str, key: str) -> str:
        """Returns the URI of a component's single artifact of a key."""
        for report in self.nodes:
            if report.node == node:
                return report.outputs[key][0]
        raise KeyError(node)


# Beam pickles the DoFn, and the in-process runner unpickles it in the same process: they share module state only.
_record = RunRecord()


class _ReportingNodeRunner(NodeRunner):
    """Times a component and keeps its error, which Beam would wrap in another one."""

    def run_node(self) -> None:
        started = time.monotonic()
        try:
            super().run_node()
        except BaseException as error:
            if _record.failure is None:
                _record.failure = (self.node_id, error)
            raise
        seconds = time.monotonic() - started
        node_context = f"{self.pipeline_id}.{self.node_id}"
        with metadata.Metadata(self.metadata_config) as handle:
            store = handle.store
            context = store.get_context_by_type_and_name(constants.NODE_CONTEXT_TYPE_NAME, node_context)
            execution = max(store.get_executions_by_context(context.id), key=lambda row: row.id)
            outputs: dict[str, tuple[str, ...]] = {}
            events = store.get_events_by_execution_ids([execution.id])
            for event in events:
                if event.type == metadata_store_pb2.Event.OUTPUT:
                    (artifact,) = store.get_artifacts_by_id([event.artifact_id])
                    key = event.path.steps[0].key
                    outputs[key] = (*outputs.get(key, ()), artifact.uri)
        report = NodeReport(self.node_id, execution.last_known_state == _STATES.CACHED, seconds, outputs)
        _record.nodes.append(report)
        _record.on_node(report)


def run_pipeline(pipeline: Any, on_node: Callable[[NodeReport], None]) -> RunRecord:
    """Runs a TFX pipeline in this process.

    Args:
        pipeline: a `tfx.dsl.Pipeline`.
        on_node: called after every component that ended well.

    Returns:
        The record of the run; its `failure` is set where a component failed.
    """
    global _record
    _record = RunRecord(on_node=on_node)
    try:
        with in_process_beam():
            runner_of(_ReportingNodeRunner).run(pipeline)
    except Exception:
        if _record.failure is None:
            raise
    return _record
