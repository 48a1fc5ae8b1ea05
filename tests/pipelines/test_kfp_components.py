"""The plain components: what they take and give, their YAML files, and their task's own arguments."""

import json
import os

import pytest
import yaml
from google.protobuf import json_format
from kfp import components
from kfp.pipeline_spec import pipeline_spec_pb2
from object_stores import running_stores

from shardwright.config import parse_config
from shardwright.errors import ConfigError, UsageError
from shardwright.pipelines.kfp import task
from shardwright.pipelines.kfp.factory import component_file, component_yaml, plain_components
from shardwright.pipelines.kfp.steps import STEPS
from shardwright.sample import write_sample

NAMES = [step.__name__ for step in STEPS]
IMAGE = "registry.example/shardwright:1.0"


def container(component):
    spec = yaml.safe_load(component_yaml(component))
    (executor,) = spec["deploymentSpec"]["executors"].values()
    return spec, executor["container"]


def test_a_file_of_no_component_is_refused():
    with pytest.raises(UsageError, match="component_file: 'x' is not known. Use one of: ingest, "):
        component_file("x")


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_what_the_factory_makes(name):
    """After a change that is meant: SHARDWRIGHT_RENEW_GOLDEN=1 and look at the difference."""
    text = component_yaml(getattr(plain_components(), name))
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        component_file(name).write_text(text, encoding="utf-8")
    assert component_file(name).read_text(encoding="utf-8") == text
    json_format.ParseDict(yaml.safe_load(text), pipeline_spec_pb2.PipelineSpec())
    loaded = components.load_component_from_file(str(component_file(name)))
    assert loaded.name == name
    assert "image" in loaded.component_spec.inputs


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["kubeflow", "vertex"])
def test_an_image_and_the_places_of_a_target(name, target):
    spec, made = container(getattr(plain_components(IMAGE, target), name))
    assert made["image"] == IMAGE
    assert "image" not in spec["root"]["inputDefinitions"].get("parameters", {})
    ending = {"kubeflow": ".path}}", "vertex": ".uri}}"}[target]
    places = [part for part in made["args"] if ".artifacts[" in part]
    assert places
    assert all(part.endswith(ending) for part in places)


def test_artifacts_and_parameters_have_types():
    spec, _ = container(plain_components(IMAGE).report)
    assert spec["root"]["outputDefinitions"]["artifacts"]["page"]["artifactType"]["schemaTitle"] == "system.HTML"
    assert spec["root"]["inputDefinitions"]["artifacts"]["dataset"]["artifactType"]["schemaTitle"] == "system.Dataset"
    assert spec["root"]["inputDefinitions"]["parameters"]["seed"]["parameterType"] == "NUMBER_INTEGER"


@pytest.mark.parametrize("name", NAMES)
def test_the_container_takes_the_options_of_the_component(name):
    """Every option that a component writes is one that its task reads, and none is missing."""
    _, made = container(getattr(plain_components(IMAGE), name))
    numbers = {"--seed": "3", "--deep": "True", "--strict": "false"}
    options = [numbers.get(before, part) for before, part in zip([None, *made["args"]], made["args"], strict=False)]
    parsed = task._parser().parse_args([made["command"][-1], *options])
    assert parsed.step.__name__ == f"_{name}"


@pytest.mark.parametrize("text", ["3", "3.0", "3e0"])
def test_whole_numbers_as_launchers_write_them(text):
    given = ["report", "--dataset", "d", "--page", "p", "--seed"]
    assert task._parser().parse_args([*given, text]).seed == 3
    with pytest.raises(SystemExit):
        task._parser().parse_args([*given, "3.5"])


def test_what_is_refused():
    with pytest.raises(ConfigError, match="not the name of an image with a tag"):
        plain_components("shardwright")
    with pytest.raises(ConfigError, match="target"):
        plain_components(IMAGE, "airflow")
    with pytest.raises(UsageError, match="Give image"):
        plain_components(target="vertex")


def test_relative_paths_begin_at_a_bucket():
    config = parse_config({"input": {"images": "train"}}, base="gs://bucket/data")
    assert config.resolve("./train") == "gs://bucket/data/train"
    assert config.resolve("/elsewhere") == "/elsewhere"
    assert config.resolve("s3://other/x") == "s3://other/x"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    home = tmp_path_factory.mktemp("plain")
    write_sample(str(home / "data"), images=6, height=64, width=96, seed=3)
    config = "task: segmentation\ninput: {images: train_images, labels: {path: train.csv}}\n"
    given = ["--config", config, "--data-root", str(home / "data")]
    written = ["--dataset", str(home / "out" / "dataset"), "--fingerprint", str(home / "out" / "fingerprint")]
    assert task.main(["ingest", *given, *written]) == 0
    return home / "out" / "dataset"


def verified(dataset, folder, strict):
    given = ["--dataset", str(dataset), "--deep", "0", "--strict", strict]
    code = task.main(["verify", *given, "--findings", str(folder / "findings"), "--whole", str(folder / "whole")])
    return code, json.loads((folder / "findings").read_text(encoding="utf-8")), (folder / "whole").read_text()


def test_findings_are_printed_and_stop_the_pipeline_if_wanted(dataset, tmp_path, capsys):
    assert verified(dataset, tmp_path, "true")[::2] == (0, "true")
    (dataset / "manifest.json").write_text((dataset / "manifest.json").read_text().replace('"task"', '"tusk"'))
    assert verified(dataset, tmp_path, "false")[::2] == (0, "false")
    code, findings, whole = verified(dataset, tmp_path, "true")
    assert (code, whole, findings["whole"]) == (1, "false", False)
    assert "manifest.json" in capsys.readouterr().err


def test_a_wrong_configuration_is_one_line(tmp_path, capsys):
    given = ["--config", "input: {imges: x}", "--data-root", "", "--dataset", str(tmp_path / "d")]
    assert task.main(["ingest", *given, "--fingerprint", str(tmp_path / "f")]) == 2
    assert capsys.readouterr().err.startswith("shardwright: input.imges: unknown key. Did you mean input.images?")


def test_a_step_alone_knows_no_model_in_force(tmp_path, capsys):
    given = ["--config", "input: {images: x}\nsplit: {keep_from: blessed}", "--data-root", ""]
    assert task.main(["ingest", *given, "--dataset", str(tmp_path / "d"), "--fingerprint", str(tmp_path / "f")]) == 2
    assert "split.keep_from: 'blessed' is the dataset of a model" in capsys.readouterr().err


def test_what_is_made_goes_to_a_bucket(tmp_path):
    """As Vertex AI's steps, which have no folders of it."""
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "below" / "x").write_text("x")
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        task._deliver(tmp_path / "folder", f"{bucket}/made/folder")
        task._write(f"{bucket}/made/text", "0a1b", tmp_path)
        assert stores.tree(f"{bucket}/made") == {"folder/below/x": b"x", "text": b"0a1b"}
