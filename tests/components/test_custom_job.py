"""The CustomJob that trains on Vertex AI: TFX's own client makes it, and the command of its container is run."""

import json
import subprocess
import sys

import pytest
from tfx.extensions.google_cloud_ai_platform import training_clients
from tfx.extensions.google_cloud_ai_platform.trainer import executor as vertex_trainer
from tfx.types import standard_artifacts
from tfx.utils import json_utils

from shardwright.config import parse_config
from shardwright_components.image_trainer.training_summary import read_summary
from shardwright_pipelines.vertex import worker_pools

pytestmark = pytest.mark.slow

IMAGE = "registry.example/shardwright:1.0"
CONFIG = {
    "name": "clouds",
    "input": {"images": "gs://bucket/x"},
    "trainer": {"epochs": 1, "width": 4, "batch_size": 4},
    "loader": {"normalize": "unit"},
    "vertex": {"image": IMAGE, "trainer": {"machine": "g2-standard-8", "gpu": "NVIDIA_L4", "gpus": 1}},
}


def artifact(kind, uri, **properties):
    made = kind()
    made.uri = str(uri)
    for name, value in properties.items():
        setattr(made, name, value)
    return [made]


def test_the_command_of_the_job_trains_a_model(tmp_path, write_shapes, monkeypatch):
    """As in a pipeline: the Trainer's step asks for a job, and the job's container does the work."""
    from shardwright_components.image_trainer.run_fn import RECIPE_KEY
    from shardwright_components.image_trainer.spec import Recipe

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
        RECIPE_KEY: Recipe.from_config(config).to_dict(),
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
        "run_fn": "shardwright_components.image_trainer.run_fn.run_fn",
        "train_args": json.dumps({"splits": ["train"]}),
        "eval_args": json.dumps({"splits": ["eval"]}),
        "custom_config": json_utils.dumps(custom),
    }
    vertex_trainer.GenericExecutor().Do(inputs, outputs, properties)

    ((parent, job),) = asked
    assert parent == "projects/my-project/locations/europe-west4"
    assert job["labels"]["team"] == "clouds"
    (pool,) = job["job_spec"]["worker_pool_specs"]
    assert pool["container_spec"]["image_uri"] == IMAGE
    program, *command = pool["container_spec"]["command"]
    assert program == "python"
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "model" / "Format-Serving" / "saved_model.pb").is_file()
    assert len(read_summary(tmp_path / "run").epochs) == 1
