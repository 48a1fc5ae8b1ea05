"""Compiled documents and failures: retries, finished work that is kept, no fallback to the CPU.

The documents are the golden ones, which `test_compile` holds to what is compiled.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from shardwright.config import parse_config
from shardwright.errors import ConfigError
from shardwright.pipelines import compile_kubeflow as kubeflow
from shardwright.pipelines import compile_vertex as vertex
from shardwright.pipelines.cloud.pipeline_document import Target, _check_places, staging_notes

GOLDEN = Path(__file__).parent / "golden"
(_VERTEX,) = yaml.safe_load_all((GOLDEN / "vertex.yaml").read_text(encoding="utf-8"))
_KUBEFLOW, _ = yaml.safe_load_all((GOLDEN / "kubeflow.yaml").read_text(encoding="utf-8"))
SPECS = {"vertex": _VERTEX["pipelineSpec"], "kubeflow": _KUBEFLOW}
CONFIG = {
    "input": {"images": "x"},
    "vertex": {"pipeline_root": "gs://bucket/runs/clouds"},
    "kubeflow": {"push_directory": "/models/clouds", "volumes": [{"claim": "models", "path": "/models"}]},
}


@pytest.mark.parametrize(("target", "accelerator"), [("vertex", "gpu"), ("kubeflow", "tpu")])
def test_the_trainer_may_not_fall_back_to_the_cpu(target, accelerator):
    given = SPECS[target]["root"]["dag"]["tasks"]["Trainer"]["inputs"]["parameters"]
    custom = json.loads(given["custom_config"]["runtimeValue"]["constant"])
    assert custom["running"] == {"accelerator": accelerator}


# Argo neither starts nor keeps an attempt later than that after a task began; a training takes days.
@pytest.mark.parametrize(("target", "longest"), [("vertex", "3600s"), ("kubeflow", "2592000s")])
def test_every_task_is_tried_again(target, longest):
    tasks = SPECS[target]["root"]["dag"]["tasks"].values()
    assert len(tasks) == 13
    for task in tasks:
        policy = {"maxRetryCount": 2, "backoffDuration": "60s", "backoffFactor": 2, "backoffMaxDuration": longest}
        assert task["retryPolicy"] == policy


def test_finished_work_outlives_an_attempt():
    """The Trainer of this configuration trains in a CustomJob on Vertex AI, whose container has the variable."""

    def staged(spec):
        executors = spec["deploymentSpec"]["executors"]
        found = {
            label: {one["name"]: one["value"] for one in executor["container"]["env"]}.get("SHARDWRIGHT_STAGING")
            for label, executor in executors.items()
        }
        return {label: place for label, place in found.items() if place}

    writers = ("ImageExampleGen_executor", "ImageTransform_executor")
    assert staged(SPECS["vertex"]) == dict.fromkeys(writers, "gs://bucket/runs/clouds/staging")
    assert staged(SPECS["kubeflow"]) == dict.fromkeys((*writers, "Trainer_executor"), "/models/.shardwright-staging")


@pytest.mark.parametrize(
    ("kind", "own", "used"),
    [
        (vertex, "gs://fast/staging/", "gs://fast/staging"),
        (vertex, "s3://fast/staging", "gs://bucket/runs/clouds/staging"),
        (vertex, "/scratch", "gs://bucket/runs/clouds/staging"),
        (kubeflow, "gs://fast/staging", "gs://fast/staging"),
        (kubeflow, "/models/staging", "/models/staging"),
        (kubeflow, "/scratch", "/models/.shardwright-staging"),
    ],
)
def test_run_staging_is_used_or_noted(kind, own, used):
    config = parse_config({**CONFIG, "run": {"staging": own}}, base="/")
    assert kind._staging(config) == used
    notes = staging_notes(config, used, "no bucket")
    assert [f"run.staging: '{own}'" in note for note in notes] == ([] if own.startswith(used) else [True])


def test_folders_of_the_pipeline_may_not_become_input():
    target = Target("vertex", "image", "gs://b/photos/runs", None, "gs://b/pushed", lambda step: "")
    for images, data_root in (("gs://b/photos", None), ("gs://b/photos", "gs://b"), ("gs://b", None)):
        with pytest.raises(ConfigError, match=r"^vertex\.pipeline_root: gs://b/photos/runs is inside the input folder"):
            _check_places(replace(target, data_root=data_root), images)
    with pytest.raises(ConfigError, match=r"^vertex\.push_directory: gs://b/pushed is inside the input folder"):
        _check_places(target, "gs://b/pushed")
    for images, data_root in (("gs://b/other", None), ("gs://b/photos/*.jpg", "gs://b"), ("/data", None)):
        _check_places(replace(target, data_root=data_root), images)
