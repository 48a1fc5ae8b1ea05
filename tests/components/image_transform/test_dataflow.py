"""The jobs that Dataflow would get: built by Beam's own code as for a submission, and not sent."""

import json

import apache_beam as beam
import build
import pytest
from apache_beam.internal import pickler
from apache_beam.internal.gcp import auth
from apache_beam.io.gcp import gcsio
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    StandardOptions,
)
from apache_beam.runners.dataflow import dataflow_runner
from apache_beam.runners.dataflow.internal import apiclient
from example_gen import execute, input_on, parameters
from google.protobuf import json_format
from object_stores import running_stores
from recording import labeled, write_records
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor
from tfx.types import standard_artifacts
from vertex_section import IMAGE, VERTEX

from shardwright.components.image_transform import executor
from shardwright.components.image_transform import transform_plan as plan
from shardwright.components.image_transform.rewrite import ShardTransform
from shardwright.components.image_transform.transform_recipe import manifest_recipe, read_recipe, transform_recipe
from shardwright.components.image_transform.transformed_features import stored_features
from shardwright.components.runtime.tfx_compat import run_task
from shardwright.config import parse_config
from shardwright.config.vertex import ON_DATAFLOW
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.shard_names import shard_path
from shardwright.errors import CheckFailed, UsageError
from shardwright.pipelines.cli import main
from shardwright.pipelines.compile_vertex import dataflow_options
from shardwright.sample import write_sample
from shardwright.staging.commit import DatasetPlan
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage.checksum import checksum_of
from shardwright.storage.mirror import Mirror

SECTION = {
    **VERTEX,
    "dataflow": {
        "components": ["ImageExampleGen", "ImageTransform"],
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
    """The requests to Dataflow: job and environment, as plain values, and the pipeline itself."""
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


@pytest.fixture
def arguments():
    config = build.config(source="gs://bucket/x", vertex=SECTION)
    return [*dataflow_options(config.vertex, "gs://bucket/runs"), "--dry_run=True", "--no_auth"]


def check(job, *steps, size=100_000, workers=7):
    """Holds a job against the configuration; `size` is the most bytes that it may have."""
    environment, description, pipeline, options = job
    (pool,) = environment["workerPools"]
    assert pool["machineType"] == "n2-standard-8"
    assert pool["autoscalingSettings"]["maxNumWorkers"] == workers
    assert pool["ipConfiguration"] == "WORKER_IP_PRIVATE"
    assert pool["subnetwork"] == "regions/europe-west4/subnetworks/ml"
    # Separate threads write a shard, and it stays on the worker's disk until it is whole.
    assert pool["numThreadsPerWorker"] == 1
    assert {one["containerImage"] for one in pool["sdkHarnessContainerImages"]} == {IMAGE}
    assert environment["serviceAccountEmail"] == VERTEX["service_account"]
    assert environment["tempStoragePrefix"].startswith("storage.googleapis.com/bucket/runs/beam/temp")
    assert "use_runner_v2" in environment["experiments"]
    assert description["labels"]["team"] == "clouds"
    # Workers have the code in their image: no session, no package and no source goes along.
    assert not options.view_as(SetupOptions).save_main_session
    assert not pool.get("packages")
    assert set(steps) <= {step.unique_name for step in pipeline.components.transforms.values()}
    # The plan goes along with the step that writes, and no list of images does.
    assert len(pipeline.SerializeToString()) < size


def test_the_request_for_image_example_gen(jobs, arguments, tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        config = input_on(bucket, stores, tmp_path / "in", raw)
        properties = parameters(config, monkeypatch, f"{bucket}/staging")
        # No worker writes a shard, and that is seen.
        with pytest.raises(CheckFailed, match=r"shards are not written, .* run\.staging must be a folder that all"):
            execute(f"{bucket}/examples", properties, arguments)
        assert not stores.tree(f"{bucket}/examples")
    (job,) = jobs
    check(job, "Ranges", "Spread", "WriteRange")


def test_the_options_of_a_compiled_pipeline_reach_each_job(jobs, tmp_path, monkeypatch):
    """The arguments of the document's containers, in a pipeline that Beam's own runner describes and does not send."""
    write_sample(str(tmp_path / "data"), images=4, height=64, width=64, seed=3)
    key = "projects/my-project/locations/europe-west4/keyRings/ml/cryptoKeys/runs"
    config = {
        "name": "clouds",
        "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
        "transform": {"size": [16, 16]},
        "vertex": {
            **SECTION,
            "data_root": "gs://bucket/clouds",
            "dataflow": {**SECTION["dataflow"], "components": list(ON_DATAFLOW)},
        },
        "beam": {
            "options": [f"--dataflow_kms_key={key}", "--disk_size_gb=250"],
            "per_component": {"StatisticsGen": ["--experiments=enable_secure_boot", "--max_num_workers=3"]},
        },
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clouds.yaml").write_text(json.dumps(config), encoding="utf-8")
    assert main(["compile", "clouds.yaml", "--target", "vertex", "--out", "clouds.json"]) == 0
    spec = json.loads((tmp_path / "clouds.json").read_text(encoding="utf-8"))["pipelineSpec"]
    parsed = []
    monkeypatch.setattr(kubeflow_v2_run_executor, "main", parsed.append)
    for name in ON_DATAFLOW:
        how, _, *given = spec["deploymentSpec"]["executors"][f"{name}_executor"]["container"]["args"]
        assert how == "--artifacts"
        run_task(given)
        _, options = parsed.pop()
        with beam.Pipeline(argv=[*options, "--dry_run=True", "--no_auth"]) as pipeline:
            _ = pipeline | beam.Create([1]) | beam.Map(str)
        environment, _, _, read = job = jobs[-1]
        own = name == "StatisticsGen"
        check(job, workers=3 if own else 7)
        assert environment["serviceKmsKeyName"] == key
        assert environment["workerPools"][0]["diskSizeGb"] == 250
        assert ("enable_secure_boot" in environment["experiments"]) == own
        cloud = read.view_as(GoogleCloudOptions)
        assert (cloud.project, cloud.region) == ("my-project", "europe-west4")
    assert len(jobs) == len(ON_DATAFLOW)


@pytest.mark.parametrize("where", ["input", "staging"])
def test_folders_that_workers_cannot_reach_are_refused(jobs, arguments, tmp_path, image_input, monkeypatch, where):
    config = parse_config(image_input(tmp_path / "in"), base="/")
    properties = parameters(config, monkeypatch, tmp_path / "staging" if where == "staging" else "gs://bucket/staging")
    messages = {"input": r"the images \(input\.images\), /", "staging": r"the staging folder \(run\.staging\), /"}
    if where == "staging":
        monkeypatch.setenv("SHARDWRIGHT_INPUT", json.dumps({"images": "gs://bucket/images", "labels": None}))
    with pytest.raises(UsageError, match=rf"{messages[where]}.*is a folder of this machine"):
        execute(tmp_path / "examples", properties, arguments)
    assert not jobs


def test_compressed_records_which_workers_cannot_reach_are_refused(jobs, arguments, tmp_path, monkeypatch):
    write_records(tmp_path / "in" / "a.tfrecord.gz", labeled(12), "gzip")
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        stores.copy_of(tmp_path / "in", f"{bucket}/data")
        config = build.config(source=f"{bucket}/data", task="classification")
        properties = parameters(config, monkeypatch, f"{bucket}/staging")
        with pytest.raises(UsageError, match=r"compressed TFRecords are unpacked to \(unpack them beforehand\), /"):
            execute(f"{bucket}/examples", properties, arguments)
    assert not jobs


@pytest.mark.slow
def test_the_requests_for_image_transform(jobs, arguments, tmp_path, small_dataset, monkeypatch):
    source = small_dataset(tmp_path / "in", counts={"train": [1, 1], "eval": [1]})
    recipe = transform_recipe(build.config(transform={"size": [20, 30]}))
    outputs = {
        "transformed_examples": standard_artifacts.Examples(),
        "transform_graph": standard_artifacts.TransformGraph(),
        "post_transform_stats": standard_artifacts.ExampleStatistics(),
        "post_transform_schema": standard_artifacts.Schema(),
    }
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        stores.copy_of(source, f"{bucket}/in")
        monkeypatch.setenv("SHARDWRIGHT_STAGING", f"{bucket}/staging")
        for name, artifact in outputs.items():
            artifact.uri = f"{bucket}/{name}"
        examples = standard_artifacts.Examples()
        examples.uri = f"{bucket}/in"

        def transform():
            context = executor.Executor.Context(arguments, tmp_dir=str(tmp_path), unique_id="1")
            given = {name: [artifact] for name, artifact in outputs.items()}
            executor.Executor(context).Do({"examples": [examples]}, given, {"recipe": recipe})

        with pytest.raises(CheckFailed, match="3 of 3 shards are not written"):
            transform()
        # The work of Dataflow's workers.
        dataset = ImageDataset.open(f"{bucket}/in")
        planned = plan.plan_transform(dataset, *read_recipe(recipe))
        staging = plan.open_staging(f"{bucket}/staging", planned.dataset)
        work = plan.TransformWork.of(dataset, planned, staging, {})
        for number in range(len(work.shards)):
            plan.write_numbered(number, work)
        with pytest.raises(CheckFailed, match=r"FeatureStats\.pb: Beam's workers have not written it"):
            transform()
        assert not any(stores.tree(artifact.uri) for artifact in outputs.values())
    check(jobs[0], "Numbers", "Spread", "Call")
    check(jobs[-1], "Shards", "Spread", "Batches", "Statistics", "Keep", size=1_000_000)
    assert len(jobs) == 3


@pytest.mark.slow
def test_the_shards_of_ten_million_images_fit_into_a_request():
    total = 44_867
    config = build.config()
    recipe = config.transform.effective(config.task)
    stored, _ = stored_features(recipe, {"image/encoded": "bytes"}, labels="single", classes=4)
    names = tuple(
        (PlannedShard("train", i, total), shard_path("train", i, total), checksum_of(b"%d" % i)) for i in range(total)
    )
    staging = Staging("/tmp/w", "f" * 64, Mirror("gs://bucket/staging/" + "f" * 64))
    how = ShardTransform(recipe, "classification", ("a", "b"), stored)
    dataset = DatasetPlan(
        "transform", "classification", ("a", "b"), manifest_recipe(recipe), "0" * 64, stored.kinds, 0, ()
    )
    work = plan.TransformWork(staging, "gs://bucket/in", names, how, dataset.outline())
    # Dataflow takes 10 MB.
    assert len(pickler.dumps(work)) < 4_000_000


@pytest.mark.parametrize(
    ("runner", "environment", "further"),
    [
        ("FlinkRunner", "DOCKER", "--flink_master=flink:8081"),
        ("SparkRunner", "EXTERNAL", "--environment_config=workers:50000"),
        ("PortableRunner", "PROCESS", "--job_endpoint=jobs:8099"),
    ],
)
def test_other_clusters_are_set_by_the_options_of_beam(runner, environment, further):
    options = [f"--runner={runner}", f"--environment_type={environment}", further]
    config = build.config(beam={"per_component": {"ImageExampleGen": options}})
    read = PipelineOptions(list(config.beam.per_component["ImageExampleGen"]))
    assert read.view_as(StandardOptions).runner == runner
    assert read.view_as(PortableOptions).environment_type == environment
    name, value = further.removeprefix("--").split("=")
    assert read.get_all_options(retain_unknown_options=True)[name] == value
