"""The parts of TFX that are used and are not public."""

import json

import pytest
from compat import checked_with
from tfx.components.pusher import executor as pusher_executor
from tfx.dsl.components.base import base_beam_executor, base_executor
from tfx.orchestration.beam import beam_dag_runner
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

from shardwright.components.runtime import tfx_compat

# The methods and attributes of TFX's base classes that our executors use; `test_setup_compat.py` refuses others.
INHERITED = {
    base_executor.BaseExecutor: {"_get_tmp_dir", "_log_startup"},
    base_beam_executor.BaseBeamExecutor: {"_make_beam_pipeline"},
    pusher_executor.Executor: {"_MarkNotPushed", "_MarkPushed"},
}


def test_the_version_is_one_that_was_checked():
    checked_with("tfx", ">=1.16,<1.22")


@pytest.mark.parametrize("kind", INHERITED, ids=lambda kind: kind.__name__)
def test_base_classes_keep_what_executors_use(kind):
    assert {name for name in INHERITED[kind] if callable(getattr(kind, name, None))} == INHERITED[kind]


class Idle(base_beam_executor.BaseBeamExecutor):
    """Does nothing."""

    def Do(self, input_dict, output_dict, exec_properties):
        raise NotImplementedError


def test_executors_keep_the_arguments_of_beam():
    context = base_beam_executor.BaseBeamExecutor.Context(beam_pipeline_args=["--runner=X"], tmp_dir="", unique_id="")

    assert "--runner=X" in Idle(context)._beam_pipeline_args


def test_a_task_is_parsed_and_run(monkeypatch):
    ran = []
    monkeypatch.setattr(kubeflow_v2_run_executor, "_run_executor", lambda flags, beam: ran.append((flags, beam)))
    invocation = json.dumps({"inputs": {}})
    names = ["--executor_class_path", "a.B", "--json_serialized_invocation_args", invocation, "--runner=DirectRunner"]
    tfx_compat.run_task([*names, "--json_serialized_inputs_spec_args", "{}"])
    ((flags, beam),) = ran
    assert (flags.executor_class_path, flags.json_serialized_invocation_args) == ("a.B", invocation)
    assert (flags.json_serialized_inputs_spec_args, beam) == ("{}", ["--runner=DirectRunner"])


class Runner(tfx_compat.NodeRunner):
    """Notes what it runs."""

    ran: list = []

    def __init__(self):  # TFX's own takes a compiled pipeline.
        self._node_id, self._mlmd_connection_config = "node", "store"
        self._pipeline_info = type("Info", (), {"id": "pipeline"})

    def run_node(self):
        self.ran.append((self.node_id, self.pipeline_id, self.metadata_config))


def test_a_component_is_run_by_the_class_that_was_given():
    runner = tfx_compat.runner_of(Runner)
    assert isinstance(runner, beam_dag_runner.BeamDagRunner)
    assert runner._PIPELINE_NODE_DO_FN_CLS is Runner
    # Beam calls `process`, which runs the node by `run_node`.
    Runner().process("element")
    assert Runner.ran == [("node", "pipeline", "store")]


def test_the_names_that_a_node_is_known_by_are_those_of_tfx():
    """The constructor of TFX's class sets the attributes that `NodeRunner` shows."""
    names = beam_dag_runner.PipelineNodeAsDoFn.__init__.__code__.co_names
    assert {"_node_id", "_pipeline_info", "_mlmd_connection_config"} <= set(names)
    assert "_run_node" in beam_dag_runner.PipelineNodeAsDoFn.process.__code__.co_names
