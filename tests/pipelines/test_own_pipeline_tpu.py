"""The page of a pipeline of one's own with a TPU: both of its programs run without a network, and what they write.

On both stacks, so that a document that one compiles is one that an image with the other reads.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from shardwright.errors import ConfigError, UsageError
from shardwright.pipelines.own_pipeline import custom_job, place_trainer

PAGE = Path(__file__).parents[2] / "docs/tutorials/own-pipeline-tpu.md"
COMMAND = ["python", "-m", "shardwright.components.runtime.container", "--artifacts"]
# Whatever asks for an address fails.
OFFLINE = """
import socket
def refuse(*arguments, **options):
    raise SystemExit(f"contacted {arguments}")
socket.getaddrinfo = socket.create_connection = refuse
"""
VERTEX = {
    "project": "my-project",
    "region": "us-west1",
    "image": "r/i:1",
    "pipeline_root": "gs://my-bucket/runs",
    "trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x2"},
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with what the programs of the page have written."""
    folder = tmp_path_factory.mktemp("own")
    for block in re.findall(r"^```python\n(# .*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        (folder / block.partition("\n")[0].removeprefix("# ")).write_text(block)
    (folder / "offline").mkdir()
    (folder / "offline/sitecustomize.py").write_text(OFFLINE)
    for name in ("vertex.py", "gke.py"):
        program = f"exec(open('offline/sitecustomize.py').read()); exec(open({name!r}).read())"
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return folder


@pytest.mark.slow
@pytest.mark.two_stacks
def test_on_vertex_ai_a_custom_job_trains(compiled):
    document = json.loads((compiled / "vertex.json").read_text())
    spec = document["pipelineSpec"]
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    executors = {name: one["container"] for name, one in spec["deploymentSpec"]["executors"].items()}
    assert all(one["command"] == [*COMMAND, "mounted"] for one in executors.values())
    trains = executors["ImageTrainer_executor"]
    assert any("custom_job" in argument for argument in trains["args"])
    values = spec["root"]["dag"]["tasks"]["ImageTrainer"]["inputs"]["parameters"]
    (config,) = (one for name, one in values.items() if name == "custom_config")
    (text,) = (value for value in _texts(config) if value.startswith("{"))
    pool = json.loads(text)["ai_platform_training_args"]["job_spec"]["worker_pool_specs"][0]
    assert pool["machine_spec"] == {"machine_type": "ct5lp-hightpu-4t", "tpu_topology": "2x4"}
    assert pool["container_spec"]["image_uri"].endswith("/flowers:1")
    assert json.loads(text)["running"] == {"accelerator": "tpu", "hosts": 2}


def _texts(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.slow
@pytest.mark.two_stacks
def test_on_gke_the_task_starts_a_jobset_of_two_hosts(compiled):
    spec, platform = yaml.safe_load_all((compiled / "gke.yaml").read_text())
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    executors = {name: one["container"] for name, one in spec["deploymentSpec"]["executors"].items()}
    assert all(one["command"] == [*COMMAND, "local"] for one in executors.values())
    flag, template, shared, folder, *rest = executors["ImageTrainer_executor"]["args"]
    assert (flag, shared, folder) == ("--jobset", "--shared", "/models/.shardwright-jobsets")
    assert rest
    (job,) = json.loads(template)["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["parallelism"] == 2
    pod = job["template"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "2x4"
    assert pod["containers"][0]["image"].endswith("/flowers:1")
    named = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(named) == set(executors)
    assert all(one["pvcMount"] == [{"constant": "models", "mountPath": "/models"}] for one in named.values())
    assert "nodeSelector" not in named["ImageTrainer_executor"]  # The task that waits runs anywhere.


def document(task="Trainer"):
    container = {"image": "r/i:1", "command": COMMAND, "args": ["--x"]}
    return {"deploymentSpec": {"executors": {f"{task}_executor": {"container": container}}}}


def test_on_a_slice_of_one_host_the_task_asks_for_the_chips():
    made = document()
    platform = place_trainer(
        made,
        {"trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x2"}},
        trainer={"accelerator": "tpu"},
        task="Trainer",
    )
    container = made["deploymentSpec"]["executors"]["Trainer_executor"]["container"]
    assert container["resources"]["accelerator"] == {"type": "google.com/tpu", "count": "4"}
    assert container["args"] == ["--x"]
    (executor,) = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"].values()
    assert executor["nodeSelector"]["labels"]["cloud.google.com/gke-tpu-topology"] == "2x2"


def test_what_does_not_fit_is_refused():
    slice_of_two = {"trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x4"}}
    with pytest.raises(UsageError, match="ImageTrainer: is not in the pipeline; its tasks are Trainer"):
        place_trainer(document(), slice_of_two)
    with pytest.raises(ConfigError, match="hosts"):
        place_trainer(document(), slice_of_two, task="Trainer")
    with pytest.raises(UsageError, match="several hosts need a volume in common"):
        place_trainer(document(), slice_of_two, trainer={"hosts": 2}, task="Trainer")
    with pytest.raises(ConfigError, match=r"vertex\.project"):
        custom_job({key: value for key, value in VERTEX.items() if key != "project"})
    with pytest.raises(UsageError, match=r"vertex\.trainer\.machine: is missing"):
        custom_job({**VERTEX, "trainer": {}})
    with pytest.raises(ConfigError, match="hosts"):
        custom_job(VERTEX, trainer={"hosts": 3, "batch_size": 15})
