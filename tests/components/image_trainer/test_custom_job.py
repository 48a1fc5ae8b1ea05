"""The CustomJob that trains on Vertex AI: TFX's own client makes it, and the command of its container is run.

On a slice of two machines, as both of them do.
"""

import json
import os
import socket
import subprocess
import sys

import pytest
from tfx.extensions.google_cloud_ai_platform import training_clients
from tfx.types import standard_artifacts
from tfx.utils import json_utils

from shardwright.components.image_trainer.training.history import read_summary
from shardwright.config import parse_config
from shardwright.lineage.record import read_lineage
from shardwright.pipelines.vertex import worker_pools

pytestmark = pytest.mark.slow

IMAGE = "registry.example/shardwright:1.0"
CONFIG = {
    "name": "clouds",
    "input": {"images": "gs://bucket/x"},
    "trainer": {"model": "own_models:normed", "epochs": 1, "batch_size": 4, "hosts": 2},
    "loader": {"normalize": "unit"},
    "vertex": {
        "image": IMAGE,
        "pipeline_root": "gs://bucket/runs",
        "trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x4"},
    },
}


def artifact(kind, uri, **properties):
    made = kind()
    made.uri = str(uri)
    for name, value in properties.items():
        setattr(made, name, value)
    return [made]


def test_the_command_of_the_job_trains_a_model(tmp_path, write_shapes, monkeypatch):
    """As in a pipeline: the Trainer's step asks for a job, and the job's container does the work."""
    from shardwright.components.image_trainer.custom_job import Executor
    from shardwright.components.image_trainer.run_fn import RECIPE_KEY, RUNNING_KEY
    from shardwright.components.image_trainer.spec import RunOptions, TrainRecipe

    config = parse_config(CONFIG, base="/")
    data = write_shapes(tmp_path / "data", size=(32, 32))
    asked = []

    class Client:
        """Google's, as far as the executor uses it."""

        def __init__(self, **_):
            pass

        def create_custom_job(self, parent, custom_job):
            asked.append((parent, custom_job))
            return type("Job", (), {"name": "jobs/1"})

        def get_custom_job(self, name, retry):
            return type("Job", (), {"state": training_clients._VERTEX_JOB_STATE_SUCCEEDED, "error": None})

    monkeypatch.setattr(training_clients.gapic, "JobServiceClient", Client)
    inputs = {
        "examples": artifact(standard_artifacts.Examples, data, split_names='["eval", "test", "train"]'),
        "transform_graph": artifact(standard_artifacts.TransformGraph, tmp_path / "graph"),
    }
    outputs = {
        "model": artifact(standard_artifacts.Model, tmp_path / "model"),
        "model_run": artifact(standard_artifacts.ModelRun, tmp_path / "run"),
    }
    custom = {
        RECIPE_KEY: TrainRecipe.from_config(config).to_dict(),
        RUNNING_KEY: RunOptions.from_config(config).to_dict(),
        "ai_platform_enable_vertex": True,
        "ai_platform_vertex_region": "europe-west4",
        "ai_platform_training_args": {
            "project": "my-project",
            "display_name": "clouds-trainer",
            "labels": {"team": "clouds"},
            "job_spec": {"worker_pool_specs": worker_pools(config)},
        },
    }
    properties = {
        "run_fn": "shardwright.components.image_trainer.run_fn.run_fn",
        "train_args": json.dumps({"splits": ["train"]}),
        "eval_args": json.dumps({"splits": ["eval"]}),
        "custom_config": json_utils.dumps(custom),
    }
    Executor().Do(inputs, outputs, properties)

    ((parent, job),) = asked
    assert parent == "projects/my-project/locations/europe-west4"
    assert job["labels"]["team"] == "clouds"
    (pool,) = job["job_spec"]["worker_pool_specs"]
    assert (pool["container_spec"]["image_uri"], pool["replica_count"]) == (IMAGE, 1)
    assert pool["machine_spec"] == {"machine_type": "ct5lp-hightpu-4t", "tpu_topology": "2x4"}
    program, *command = pool["container_spec"]["command"]
    assert program == "python"
    variables = {one["name"]: one["value"] for one in pool["container_spec"]["env"]}
    assert variables["SHARDWRIGHT_STAGING"] == "gs://bucket/runs/staging"
    variables["SHARDWRIGHT_STAGING"] = str(tmp_path / "staging")
    started = [start(command, {**variables, **machine}, tmp_path) for machine in slice_of_two()]
    for process in started:
        output = process.communicate()[0]
        assert process.returncode == 0, output[-3000:]
    assert (tmp_path / "model" / "Format-Serving" / "saved_model.pb").is_file()
    summary = read_summary(tmp_path / "run")
    assert (len(summary.epochs), summary.backend, summary.hosts) == (1, "jax", 2)
    assert read_lineage(tmp_path / "model")["image"] == IMAGE
    # Nothing of the second machine's, and no checkpoint, is left.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "model", "run", "staging"]
    assert not list((tmp_path / "staging").rglob("*.ckpt"))


def slice_of_two():
    """The environments of a slice's machines: Vertex AI counts one replica, the TPU two workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        first = f"127.0.0.1:{free.getsockname()[1]}"
    replica = {"cluster": {"workerpool0": ["replica:2222"]}, "task": {"type": "workerpool0", "index": 0}}
    for number in range(2):
        names = f"{first},127.0.0.1"
        yield {"CLUSTER_SPEC": json.dumps(replica), "TPU_WORKER_HOSTNAMES": names, "TPU_WORKER_ID": str(number)}


def start(command, environment, folder):
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
