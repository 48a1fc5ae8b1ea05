"""Beam's portable runners for real: a job service, and workers that it starts or connects to, none of them in Java."""

import json
import shutil
import sys
from functools import partial

import build
import pytest
from apache_beam.portability import python_urns
from apache_beam.runners.portability import local_job_service
from example_gen import execute, parameters
from ingesting import run, tree
from tfx.types import standard_artifacts

from shardwright.components.image_transform import executor
from shardwright.components.image_transform.transform_recipe import transform_recipe
from shardwright.components.runtime.beam import beam_args
from shardwright.config import parse_config

pytestmark = [pytest.mark.slow, pytest.mark.two_stacks]

# Python's own PROCESS: Beam's needs the launcher that is in its images only.
SUBPROCESS = [
    f"--environment_type={python_urns.SUBPROCESS_SDK}",
    f"--environment_config={sys.executable} -m apache_beam.runners.worker.sdk_worker_main",
]


class JobService:
    """A job service that listens, and counts the jobs that it was given."""

    def __init__(self) -> None:
        self._service = local_job_service.LocalJobServicer()
        self._port = self._service.start_grpc_server(0)

    @property
    def jobs(self) -> int:
        return len(self._service._jobs)

    def options(self, environment: list[str]) -> list[str]:
        return beam_args(["--runner=PortableRunner", f"--job_endpoint=localhost:{self._port}", *environment])

    def stop(self) -> None:
        self._service.stop()


@pytest.fixture
def job_service():
    service = JobService()
    yield service
    service.stop()


@pytest.mark.parametrize("environment", [["--environment_type=LOOPBACK"], SUBPROCESS], ids=["loopback", "process"])
def test_image_example_gen(job_service, environment, image_input, tmp_path, monkeypatch):
    raw = {**image_input(tmp_path / "in", images=8), "shards": {"records": 3}}
    run(raw, tmp_path / "cli")
    properties = parameters(parse_config(raw, base="/"), monkeypatch, tmp_path / "staging")
    artifact = execute(tmp_path / "examples" / "1", properties, job_service.options(environment))
    assert tree(artifact.uri) == tree(tmp_path / "cli")
    assert job_service.jobs == 1


def test_image_transform(job_service, small_dataset, tmp_path, monkeypatch):
    source = small_dataset(tmp_path / "in", counts={"train": [2, 1], "eval": [1]})
    config = build.config(transform={"size": [20, 30]})
    # Only shards and statistics are given to the runner; the graph of the first run is good for the second.
    graph = tmp_path / "direct/out/transform_graph"
    trees = {}
    for name, options in (("direct", []), ("portable", job_service.options(SUBPROCESS))):
        monkeypatch.setenv("SHARDWRIGHT_STAGING", str(tmp_path / name / "staging"))
        outputs = {
            "transformed_examples": standard_artifacts.Examples(),
            "transform_graph": standard_artifacts.TransformGraph(),
            "post_transform_stats": standard_artifacts.ExampleStatistics(),
            "post_transform_schema": standard_artifacts.Schema(),
        }
        for output, artifact in outputs.items():
            artifact.uri = str(tmp_path / name / "out" / output)
        examples = standard_artifacts.Examples()
        examples.uri = str(source)
        context = executor.Executor.Context(options, tmp_dir=str(tmp_path / "tmp"), unique_id="1")
        given = {name: [artifact] for name, artifact in outputs.items()}
        if graph.exists():
            copied = partial(shutil.copytree, graph, dirs_exist_ok=True)
            monkeypatch.setattr(executor, "write_graph", lambda *given, copied=copied: copied(given[-1]))
        executor.Executor(context).Do({"examples": [examples]}, given, {"recipe": transform_recipe(config)})
        files = (file for file in (tmp_path / name / "out").rglob("*") if file.is_file())
        # TensorFlow numbers the functions of a SavedModel by what the process traced before.
        trees[name] = {
            str(file.relative_to(tmp_path / name)): file.read_bytes()
            for file in files
            if "transform_fn" not in file.parts
        }
    assert trees["direct"] == trees["portable"]
    assert json.loads(trees["portable"]["out/transformed_examples/statistics.json"])["images"] == 3
    assert job_service.jobs == 2, "one for the shards, one for the statistics"
