"""Our components and TFX's in pipelines of other people; docs/how-to/other-programs.md lists these tests."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from emulator import CACHED, RAN, Emulator, TaskFailed
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from model_server import Runner
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.lineage.blessing import read_blessing
from shardwright.lineage.record import read_lineage
from shardwright.pipelines.cli import main
from shardwright.sample import write_sample
from shardwright.tfrecords.records import read_records

pytestmark = pytest.mark.slow
# The other stack runs one pipeline with all components, and what depends on the keys of TFX's cache.

STRANGERS = Path(__file__).with_name("strangers")
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "other-programs.md"


def project(folder):
    """A folder as TFX authors have it, with photographs of two classes and folders of the names that projects have."""
    shutil.copytree(STRANGERS, folder, dirs_exist_ok=True)
    draw = np.random.default_rng(0)
    for number in range(24):
        file = folder / "photographs" / ("daisy", "rose")[number % 2] / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (24, 32, 3), dtype=np.uint8)).save(file)
    for name in ("components", "pipelines"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise SystemExit('{name} of the project')\n")
    return folder


def run(folder, script, *arguments):
    done = subprocess.run(
        [sys.executable, script, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """The finished pipeline behind ImageExampleGen."""
    folder = project(tmp_path_factory.mktemp("strangers"))
    run(folder, "own_examples.py")
    return folder


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The finished pipeline behind ImportExampleGen."""
    folder = project(tmp_path_factory.mktemp("imported"))
    write_sample(str(folder / "data"), images=20, height=64, width=96, seed=3)
    data = folder / "data"
    text = f"task: segmentation\ninput: {{images: {data}/train_images, labels: {{path: {data}/train.csv}}}}\n"
    (folder / "clouds.yaml").write_text(
        f"{text}split: {{ratios: {{train: 0.6, eval: 0.2, test: 0.2}}}}\nshards: {{count: 2}}\n"
    )
    assert main(["ingest", str(folder / "clouds.yaml"), "--out", str(folder / "dataset")]) == 0
    run(folder, "imported.py")
    return folder


def output(folder, node, key):
    (found,) = (folder / "runs" / node / key).iterdir()
    return found


@pytest.mark.two_stacks
def test_stock_components_behind_image_example_gen(strangers):
    for node, key, files in (
        ("StatisticsGen", "statistics", "Split-train/FeatureStats.pb"),
        ("SchemaGen", "schema", "schema.pbtxt"),
        ("ExampleValidator", "anomalies", "Split-train/SchemaDiff.pb"),
        ("Tuner", "best_hyperparameters", "best_hyperparameters.txt"),
        ("Trainer", "model", "Format-Serving/saved_model.pb"),
        ("Evaluator", "evaluation", "metrics-00000-of-00001.tfrecord"),
        ("Evaluator", "blessing", "BLESSED"),
        ("BulkInferrer", "inference_result", "prediction_logs*"),
    ):
        assert list(output(strangers, node, key).glob(files)), node
    assert len(list((strangers / "pushed-by-tfx").iterdir())) == 1


@pytest.mark.two_stacks
def test_a_condition_on_either_evaluator_decides(strangers):
    assert (strangers / "runs" / "PushedIfBlessed").exists()
    assert not (strangers / "runs" / "PushedIfNotBlessed").exists()
    assert not (strangers / "never").exists()


@pytest.mark.two_stacks
def test_our_components_behind_stock_ones(strangers):
    assert json.loads((output(strangers, "DataGate", "decision") / "decision.json").read_text())["anomalies"] == 0
    assert (output(strangers, "Report", "report") / "report.html").is_file()
    dataset = ImageDataset.open(output(strangers, "ImageExampleGen", "examples"))
    small = ImageDataset.open(output(strangers, "ImageTransform", "transformed_examples"))
    assert small.manifest.parent == dataset.manifest.digest
    evaluation = json.loads((output(strangers, "ImageEvaluator", "evaluation") / "summary.json").read_text())
    assert "accuracy" in evaluation["metrics"]
    assert read_blessing(strangers / "pushed") is not None
    with (output(strangers, "Predictor", "predictions") / "predictions.csv").open() as file:
        assert len(file.readlines()) == 1 + 24


@pytest.mark.two_stacks
def test_image_trainer_takes_callbacks_and_functions(strangers):
    assert (output(strangers, "ImageTrainer", "model_run") / "epochs.csv").read_text().startswith("epoch,")
    model = output(strangers, "TrainedByFunction", "model")
    dataset = ImageDataset.open(output(strangers, "ImageTransform", "transformed_examples"))
    for folder in (model, model / "Format-Serving"):
        lineage = read_lineage(folder)
        assert lineage["parents"] == {"dataset": dataset.manifest.digest}
        assert lineage["recipe"]["mine"] == 1


def infra_validation(folder, signature, monkeypatch, out):
    """The blessing of InfraValidator's own executor, with the model server of the tests for TF Serving."""
    from tfx import v1 as tfx
    from tfx.components.infra_validator import executor
    from tfx.dsl.components.base.base_executor import BaseExecutor
    from tfx.types import artifact_utils, standard_artifacts
    from tfx.utils import proto_utils

    examples, model = standard_artifacts.Examples(), standard_artifacts.Model()
    examples.uri = str(output(folder, "ImageExampleGen", "examples"))
    examples.split_names = artifact_utils.encode_split_names(["eval", "test", "train"])
    model.uri = str(output(folder, "ImageTrainer", "model"))
    blessing = standard_artifacts.InfraBlessing()
    blessing.uri = str(out)
    runners = []

    def start(model_path, serving_binary, serving_spec):
        runners.append(Runner(model_path, serving_spec.model_name))
        return runners[-1]

    monkeypatch.setattr(executor, "_create_model_server_runner", start)
    serving = tfx.proto.ServingSpec(
        tensorflow_serving=tfx.proto.TensorFlowServing(tags=["2.16.1"]),
        local_docker=tfx.proto.LocalDockerConfig(),
        model_name="images",
    )
    asked = tfx.proto.RequestSpec(
        tensorflow_serving=tfx.proto.TensorFlowServingRequestSpec(signature_names=[signature]),
        num_examples=3,
        split_name="eval",
        make_warmup=True,
    )
    properties = {
        "serving_spec": proto_utils.proto_to_json(serving),
        "validation_spec": proto_utils.proto_to_json(tfx.proto.ValidationSpec(num_tries=1)),
        "request_spec": proto_utils.proto_to_json(asked),
    }
    context = BaseExecutor.Context(tmp_dir=str(out / "tmp"), unique_id="1")
    inputs, outputs = {"model": [model], "examples": [examples]}, {"blessing": [blessing]}
    executor.Executor(context).Do(inputs, outputs, properties)
    (runner,) = runners
    return blessing, runner.requests


@pytest.mark.two_stacks
def test_infra_validator_blesses_a_model_that_answers(strangers, tmp_path, monkeypatch):
    """TF Serving itself is a separate program that is not here; the rest of InfraValidator is its own."""
    from tensorflow_serving.apis import prediction_log_pb2
    from tfx.utils import path_utils

    blessing, requests = infra_validation(strangers, "examples", monkeypatch, tmp_path)
    assert blessing.get_int_custom_property("blessed") == 1
    assert (tmp_path / "INFRA_BLESSED").exists()
    assert [request.model_spec.signature_name for request in requests] == ["examples"] * 3
    # With warm-up requests the blessing has a copy of the model, which a Pusher pushes in its place.
    warmup = path_utils.warmup_file_path(path_utils.stamped_model_path(blessing.uri))
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for _, record in read_records(warmup)]
    assert [log.predict_log.request for log in logs] == requests


@pytest.mark.two_stacks
def test_infra_validator_refuses_a_model_that_does_not_answer(strangers, tmp_path, monkeypatch):
    # This signature takes image files, not examples.
    blessing, requests = infra_validation(strangers, "serving_default", monkeypatch, tmp_path)
    assert blessing.get_int_custom_property("blessed") == 0
    assert requests == []


def test_our_components_behind_import_example_gen(imported):
    files = list(output(imported, "ImportExampleGen", "examples").glob("Split-*/*"))
    assert files
    assert {file.suffix for file in files} == {".gz"}
    before = ImageDataset.open(imported / "dataset")
    after = ImageDataset.open(output(imported, "ImageTransform", "transformed_examples"))
    assert after.manifest.classes == before.manifest.classes
    for split in ("train", "eval", "test"):
        assert after.num_records(split) == before.num_records(split)
    assert json.loads((output(imported, "DataGate", "decision") / "decision.json").read_text())["anomalies"] == 0
    assert (output(imported, "Report", "report") / "report.html").is_file()
    evaluation = json.loads((output(imported, "ImageEvaluator", "evaluation") / "summary.json").read_text())
    assert "mean_dice" in evaluation["metrics"]


def states(folder):
    """Component -> what happened to it in each run of any pipeline."""
    from tfx import v1 as tfx
    from tfx.orchestration import metadata

    config = tfx.orchestration.metadata.sqlite_metadata_connection_config(str(folder / "cached.db"))
    found = {}
    with metadata.Metadata(config) as handle:
        store = handle.store
        types = {one.id: one.name.rpartition(".")[2] for one in store.get_execution_types()}
        for execution in sorted(store.get_executions(), key=lambda one: one.id):
            state = execution.State.Name(execution.last_known_state)
            found.setdefault(types[execution.type_id], []).append(state)
    return found


@pytest.mark.two_stacks
def test_what_tfx_caches(tmp_path):
    folder = project(tmp_path)
    run(folder, "cached.py", "one", "runs")
    # Other dates of the images are not another content, unlike with TFX's own ExampleGens.
    for file in folder.glob("photographs/*/*"):
        os.utime(file, (1, 1))
    run(folder, "cached.py", "one", "runs")
    # The folder of a pipeline's artifacts is not part of TFX's key, its name is.
    run(folder, "cached.py", "one", "elsewhere")
    run(folder, "cached.py", "two", "runs")
    expected = ["COMPLETE", "CACHED", "CACHED", "COMPLETE"]
    assert states(folder) == {"ImageExampleGen": expected, "StatisticsGen": expected}
    assert not list((folder / "elsewhere").glob("*/*/*/*"))


def compiled(folder, *arguments):
    run(folder, "compiled.py", "pipeline.json", *arguments)
    job = json.loads((folder / "pipeline.json").read_text(encoding="utf-8"))
    mounts = folder / "mounts"
    (mounts / "gcs").mkdir(parents=True)
    shutil.copytree(folder / "photographs", mounts / "gcs" / "data" / "photographs")
    root, environment = job["runtimeConfig"]["gcsOutputDirectory"], {"SHARDWRIGHT_MOUNTS": str(mounts)}
    return job["pipelineSpec"], root, environment


def test_a_compiled_pipeline_of_somebody_else_runs_in_our_image(tmp_path):
    spec, root, environment = compiled(project(tmp_path))
    containers = [executor["container"] for executor in spec["deploymentSpec"]["executors"].values()]
    assert {container["image"] for container in containers} == {"registry.example/shardwright:1.0"}
    pipeline = Emulator(spec, root, tmp_path / "home", environment)
    # As its value is given to the services: TFX's documents have no defaults of parameters.
    data = {"data_root": "gs://data"}
    first = pipeline.run(**data)
    assert set(first.values()) == {RAN}
    assert read_blessing(tmp_path / "mounts/gcs/models/flowers") is not None
    # The input is looked up in every run; what depends on its content alone is cached.
    again = pipeline.run(until="ImageTransform", **data)
    assert {task for task, what in again.items() if what == RAN} == {"InputResolver"}
    (tmp_path / "mounts/gcs/data/photographs/rose/new.jpg").write_bytes(
        (tmp_path / "photographs/rose/1.jpg").read_bytes()
    )
    changed = pipeline.run(until="ImageExampleGen", **data)
    assert CACHED not in changed.values()


@pytest.mark.two_stacks
def test_an_exit_handler_runs_after_our_components(tmp_path):
    folder = project(tmp_path)
    spec, root, environment = compiled(folder, "with-exit-handler")
    assert set(spec["root"]["dag"]["tasks"]) == {"tfx-dag", "Announce"}
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    tasks = spec["components"]["tfx-dag"]["dag"]["tasks"]
    assert [name for name, task in sorted(tasks.items()) if not task["cachingOptions"]] == [
        "BaselineResolver", "InputResolver",
    ]  # fmt: skip
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, sys.path)])
    pipeline = Emulator(spec, root, tmp_path / "home", environment)
    # There are no images in this folder, so the first task fails, and the handler runs.
    with pytest.raises(TaskFailed, match="InputResolver ended with"):
        pipeline.run(data_root="gs://elsewhere")
    assert pipeline.done["Announce"] == RAN
    log = (tmp_path / "home" / "tasks" / "01-Announce" / "log").read_text(encoding="utf-8")
    announced = json.loads(re.search(r"^announced: (.*)$", log, re.MULTILINE)[1])
    assert (announced["state"], announced["pipelineTaskName"]) == ("FAILED", "tfx-dag")


def test_the_page_lists_what_is_tested_here():
    rows = re.findall(r"^\| .* \| `(test_\w+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    here = Path(__file__).read_text(encoding="utf-8")
    tests = set(re.findall(r"^def (test_\w+)", here, re.MULTILINE)) - {"test_the_page_lists_what_is_tested_here"}
    assert {row for row in rows if f"def {row}(" in here} == tests


@pytest.mark.two_stacks
def test_a_resolver_of_spans_and_our_components_behind_it(tmp_path):
    folder = project(tmp_path)
    for number, file in enumerate(sorted((folder / "photographs").glob("*/*"))):
        target = folder / "deliveries" / f"span-{1 + number % 2}" / file.parent.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
    run(folder, "spans.py", "1")
    run(folder, "spans.py", "2")
    first, last = sorted((folder / "runs/ImageTransform/transformed_examples").iterdir(), key=lambda f: int(f.name))
    totals = [ImageDataset.open(one).manifest.totals["written"] for one in (first, last)]
    assert totals == [12, 24]
    dataset = ImageDataset.open(last)
    keys = [key for split in dataset.splits for key in dataset.keys(split)]
    assert len(set(keys)) == 24
    reports = sorted((folder / "runs/Report/report").iterdir(), key=lambda f: int(f.name))
    assert len(reports) == 2
    # The Trainer got two transformed datasets: the window of each run.
    assert len(list((folder / "runs/ImageTrainer/model").glob("*/Format-Serving/saved_model.pb"))) == 2
