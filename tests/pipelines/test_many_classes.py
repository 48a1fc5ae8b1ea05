"""A thousand classes: the cluster hands a whole graph over in one variable, so long parameters are packed."""

import json
import subprocess

import pytest
import yaml
from compiled_runs import CONFIG
from emulator import Emulator

from shardwright.components.runtime.packed import pack_parameters, unpack_parameters
from shardwright.errors import ConfigError, UsageError
from shardwright.pipelines.cli import main
from shardwright.pipelines.compile_kubeflow import check_for_backend, longest_template
from shardwright.sample import write_sample

LINUX = 131_071


def constants(spec):
    for name, task in spec["root"]["dag"]["tasks"].items():
        for key, one in task.get("inputs", {}).get("parameters", {}).items():
            if "constant" in one.get("runtimeValue", {}):
                yield name, key, one["runtimeValue"]["constant"]


@pytest.mark.slow
def test_a_thousand_classes_compile_and_start(tmp_path, monkeypatch):
    write_sample(str(tmp_path / "data"), images=8, height=64, width=96, seed=3)
    classes = ["Fish", "Flower", "Gravel", "Sugar", *(f"kind of cloud number {number}" for number in range(996))]
    plain = {key: CONFIG[key] for key in ("name", "task", "kubeflow")}
    config = {**plain, "input": {**CONFIG["input"], "classes": classes}}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["compile", "clouds.yaml", "--target", "kubeflow", "--out", "clouds-kubeflow.yaml"]) == 0
    spec = next(yaml.safe_load_all((tmp_path / "clouds-kubeflow.yaml").read_text(encoding="utf-8")))
    size, pod = longest_template(spec)
    longest = max(
        len(json.dumps(one))
        for one in (spec["root"], *spec["components"].values(), *spec["deploymentSpec"]["executors"].values())
    )
    print(f"1,000 classes: the longest argument has {longest} bytes; of all arguments, {pod} gets {size}")
    assert longest < size < 40_000
    # As the driver gets it, and as Argo 3.5 hands it over: parameters and arguments in one variable.
    graph = json.dumps(spec["root"])
    subprocess.run(["true", "--component", graph], check=True)
    template = {"inputs": {"parameters": [{"value": graph}]}, "container": {"args": ["--component", graph]}}
    assert 2 * size < len(json.dumps(template)) < 2 * size + 500
    subprocess.run(["true"], env={"ARGO_TEMPLATE": json.dumps(template)}, check=True)
    check_for_backend(spec, once=False)
    # As it was before: the system refuses to start the driver.
    whole = json.loads(json.dumps(spec))
    for task in whole["root"]["dag"]["tasks"].values():
        for key, one in task.get("inputs", {}).get("parameters", {}).items():
            if "constant" in one.get("runtimeValue", {}):
                given = {"inputs": {"parameterValues": {key: one["runtimeValue"]["constant"]}}}
                one["runtimeValue"]["constant"] = unpack_parameters(given)["inputs"]["parameterValues"][key]
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["true", "--component", json.dumps(whole["root"])], check=True)
    with pytest.raises(ConfigError, match=r"the driver of the graph take \d+ bytes.* one variable.*Shorten the names"):
        check_for_backend(whole)
    # The task reads what was packed.
    emulator = Emulator.kubeflow(
        tmp_path / "clouds-kubeflow.yaml", tmp_path / "run", folders={"gs://": f"{tmp_path}/gs/"}
    )
    made = emulator.first("ImportSchemaGen")["artifacts"]["schema"]["uri"]
    assert (tmp_path / "gs").as_posix() in made
    written = next((tmp_path / "gs").rglob("schema.pbtxt")).read_text(encoding="utf-8")
    assert written == (tmp_path / "clouds.schema.pbtxt").read_text(encoding="utf-8")


def test_long_constants_are_packed_in_every_graph_and_short_ones_stay():
    def tasks(text):
        return {"dag": {"tasks": {"A": {"inputs": {"parameters": {"a": {"runtimeValue": {"constant": text}}}}}}}}

    text = "Größe: 1\n" * 1000
    spec = {"root": tasks(text), "components": {"inner": tasks(text), "short": tasks("x"), "plain": {}}}
    pack_parameters(spec)
    found = [next(constants({"root": one}))[2] for one in (spec["root"], spec["components"]["inner"])]
    assert found[0] == found[1]
    assert len(found[0]) < 500
    assert next(constants({"root": spec["components"]["short"]}))[2] == "x"
    given = {"inputs": {"parameterValues": {"a": found[0], "n": 1, "b": "x"}}, "outputs": {}}
    assert unpack_parameters(given)["inputs"]["parameterValues"] == {"a": text, "n": 1, "b": "x"}
    for damaged in (found[0][:-8], f"{found[0][:-4]}????", "packed:x"):
        with pytest.raises(UsageError, match=r"a: its packed value is damaged .*Compile the pipeline again"):
            unpack_parameters({"inputs": {"parameterValues": {"a": damaged}}})
