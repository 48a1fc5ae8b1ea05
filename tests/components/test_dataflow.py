"""The job that Dataflow would get from ImageExampleGen: built by Beam's own code as for a submission, and not sent."""

import json
from pathlib import Path

import pytest
from apache_beam.internal.gcp import auth
from apache_beam.io.gcp import gcsio
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, SetupOptions, StandardOptions
from apache_beam.runners.dataflow import dataflow_runner
from apache_beam.runners.dataflow.internal import apiclient
from google.protobuf import json_format
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from shardwright.config import parse_config
from shardwright.errors import CheckFailed, ConfigError
from shardwright.ingest import IngestRecipe, ingest_recipe, input_fingerprint, locate, survey_input
from shardwright_components.image_example_gen.executor import Executor
from shardwright_pipelines.vertex import dataflow_options

IMAGE = "registry.example/shardwright:1.0"
VERTEX = {
    "project": "my-project",
    "region": "europe-west4",
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "pipeline_root": "gs://bucket/runs",
    "image": IMAGE,
    "labels": {"team": "clouds"},
    "dataflow": {
        "components": ["ImageExampleGen"],
        "machine": "n2-standard-8",
        "max_workers": 7,
        "subnetwork": "regions/europe-west4/subnetworks/ml",
        "public_ips": False,
    },
}


def plain(message):
    """A request as plain values; Beam writes them with apitools up to 2.59 at least, with proto-plus in 2.77."""
    if hasattr(message, "_pb"):
        return json_format.MessageToDict(message._pb)
    from apitools.base.py import encoding

    return json.loads(encoding.MessageToJson(message))


@pytest.fixture
def jobs(monkeypatch):
    """What is asked of Dataflow: job and environment, as plain values, and the pipeline itself."""
    seen = []
    run = dataflow_runner.DataflowRunner.run_pipeline

    def watched(self, pipeline, options, **given):
        result = run(self, pipeline, options, **given)
        environment = apiclient.Environment([], options, "8", "gs://bucket/pipeline.pb", self.proto_pipeline)
        seen.append((plain(environment.proto), plain(self.job.proto), self.proto_pipeline, options))
        return result

    monkeypatch.setattr(dataflow_runner.DataflowRunner, "run_pipeline", watched)
    # Whatever would ask Google is answered here.
    monkeypatch.setattr(auth, "get_service_credentials", lambda options: None)
    monkeypatch.setattr(gcsio.GcsIO, "is_soft_delete_enabled", lambda self, path: False)
    return seen


def test_the_request_for_image_example_gen(jobs, tmp_path, image_input, monkeypatch):
    config = parse_config({**image_input(tmp_path / "in"), "vertex": VERTEX}, base="/")
    location = locate(config)
    monkeypatch.setenv("SHARDWRIGHT_INPUT", json.dumps(vars(location)))
    monkeypatch.setenv("SHARDWRIGHT_STAGING", str(tmp_path / "staging"))
    properties = {
        "input_fingerprint": input_fingerprint(config, location),
        "recipe": ingest_recipe(config, survey_input(IngestRecipe.of(config), location).survey.classes),
        "input_location": "",
    }
    arguments = [*dataflow_options(config.vertex, "gs://bucket/runs"), "--dry_run=True", "--no_auth"]
    examples = standard_artifacts.Examples()
    examples.uri = str(tmp_path / "examples")
    Path(examples.uri).mkdir()
    context = BaseBeamExecutor.Context(beam_pipeline_args=arguments, tmp_dir=str(tmp_path / "tmp"), unique_id="1")
    # No worker writes a shard, and that is seen.
    with pytest.raises(CheckFailed, match="shard"):
        Executor(context).Do({}, {"examples": [examples]}, properties)

    ((environment, job, pipeline, options),) = jobs
    (pool,) = environment["workerPools"]
    assert pool["machineType"] == "n2-standard-8"
    assert pool["autoscalingSettings"]["maxNumWorkers"] == 7
    assert pool["ipConfiguration"] == "WORKER_IP_PRIVATE"
    assert pool["subnetwork"] == "regions/europe-west4/subnetworks/ml"
    assert {one["containerImage"] for one in pool["sdkHarnessContainerImages"]} == {IMAGE}
    assert environment["serviceAccountEmail"] == VERTEX["service_account"]
    assert environment["tempStoragePrefix"].startswith("storage.googleapis.com/bucket/runs/beam/temp")
    assert "use_runner_v2" in environment["experiments"]
    assert job["labels"]["team"] == "clouds"
    # Workers have the code in their image: no session, no package and no source goes along.
    assert not options.view_as(SetupOptions).save_main_session
    assert not pool.get("packages")
    names = {step.unique_name for step in pipeline.components.transforms.values()}
    assert {"ShardNumbers", "Spread", "WriteShard"} <= names
    # The plan goes along with the step that writes, and no list of images does.
    assert len(pipeline.SerializeToString()) < 100_000


def test_components_that_work_on_folders_are_kept_from_it():
    wrong = {**VERTEX, "dataflow": {"components": ["ImageTransform"]}}
    with pytest.raises(ConfigError, match=r"vertex\.dataflow\.components\.ImageTransform: .* Use: ImageExampleGen"):
        parse_config({"input": {"images": "gs://bucket/x"}, "vertex": wrong}, base="/")


@pytest.mark.parametrize(
    ("runner", "environment", "further"),
    [
        ("FlinkRunner", "DOCKER", "--flink_master=flink:8081"),
        ("SparkRunner", "EXTERNAL", "--environment_config=workers:50000"),
        ("PortableRunner", "PROCESS", "--job_endpoint=jobs:8099"),
    ],
)
def test_other_clusters_are_told_in_beams_own_words(runner, environment, further):
    options = [f"--runner={runner}", f"--environment_type={environment}", further]
    config = parse_config({"input": {"images": "x"}, "beam": {"per_component": {"ImageExampleGen": options}}}, base="/")
    read = PipelineOptions(list(config.beam.per_component["ImageExampleGen"]))
    assert read.view_as(StandardOptions).runner == runner
    assert read.view_as(PortableOptions).environment_type == environment
    name, value = further.removeprefix("--").split("=")
    assert read.get_all_options(retain_unknown_options=True)[name] == value
