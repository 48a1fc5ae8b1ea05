"""`shardwright init-pipeline`: the project that it writes runs as written, and compiles."""

import json
import os
import subprocess
import sys

import layouts
import pytest

from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines.cli import main

FILES = {
    *("Dockerfile", "README.md", "local_runner.py", "kubeflow_v2_runner.py", "models/__init__.py", "models/model.py"),
    *("models/preprocessing.py", "pipeline/__init__.py", "pipeline/configs.py", "pipeline/pipeline.py"),
    "tests/test_pipeline.py",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(24):
        layouts.image(tmp_path / "photos" / ("daisy", "rose")[number % 2] / f"{number}.jpg", number)
    assert main(["init-pipeline", "My_Flowers", "--images", "photos", "-q"]) == 0
    return tmp_path / "My_Flowers"


def test_all_files_are_written_and_are_python(project):
    assert {str(file.relative_to(project)) for file in project.rglob("*") if file.is_file()} == FILES
    assert "FROM ${BASE}" in (project / "Dockerfile").read_text()
    for file in project.rglob("*.py"):
        compile(file.read_text(), str(file), "exec")
        assert "$" not in file.read_text()
    assert 'CLASSES = ["daisy", "rose"]' in (project / "pipeline/configs.py").read_text()
    assert 'PIPELINE_NAME = "my-flowers"' in (project / "pipeline/configs.py").read_text()


def test_nothing_is_overwritten(project, capsys):
    before = (project / "local_runner.py").read_text()
    assert main(["init-pipeline", "My_Flowers"]) == 2
    assert "not an empty folder" in capsys.readouterr().err
    assert (project / "local_runner.py").read_text() == before


def test_json_names_the_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init-pipeline", "p", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert set(made["files"]) == FILES
    assert made["classes"] is None
    assert 'IMAGES = str(PROJECT / "data")' in (tmp_path / "p/pipeline/configs.py").read_text()


def test_no_path_of_the_machine_is_in_the_project(project, tmp_path):
    for file in project.rglob("*"):
        assert not file.is_file() or str(tmp_path) not in file.read_text(), file
    assert 'IMAGES = str(PROJECT / "../photos")' in (project / "pipeline/configs.py").read_text()


def test_paths_start_from_the_project_wherever_the_program_is_started(project, tmp_path):
    """A run from `/` made `/runs`."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    program = (
        "from pipeline import configs as c; print(c.IMAGES, c.RUNS, c.METADATA, c.SERVING_MODEL, c.code()['code'])"
    )
    values = []
    for folder in (elsewhere, project):
        (project / "show.py").write_text(program)
        done = subprocess.run(
            [sys.executable, str(project / "show.py")], cwd=folder, capture_output=True, text=True, check=True
        )
        values.append(done.stdout.split())
    assert values[0] == values[1]
    assert all(os.path.realpath(path).startswith(os.path.realpath(tmp_path)) for path in values[0][:-1])
    assert os.path.realpath(values[0][0]) == os.path.realpath(tmp_path / "photos")


def run(project, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.two_stacks
def test_the_project_runs_and_compiles_as_written(project):
    configs = project / "pipeline/configs.py"
    text = configs.read_text().replace("TRAIN_STEPS = 50", "TRAIN_STEPS = 2")
    configs.write_text(text.replace("MIN_ACCURACY = 0.6", "MIN_ACCURACY = 0.0"))
    # From another folder, as a scheduler would.
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    run(elsewhere, str(project / "local_runner.py"))
    assert not list(elsewhere.iterdir())
    (examples,) = (project / "runs/my-flowers/ImageExampleGen/examples").iterdir()
    dataset = ImageDataset.open(examples)
    assert sum(dataset.num_records(split) for split in dataset.splits) == 24
    assert {split: dataset.num_records(split) > 1 for split in dataset.splits} == dict.fromkeys(
        ("train", "eval", "test"), True
    )
    assert list((project / "runs/serving_model").glob("*/saved_model.pb"))
    (blessing,) = (project / "runs/my-flowers/Evaluator/blessing").iterdir()
    assert (blessing / "BLESSED").exists()
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import aiplatform
    from google.protobuf import json_format
    from kfp.client.client import _extract_pipeline_yaml

    run(project, "kubeflow_v2_runner.py")
    # As KFP's client and that of Vertex AI read it.
    file = str(project / "my-flowers.yaml")
    spec = _extract_pipeline_yaml(file).pipeline_spec
    job = aiplatform.PipelineJob("it", file, project="it", location="us-central1", credentials=AnonymousCredentials())
    assert job._gca_resource.runtime_config.gcs_output_directory == "gs://BUCKET/my-flowers"
    assert spec.default_pipeline_root == "gs://BUCKET/my-flowers"
    tasks = json_format.MessageToDict(spec)["root"]["dag"]["tasks"]
    assert {"InputResolver", "ImageExampleGen", "DataGate", "Transform", "Trainer", "Evaluator", "Pusher"} <= set(tasks)
    executors = json_format.MessageToDict(spec)["deploymentSpec"]["executors"]
    container = ["python", "-m", "shardwright.components.runtime.container", "--artifacts", "mounted"]
    assert executors["Trainer_executor"]["container"]["command"] == container
    assert tasks["ImageExampleGen"]["dependentTasks"] == ["InputResolver"]
    run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
