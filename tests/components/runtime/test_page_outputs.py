"""The outputs that the pages of Vertex AI and Kubeflow show: what a task gets, and what the service gets."""

import json
from pathlib import Path

import pytest
from evaluations import MEASURED, evaluated
from kfp import dsl
from object_stores import running_stores

from shardwright.components.evaluator.result_files import write_details, write_evaluation
from shardwright.components.runtime import container
from shardwright.components.runtime.mounts import MOUNTS_VARIABLE
from shardwright.components.runtime.page_outputs import PAGE_OUTPUTS
from shardwright.report.page import REPORT_FILE

METRICS = {"accuracy": 0.75, "f1/cat": 0.5}
PAGE = "<!DOCTYPE html><p>report"


@pytest.fixture(autouse=True)
def mounts(tmp_path, monkeypatch):
    monkeypatch.setenv(MOUNTS_VARIABLE, str(tmp_path / "mounts"))


def task(tmp_path, root, kinds):
    """An ExecutorInput with these outputs (key -> type), and what a component does that has written its own."""
    outputs = {
        key: {"artifacts": [{"name": key, "uri": f"{root}/{key}", "type": kind, "metadata": {}}]}
        for key, kind in kinds.items()
    }
    return {"inputs": {}, "outputs": {"artifacts": outputs, "outputFile": str(tmp_path / "executor_output.json")}}


def work(flags):
    """A component that writes a report and an evaluation; TFX's entry point reads nothing but its own outputs."""
    invocation = json.loads(flags[flags.index("--json_serialized_invocation_args") + 1])
    folders = {key: listed["artifacts"][0]["uri"] for key, listed in invocation["outputs"]["artifacts"].items()}
    assert set(folders) == {"report", "evaluation"}
    Path(folders["report"], REPORT_FILE).write_text(PAGE)
    write_evaluation(folders["evaluation"], evaluated(METRICS))
    write_details(folders["evaluation"], {"classes": ["cat", "dog"], "confusion": [[3, 1], [0, 4]]})
    said = {key: {"artifacts": [{"uri": folder, "metadata": {"blessed": 1}}]} for key, folder in folders.items()}
    output = Path(invocation["outputs"]["outputFile"])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"artifacts": said}))


def run(monkeypatch, how, invocation):
    monkeypatch.setattr(container, "run_task", work)
    code = container.main(["--artifacts", how, "--json_serialized_invocation_args", json.dumps(invocation)])
    assert code == 0
    return json.loads(Path(invocation["outputs"]["outputFile"]).read_text())["artifacts"]


# Kubeflow passes the type of an output as the document has it; YAML and JSON are what TFX writes and reads.
TITLES = [
    lambda title: {"schemaTitle": title, "schemaVersion": "0.0.1"},
    lambda title: {"instanceSchema": f"title: {title}\ntype: object\n"},
    lambda title: {"instanceSchema": json.dumps({"title": title})},
]


@pytest.mark.parametrize("titled", TITLES)
def test_kubeflow_gets_the_page_and_the_figures(tmp_path, monkeypatch, titled):
    kinds = {"report": titled("tfx.HtmlReport"), "evaluation": titled("tfx.ModelEvaluation")}
    kinds |= {key: titled(kind) for outputs in PAGE_OUTPUTS.values() for key, kind in outputs.items()}
    root = "minio://mlpipeline/run"
    made = run(monkeypatch, "local", task(tmp_path, root, kinds))
    assert set(made) == set(kinds)
    assert all(listed["artifacts"][0]["uri"] == f"{root}/{key}" for key, listed in made.items())
    assert made["report"]["artifacts"][0]["metadata"] == {"blessed": 1}
    assert made["metrics"]["artifacts"][0]["metadata"] == {**METRICS, "measured": MEASURED.words()}
    # The launcher copies this file to the store.
    assert (tmp_path / "mounts/minio/mlpipeline/run/page").read_text() == PAGE


def test_the_log_of_kubeflows_launcher_stays_its_own(tmp_path, monkeypatch):
    """The launcher has opened the file before the task begins, and TFX has no class `system.Artifact`."""
    kinds = {"report": {}, "evaluation": {}, "executor-logs": TITLES[0]("system.Artifact")}
    given = task(tmp_path, "minio://mlpipeline/run", kinds)
    log = tmp_path / "mounts/minio/mlpipeline/run/executor-logs"
    log.parent.mkdir(parents=True)
    log.write_text("a line")
    assert set(run(monkeypatch, "local", given)) == {"report", "evaluation"}
    assert log.read_text() == "a line"


def test_the_matrix_is_written_as_kfp_writes_it(tmp_path, monkeypatch):
    kinds = {"report": {}, "evaluation": {}, "confusion_matrix": TITLES[0]("system.ClassificationMetrics")}
    made = run(monkeypatch, "local", task(tmp_path, "minio://mlpipeline/run", kinds))
    expected = dsl.ClassificationMetrics()
    expected.log_confusion_matrix(["cat", "dog"], [[3, 1], [0, 4]])
    assert made["confusion_matrix"]["artifacts"][0]["metadata"] == expected.metadata


def test_vertex_ai_gets_the_page_on_the_bucket(tmp_path, monkeypatch):
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        kinds = {"report": {}, "evaluation": {}, "page": TITLES[0]("system.HTML")}
        made = run(monkeypatch, "streamed", task(tmp_path, f"{bucket}/run", kinds))
        tree = stores.tree(f"{bucket}/run")
        assert tree["page"] == tree[f"report/{REPORT_FILE}"] == PAGE.encode()
    assert made["page"]["artifacts"][0]["uri"] == f"{bucket}/run/page"
