"""The parts of TFX that are not public and that we use. Checked with TFX 1.16 and 1.21.

`tests/components/runtime/test_tfx_compat.py` fails when a release of TFX changes them. Our executors also call the
methods that TFX's base classes keep for derived classes (`_get_tmp_dir`, `_make_beam_pipeline` and others); that test
lists these, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfx.orchestration.beam import beam_dag_runner


def run_task(arguments: Sequence[str]) -> None:
    """Runs one task of a compiled pipeline, as TFX's own entry point does.

    TFX has a public `main`, which takes parsed flags, and no public way to parse them.

    Args:
        arguments: the flags of `kubeflow_v2_run_executor`.
    """
    # It loads the clients of Kubeflow and Kubernetes, which no run on this machine uses.
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    kubeflow_v2_run_executor.main(kubeflow_v2_run_executor._parse_flags(list(arguments)))


class NodeRunner(beam_dag_runner.PipelineNodeAsDoFn):
    """Runs a component of a local pipeline. A derived class may add to `run_node`."""

    def run_node(self) -> None:
        """Runs the component, or takes its earlier outputs."""
        super()._run_node()

    @property
    def node_id(self) -> str:
        """ID of the component."""
        name: str = self._node_id
        return name

    @property
    def pipeline_id(self) -> str:
        """ID of the pipeline."""
        name: str = self._pipeline_info.id
        return name

    @property
    def metadata_config(self) -> Any:
        """The connection to the metadata store."""
        return self._mlmd_connection_config

    def _run_node(self) -> None:
        self.run_node()


def runner_of(node_runner: type[NodeRunner]) -> beam_dag_runner.BeamDagRunner:
    """Returns a BeamDagRunner that runs each component by `node_runner`, a class of a module: Beam pickles it."""
    kind = type("BeamDagRunner", (beam_dag_runner.BeamDagRunner,), {"_PIPELINE_NODE_DO_FN_CLS": node_runner})
    runner: beam_dag_runner.BeamDagRunner = kind()
    return runner
