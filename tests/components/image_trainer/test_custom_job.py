"""The CustomJob that trains on Vertex AI: TFX's own client makes it, and the command of its container is run.

On a slice of two machines, as both of them do.
"""

import json
import os
import socket
import subprocess
import sys

import pytest
from sandbox import start_container, training_model
from tfx.extensions.google_cloud_ai_platform import training_clients
from tfx.types import standard_artifacts
from tfx.utils import json_utils

from shardwright.components.image_trainer.training.history import read_summary
from shardwright.config import parse_config
from shardwright.lineage.record import read_lineage
from shardwright.pipelines.compile_vertex import worker_pools

pytestmark = pytest.mark.slow

IMAGE = "registry.example/shardwright:1.0"
CONFIG = {
    "name": "clouds",
    "input": {"images": "gs://bucket/x"},
    "trainer": {
        "model": training_model(),
        "epochs": 1,
        "batch_size": 4,
        "hosts": 2,
    },
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
    from shardwright.components.image_trainer.spec import TrainRecipe

    config = parse_config(CONFIG, base="/")
    data = write_shapes(tmp_path / "data", size=(32, 32))
    asked = jobs_that_succeed(monkeypatch)
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
        RUNNING_KEY: TrainRecipe.from_config(config).running,
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
    command = pool["container_spec"]["command"]
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


def jobs_that_succeed(monkeypatch):
    """Google's client, as far as the executor uses it; returns the list of jobs that it is asked for."""
    asked = []

    class Client:
        def __init__(self, **_):
            pass

        def create_custom_job(self, parent, custom_job):
            asked.append((parent, custom_job))
            return type("Job", (), {"name": "jobs/1"})

        def get_custom_job(self, name, retry):
            return type("Job", (), {"state": training_clients._VERTEX_JOB_STATE_SUCCEEDED, "error": None})

    monkeypatch.setattr(training_clients.gapic, "JobServiceClient", Client)
    return asked


# A function of a user: it exports a model that needs no training.
OWN = """
import tensorflow as tf

def run_fn(fn_args):
    assert fn_args.custom_config["recipe"]["trainer"]["epochs"] == 3
    module = tf.Module()
    module.serve = tf.function(lambda x: {"y": x + 1.0}, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, fn_args.serving_model_dir, signatures={"serving_default": module.serve})
"""


def test_a_compiled_pipeline_trains_with_a_function_of_the_user_in_a_job(tmp_path, write_shapes, monkeypatch):
    """The document, the container of the step, and the container of the job that the step asks for."""
    from tfx import v1 as tfx

    from shardwright.components import ImageTrainer
    from shardwright.components.runtime import container

    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    pools = [{"machine_spec": {"machine_type": "g2-standard-8"}, "container_spec": {"image_uri": IMAGE}}]
    job = {
        "ai_platform_enable_vertex": True,
        "ai_platform_vertex_region": "europe-west4",
        "ai_platform_training_args": {"project": "my-project", "job_spec": {"worker_pool_specs": pools}},
    }
    data = write_shapes(tmp_path / "data", size=(32, 32))
    examples, graph = standard_artifacts.Examples, standard_artifacts.TransformGraph
    importers = [
        tfx.dsl.Importer(source_uri=str(data), artifact_type=examples).with_id("examples"),
        tfx.dsl.Importer(source_uri=str(tmp_path / "graph"), artifact_type=graph).with_id("graph"),
    ]
    trainer = ImageTrainer(
        *(one.outputs["result"] for one in importers),
        task="classification", trainer={"epochs": 3}, run_fn="own:run_fn", custom_job=job,
    )  # fmt: skip
    runner = tfx.orchestration.experimental.KubeflowV2DagRunner(
        config=tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(
            default_image=IMAGE, default_commands=["python", "-m", container.MODULE], use_pipeline_spec_2_1=True
        ),
        output_filename="own.json",
    )
    runner.run(tfx.dsl.Pipeline("own", pipeline_root="gs://bucket/runs", components=[*importers, trainer]))
    spec = json.loads((tmp_path / "own.json").read_text(encoding="utf-8"))["pipelineSpec"]
    task = spec["root"]["dag"]["tasks"]["ImageTrainer"]
    args = spec["deploymentSpec"]["executors"]["ImageTrainer_executor"]["container"]["args"]
    constants = {name: one["runtimeValue"]["constant"] for name, one in task["inputs"]["parameters"].items()}
    types = {
        key: one["artifactType"]
        for key, one in spec["components"]["ImageTrainer"]["outputDefinitions"]["artifacts"].items()
    }
    outputs = {key: {"name": key, "uri": str(tmp_path / key), "type": kind} for key, kind in types.items()}
    given = {
        "examples": {"name": "examples", "uri": str(data), "metadata": {"split_names": '["eval", "test", "train"]'}},
        "transform_graph": {"name": "graph", "uri": str(tmp_path / "graph")},
    }
    # Types that are empty, as on Kubeflow: the container takes them from the arguments.
    invocation = {
        "inputs": {
            "parameterValues": constants,
            "artifacts": {key: {"artifacts": [{**one, "type": {"instanceSchema": ""}}]} for key, one in given.items()},
        },
        "outputs": {
            "artifacts": {key: {"artifacts": [one]} for key, one in outputs.items()},
            "outputFile": str(tmp_path / "made.json"),
        },
    }
    asked = jobs_that_succeed(monkeypatch)
    arguments = [json.dumps(invocation) if part == "{{$}}" else part for part in args]
    assert container.main(arguments) == 0
    ((_, wanted),) = asked
    (pool,) = wanted["job_spec"]["worker_pool_specs"]
    process = start(pool["container_spec"]["command"], {}, tmp_path)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output[-3000:]
    model = tmp_path / "model"
    assert (model / "Format-Serving" / "saved_model.pb").is_file()
    # Pusher takes a model that names its dataset.
    assert list(read_lineage(model)["parents"]) == ["dataset"]


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
    """Starts a container of the job; its bucket and its working folder are in `folder`."""
    return start_container(
        command,
        environment={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment},
        folder=folder.with_name(f"{folder.name}-machine-{environment.get('TPU_WORKER_ID', 0)}"),
        writable=[folder],
        stdout=subprocess.PIPE,
        text=True,
    )
