"""What Kubeflow's own driver and launcher wrote (`recorded/`), against what the emulator makes of the same task."""

import json
from pathlib import Path

import pytest
import yaml
from emulator import KILLED, Emulator, Pod, TaskFailed
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from kubeflow_driver import RULES, V2_5, V2_15, V2_17, cache_key, fingerprint, pod_of, through_the_store

RECORDED = Path(__file__).with_name("recorded")
DRIVERS = sorted(RECORDED.glob("driver-*.json"))
OUTPUTS = json.loads((RECORDED / "executor-outputs-2.17.0.json").read_text(encoding="utf-8"))
# The tasks that hand artifacts over in the recorded runs, where a program of ours stood for the product.
STAND_IN = {"list": [1, "a"], "ratio": 0.5, "span": 3, "struct": {"a": {"b": 1.0}}, "text": "t", "yes": True}


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


def version_of(document):
    return tuple(map(int, document["kfp"].split(".")[:2]))


def emulated(document, tmp_path):
    """An emulator of the one recorded task, after the tasks whose artifacts it reads."""
    given = document["driver_arguments"]
    name, component = document["task_name"], given["component"]
    spec = {
        "root": {"dag": {"tasks": {name: given["task"]}}},
        "components": {given["task"]["componentRef"]["name"]: component},
        "deploymentSpec": {"executors": {component["executorLabel"]: {"container": given["container"]}}},
    }
    settings = {"deploymentSpec": {"executors": {component["executorLabel"]: given["kubernetes_config"]}}}
    made = Emulator(spec, "s3://bucket/run", tmp_path, as_kubeflow=True, version=version_of(document))
    made.platform = {"platforms": {"kubernetes": settings}}
    for key, one in given["task"].get("inputs", {}).get("artifacts", {}).items():
        produced = one["taskOutputArtifact"]
        (artifact,) = document["executor_input"]["inputs"]["artifacts"][key]["artifacts"]
        reported = OUTPUTS.get(produced["producerTask"], {}).get("artifacts", {}).get(produced["outputArtifactKey"], {})
        # ImportSchemaGen came from the cache, so its report is of an earlier run.
        metadata = reported.get("artifacts", [{}])[0].get("metadata", {"tfx_version": "1.16.0"})
        artifact = {"uri": artifact["uri"], "metadata": STAND_IN if "yes" in artifact["metadata"] else metadata}
        made._ids[artifact["uri"]] = int(document["executor_input"]["inputs"]["artifacts"][key]["artifacts"][0]["name"])
        outputs = made.outputs.setdefault(produced["producerTask"], {"artifacts": {}})
        outputs["artifacts"][produced["outputArtifactKey"]] = artifact
    made._states["pipeline"] = "COMPLETE"
    return made


def without_empty(value):
    if isinstance(value, dict):
        kept = {key: without_empty(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in ({}, [], None)}
    return [without_empty(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("file", DRIVERS, ids=lambda file: file.stem)
def test_the_pod_is_the_recorded_one(file):
    document = read(file)
    given = document["driver_arguments"]
    label = given["component"]["executorLabel"]
    spec = {
        "components": {"x": given["component"]},
        "deploymentSpec": {"executors": {label: {"container": given["container"]}}},
    }
    platform = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": {label: given["kubernetes_config"]}}}}}
    pod, recorded = pod_of("x", spec, platform)["spec"], document["pod_spec_patch"]
    (main,), (theirs,) = pod.pop("containers"), recorded.pop("containers")
    # The launcher runs our command; the driver has filled in the parameters of a placeholder.
    ours = json.dumps([*main.pop("command"), *main.pop("args")])
    assert theirs.pop("command")[0] == "/kfp-launcher/launch"
    values = document["executor_input"]["inputs"]["parameterValues"]
    arguments = theirs.pop("args")
    if "{{$.inputs" in ours:
        assert arguments[-1] == json.dumps(values["status"], separators=(",", ":"), sort_keys=True)
        main["image"] = values["image"]
    else:
        assert json.loads(ours) == arguments
    assert without_empty(main) == without_empty(theirs)

    def by_name(document):
        volumes = sorted(document.pop("volumes", []), key=lambda one: one["name"])
        return without_empty({**document, "volumes": volumes})

    assert by_name(pod) == by_name(recorded)


@pytest.mark.parametrize("file", DRIVERS, ids=lambda file: file.stem)
def test_the_executor_input_is_the_recorded_one(file, tmp_path, monkeypatch):
    document, seen = read(file), []
    made = emulated(document, tmp_path)

    def execute(name, task, container, values, artifacts, retries):
        outputs = made._outputs(name, document["driver_arguments"]["component"])
        pod = Pod(made, tmp_path / "pod", {}, "s3://bucket/run")
        seen.append(
            pod.executor_input(values, artifacts, {key: {**one, "uri": f"/{key}"} for key, one in outputs.items()})
        )

    monkeypatch.setattr(made, "_execute", execute)
    given = document["executor_input"]["inputs"]["parameterValues"]
    (task,) = made.spec["root"]["dag"]["tasks"].values()
    made._task(document["task_name"], task, {"image": given.get("image"), "data_root": "", "span": ""})
    (ours,), theirs = seen, document["executor_input"]
    for one in (ours, theirs):
        json_format.ParseDict(one, pipeline_spec_pb2.ExecutorInput())
        for listed in one["outputs"]["artifacts"].values():
            for artifact in listed["artifacts"]:
                artifact["uri"] = artifact["uri"].rpartition("/")[2]
        # Our folders of a pod are below the test's own.
        file = one["outputs"]["outputFile"]
        one["outputs"]["outputFile"] = "/".join(file.split("/")[-2 if version_of(document) <= V2_5 else -1 :])
        status = one["inputs"].get("parameterValues", {}).get("status", {})
        status.pop("pipelineJobResourceName", None)
    assert without_empty(ours) == without_empty(theirs)


def test_the_cache_key_is_the_recorded_one():
    """In the other files a program stands for the product, whose path, a part of the key, was replaced."""
    keyed = [document for document in map(read, DRIVERS) if document["cache_fingerprint"]]
    replaced = {one["task_name"] for one in keyed if "/programs/" in str(one["driver_arguments"]["container"])}
    assert replaced == {"Trainer", "StatisticsGen"}
    (document,) = [one for one in keyed if one["task_name"] not in replaced]
    given = document["driver_arguments"]
    outputs = {
        key: listed["artifacts"][0] for key, listed in document["executor_input"]["outputs"]["artifacts"].items()
    }
    claims = [one["constant"] for one in given["kubernetes_config"].get("pvcMount", ())]
    inputs = document["executor_input"]["inputs"]
    key = cache_key(given["container"], given["component"], inputs, outputs, claims, version_of(document))
    assert fingerprint(key) == document["cache_fingerprint"]
    old = cache_key(given["container"], given["component"], inputs, outputs, claims, V2_5)
    assert not any("name" in one for one in old["outputArtifactsSpec"].values())
    assert "pvcNames" not in old["containerSpec"]


def test_what_the_executors_reported_is_what_the_next_tasks_got():
    for outputs in OUTPUTS.values():
        json_format.ParseDict(outputs, pipeline_spec_pb2.ExecutorOutput())
    document = read(RECORDED / "driver-2.17.0-DataGate.json")
    (got,) = document["executor_input"]["inputs"]["artifacts"]["anomalies"]["artifacts"]
    (told,) = OUTPUTS["ExampleValidator"]["artifacts"]["anomalies"]["artifacts"]
    assert through_the_store(told["metadata"], "anomalies", told["uri"]) == got["metadata"]
    assert json.dumps(got["metadata"]["blessed"]) == '{"struct": {"eval": 1, "test": 1, "train": 1}}'


def one_task(tmp_path, version, codes):
    """A task that ends with one code after the other, and an exit task that gets its state."""
    tasks = {
        "inner": {"componentRef": {"name": "inner"}},
        "after": {
            "componentRef": {"name": "after"},
            "dependentTasks": ["inner"],
            "triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
            "inputs": {"parameters": {"status": {"taskFinalStatus": {"producerTask": "inner"}}}},
        },
    }
    first = {"componentRef": {"name": "first"}, "retryPolicy": {"maxRetryCount": len(codes) - 1}}
    spec = {
        "schemaVersion": "2.1.0",
        "root": {"dag": {"tasks": tasks}},
        "components": {
            "inner": {"dag": {"tasks": {"first": first}}},
            "first": {"executorLabel": "x"},
            "after": {"executorLabel": "x"},
        },
        "deploymentSpec": {"executors": {"x": {"container": {"image": "i", "command": ["python"], "args": ["{{$}}"]}}}},
    }
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    made, ended, given = Emulator.kubeflow(file, tmp_path / "home", folders={}, version=version), list(codes), []

    def start(command, *, log, **_):
        given.append(json.loads(command[-1]))
        log.write_text("said")
        return ended.pop(0) if ended else 0

    made.start = start
    return made, given


@pytest.mark.parametrize(
    ("codes", "state", "said"),
    [
        ((7, 7), "FAILED", "first ended with 7, of the container 1"),
        ((KILLED, 7), "FAILED", "of the container 1"),
        ((KILLED, KILLED), "RUNNING", f"first ended with {KILLED}:"),
    ],
)
def test_the_final_state_is_that_of_what_launchers_told(codes, state, said, tmp_path):
    made, given = one_task(tmp_path, V2_17, codes)
    with pytest.raises(TaskFailed, match=said):
        made.run()
    assert given[-1]["inputs"]["parameterValues"]["status"]["state"] == state


@pytest.mark.parametrize(
    ("version", "logs"), [(V2_15, ["executor-logs"] * 2), (V2_17, ["executor-logs-0", "executor-logs-1"])]
)
def test_logs_by_version(version, logs, tmp_path):
    made, given = one_task(tmp_path, version, (7, 0))
    made.run()
    places = [one["outputs"]["artifacts"]["executor-logs"]["artifacts"][0]["uri"].rpartition("/")[2] for one in given]
    assert places[:2] == logs
    kept = {file.name for file in (tmp_path / "home" / "mounts").rglob("executor-logs*")}
    assert kept == ({"executor-logs-0", "executor-logs-1"} if version == V2_17 else {"executor-logs"})


def test_an_exit_task_with_a_state_is_refused_by_2_5(tmp_path):
    with pytest.raises(TaskFailed, match="task final status not supported yet"):
        one_task(tmp_path, V2_5, (0,))


def test_every_recorded_version_has_rules():
    for how, versions in RULES.values():
        assert how in ("recorded", "read")
        assert bool(versions) == (how == "recorded")
    named = {version for _, versions in RULES.values() for version in versions.split(", ")}
    assert {read(file)["kfp"] for file in DRIVERS} <= named
