"""The examples of `run.on_finish` log runs with MLflow and Weights & Biases, where these are installed."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FACTS = {
    "metrics": {"accuracy": 0.75, "f1/<a> b": 0.5},
    "baseline": {},
    "epochs": [
        {"epoch": 1, "loss": 0.9, "metrics": {"accuracy": 0.5}},
        {"epoch": 2, "loss": 0.4, "metrics": {"accuracy": 0.7}},
    ],
    "best_epoch": 2,
    "dataset": {"digest": "abc", "classes": ["<a> b"], "records": {"train": 3}},
}


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def finished(tmp_path):
    """The arguments of a hook."""
    report = tmp_path / "report.html"
    report.write_text("<p>report</p>")
    sections = {"transform": {"size": [8, 8]}, "loader": {}, "trainer": {"epochs": 2}, "evaluator": {"split": "test"}}
    common = {"name": "photos", "task": "classification", "root": str(tmp_path), "seconds": 3.5, "config": sections}
    return {
        **common,
        "state": "blessed",
        "reasons": [],
        **FACTS,
        "paths": {"report": str(report), "pushed_model": "x/1"},
    }


def failed_run(run):
    names = ("name", "task", "root", "seconds", "config")
    return {**{name: run[name] for name in names}, "state": "failed", "reasons": ["the gate is shut"]}


def test_the_example_for_mlflow(finished, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    log = example("tracking_mlflow").log
    client = mlflow.MlflowClient()
    number = log(finished)
    read = client.get_run(number)
    assert read.info.status == "FINISHED"
    assert read.data.params["trainer.epochs"] == "2"
    assert (read.data.tags["state"], read.data.tags["dataset"]) == ("blessed", "abc")
    assert read.data.metrics["test_accuracy"] == 0.75
    assert read.data.metrics["test_f1/_a_ b"] == 0.5
    assert [row.value for row in client.get_metric_history(number, "val_accuracy")] == [0.5, 0.7]
    assert [file.path for file in client.list_artifacts(number)] == ["report.html"]
    failed = client.get_run(log(failed_run(finished)))
    assert (failed.info.status, failed.data.tags["reasons"]) == ("FAILED", "the gate is shut")


def test_the_example_for_weights_and_biases(finished, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    for name, value in (("WANDB_MODE", "offline"), ("WANDB_SILENT", "true"), ("WANDB_DIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    log = example("tracking_wandb").log
    log(finished)
    log(failed_run(finished))
    # Its process has written all files when it ends.
    wandb.teardown()
    logged = [file.read_bytes() for file in sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))]
    assert len(logged) == 2
    assert any(all(text in data for text in (b"val/accuracy", b"test/accuracy", b"report.html")) for data in logged)
    assert any(b"the gate is shut" in data for data in logged)
