"""The rules of the emulator, each with a pipeline of a task or two: what the services do around a command."""

import json
import re
import textwrap

import pytest
import sandbox
import yaml
from emulator import CACHED, RAN, Emulator, TaskFailed
from kubeflow_driver import fingerprint

# Prints what it was given and the files that it finds, and writes its outputs. Fails until the file MARKER exists.
TASK = """
import json, os, pathlib, sys
mounts = os.environ.get("SHARDWRIGHT_MOUNTS", "")
def folder(uri):
    for scheme in ("minio", "gs"):
        uri = uri.replace(f"{scheme}://", f"{mounts}/{'gcs' if scheme == 'gs' else scheme}/")
    return pathlib.Path(uri)
given = json.loads(sys.argv[1])
print(json.dumps(given), sorted(str(p.relative_to(mounts)) for p in pathlib.Path(mounts).rglob("*") if p.is_file()))
for key, listed in given["outputs"]["artifacts"].items():
    if key == "executor-logs":
        continue
    place = folder(listed["artifacts"][0]["uri"])
    assert not place.exists(), place
    (place / "empty").mkdir(parents=True)
    (place / "file").write_text("made")
marker = pathlib.Path(os.environ.get("MARKER", "/nonexistent"))
if os.environ.get("MARKER") and not marker.exists():
    marker.touch()
    sys.exit(3)
for name, parameter in given["outputs"].get("parameters", {}).items():
    pathlib.Path(parameter["outputFile"]).write_text("7")
"""
# Tries to write to a folder without the permission, the working folder, the home, the tests' own and the temporary one.
TRIES = """
import tempfile
def writes(place):
    try:
        pathlib.Path(place, "tried").write_text("")
    except OSError:
        return False
    return True
closed = pathlib.Path(tempfile.mkdtemp())
closed.chmod(0o555)
places = (closed, ".", pathlib.Path.home(), "{tests}", tempfile.gettempdir())
print((os.getuid(), os.getgid()), [writes(place) for place in places])
"""
DATASET = {"artifactType": {"schemaTitle": "system.Dataset", "schemaVersion": "0.0.1"}}


def container(**env):
    listed = [{"name": name, "value": value} for name, value in env.items()]
    return {"container": {"image": "i", "command": ["python", "-m", "task"], "args": ["{{$}}"], "env": listed}}


def pipeline(tmp_path, *, as_kubeflow, retries=0, **env):
    """Two tasks in an inner pipeline, the second reads the first, and an exit task after it."""
    (tmp_path / "task.py").write_text(textwrap.dedent(TASK))
    number = {"parameters": {"number": {"parameterType": "NUMBER_INTEGER"}}}
    inner = {
        "first": {"componentRef": {"name": "first"}, "retryPolicy": {"maxRetryCount": retries}},
        "second": {
            "componentRef": {"name": "second"},
            "inputs": {
                "artifacts": {"data": {"taskOutputArtifact": {"producerTask": "first", "outputArtifactKey": "out"}}},
                "parameters": {
                    "number": {"taskOutputParameter": {"producerTask": "first", "outputParameterKey": "number"}},
                    "root": {"componentInputParameter": "root"},
                },
            },
        },
    }
    text = {"parameters": {"root": {"parameterType": "STRING"}}}
    spec = {
        "root": {
            "inputDefinitions": {"parameters": {"root": {"parameterType": "STRING", "defaultValue": "here"}}},
            "dag": {
                "tasks": {
                    "inner": {
                        "componentRef": {"name": "inner"},
                        "inputs": {"parameters": {"root": {"componentInputParameter": "root"}}},
                    },
                    "after": {
                        "componentRef": {"name": "after"},
                        "dependentTasks": ["inner"],
                        "inputs": {"parameters": {"status": {"taskFinalStatus": {"producerTask": "inner"}}}},
                        "triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
                    },
                }
            },
        },
        "components": {
            "inner": {"dag": {"tasks": inner}, "inputDefinitions": text},
            "first": {"executorLabel": "a", "outputDefinitions": {"artifacts": {"out": DATASET}, **number}},
            "second": {"executorLabel": "b", "outputDefinitions": {"artifacts": {"own": DATASET}}},
            "after": {
                "executorLabel": "c",
                "inputDefinitions": {"parameters": {"status": {"parameterType": "TASK_FINAL_STATUS"}}},
            },
        },
        "deploymentSpec": {"executors": {"a": container(**env), "b": container(), "c": container()}},
    }
    mounts = tmp_path / "mounts"
    mounts.mkdir()
    environment = {"SHARDWRIGHT_MOUNTS": str(mounts), "PYTHONPATH": str(tmp_path)}
    root = "minio://mlpipeline/v2" if as_kubeflow else "gs://bucket/runs"
    (tmp_path / "kept").mkdir()
    own = {"as_kubeflow": as_kubeflow, "buckets": [tmp_path / "kept"]}
    return Emulator(yaml.safe_load(yaml.safe_dump(spec)), root, tmp_path / "home", environment, **own)


def seen(made, task):
    """The ExecutorInput that a task got, and the files on its disk when it began."""
    log = (made.home / "tasks" / f"{made.runs:02d}-{task}" / "log").read_text()
    end = json.JSONDecoder().raw_decode(log)[1]
    return json.loads(log[:end]), eval(log[end:])


def test_kubeflow_copies_what_a_task_declares_and_nothing_else(tmp_path):
    made = pipeline(tmp_path, as_kubeflow=True)
    assert made.run() == {"first": RAN, "second": RAN, "after": RAN}
    given, files = seen(made, "second")
    logs = "minio/mlpipeline/v2/01/{}/executor-logs-0"
    assert files == ["minio/mlpipeline/v2/01/first/out/file", logs.format("second")]
    assert seen(made, "after")[1] == [logs.format("after")]
    assert given["outputs"]["outputFile"].endswith("/minio/mlpipeline/v2/01/second/output_metadata.json")
    assert given["outputs"]["artifacts"]["executor-logs"]["artifacts"][0]["uri"] == f"minio://{logs[6:]}".format(
        "second"
    )
    (data,) = given["inputs"]["artifacts"]["data"]["artifacts"]
    assert data["type"] == {"instanceSchema": ""}
    assert data["name"].isdecimal()
    assert given["inputs"]["parameterValues"] == {"number": 7, "root": "here"}
    # An object store has no empty folders.
    assert not list((tmp_path / "mounts").rglob("empty"))
    assert len(list((tmp_path / "mounts").rglob("file"))) == 2


def test_vertex_mounts_the_buckets(tmp_path):
    made = pipeline(tmp_path, as_kubeflow=False)
    made.run()
    given, files = seen(made, "second")
    assert files == ["gcs/bucket/runs/01/first/out/file"]
    assert given["inputs"]["artifacts"]["data"]["artifacts"][0]["type"] == DATASET["artifactType"]


@pytest.mark.parametrize(("as_kubeflow", "root"), [(True, "first"), (False, "first-1")])
def test_an_attempt_has_nothing_of_the_one_before(tmp_path, as_kubeflow, root):
    made = pipeline(tmp_path, as_kubeflow=as_kubeflow, retries=1, MARKER=str(tmp_path / "kept" / "marker"))
    made.run(until="first")
    assert made.outputs["first"]["artifacts"]["out"]["uri"].endswith(f"/{root}/out")


@pytest.mark.skipif(not sandbox.is_available(), reason="needs bubblewrap, and the right to make namespaces")
@pytest.mark.parametrize("as_kubeflow", [True, False])
def test_a_task_is_user_1000_and_writes_to_its_mounts_only(tmp_path, as_kubeflow):
    made = pipeline(tmp_path, as_kubeflow=as_kubeflow)
    with (tmp_path / "task.py").open("a") as task:
        task.write(TRIES.format(tests=tmp_path))
    made.run(until="first")
    log = (made.home / "tasks" / "01-first" / "log").read_text()
    assert log.splitlines()[-1] == "(1000, 1000) [False, False, False, False, True]"


@pytest.mark.parametrize("as_kubeflow", [True, False])
def test_an_exit_task_runs_after_a_failure(tmp_path, as_kubeflow):
    made = pipeline(tmp_path, as_kubeflow=as_kubeflow, MARKER=str(tmp_path / "kept" / "marker"))
    with pytest.raises(TaskFailed, match="first ended with 3"):
        made.run()
    assert made.done == {"after": RAN}
    status = seen(made, "after")[0]["inputs"]["parameterValues"]["status"]
    assert (status["state"], status["pipelineTaskName"]) == ("FAILED", "inner")
    # The files of a failed command are not uploaded.
    assert not as_kubeflow or not list((tmp_path / "mounts").rglob("file"))


def test_a_task_reads_inputs_of_its_own_dag_only(tmp_path):
    made = pipeline(tmp_path, as_kubeflow=True)
    del made.spec["root"]["dag"]["tasks"]["inner"]["inputs"]
    with pytest.raises(TaskFailed, match="second: parent DAG does not have input parameter root"):
        made.run()


def test_a_task_needs_tasks_of_its_own_dag_only(tmp_path):
    made = pipeline(tmp_path, as_kubeflow=True)
    made.spec["root"]["dag"]["tasks"]["late"] = {"componentRef": {"name": "after"}, "dependentTasks": ["first"]}
    with pytest.raises(AssertionError, match="late needs {'first'}, not in this DAG"):
        made.run()


def executor(made, task):
    """The container of a task."""
    return made.spec["deploymentSpec"]["executors"][{"first": "a", "second": "b"}[task]]["container"]


@pytest.mark.parametrize("as_kubeflow", [True, False])
def test_a_task_is_cached_by_what_the_driver_hashes(tmp_path, as_kubeflow):
    """Image, command, parameters, artifacts and claims; Kubeflow's key has no variables, so they change nothing."""
    made = pipeline(tmp_path, as_kubeflow=as_kubeflow)
    tasks = made.spec["components"]["inner"]["dag"]["tasks"]
    for task in tasks.values():
        task["cachingOptions"] = {"enableCache": True}
    run = made.run
    assert run(until="second") == {"first": RAN, "second": RAN}
    assert run(until="second") == {"first": CACHED, "second": CACHED}
    assert run(until="second", root="elsewhere") == {"first": CACHED, "second": RAN}
    executor(made, "second")["image"] = "j"
    assert run(until="second") == {"first": CACHED, "second": RAN}
    executor(made, "first")["env"] = [{"name": "A", "value": "1"}]
    assert run(until="second")["first"] == (CACHED if as_kubeflow else RAN)
    made.platform = platform(a={"pvcMount": [{"constant": "models", "mountPath": "/models"}]})
    # Another artifact of the first task is another input of the second one.
    assert run(until="second") == {"first": RAN, "second": RAN}
    made.spec["pipelineInfo"] = {"name": "other"}
    assert run(until="first") == {"first": RAN}


def test_the_fingerprint_is_kubeflows():
    """The value of kubeflow/pipelines at 7b70c7b, backend/src/v2/cacheutils/cache_test.go:339, for this key."""
    key = {
        "inputArtifactNames": {"dataset": {"artifactNames": ["10"]}},
        "outputParametersSpec": {"output_parameter": "DOUBLE"},
        "containerSpec": {"cmdArgs": ["sh", "ec", "run"], "image": "python:3.11"},
    }
    assert fingerprint(key) == "3d9a2a778fa3174c6cfc6e639c507c265b5f21ef6e5b1dd70b236462cc6da464"


def platform(**executors):
    """Kubeflow's second document."""
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}


def test_a_pod_is_as_the_platform_document_asks(tmp_path):
    """A variable of a Secret, a claim that one of two pods mounts, and a node that only a tolerant pod may run on."""
    made = pipeline(tmp_path, as_kubeflow=True, SHOWN="1")
    volume = tmp_path / "volume"
    volume.mkdir()
    reads = f"import os, pathlib; print(os.environ.get('TOKEN'), pathlib.Path({str(volume)!r}).is_dir())"
    (tmp_path / "looks.py").write_text(reads)
    executor(made, "second")["command"] = executor(made, "first")["command"] = ["python", "-m", "looks"]
    for name in ("first", "second"):
        made.spec["components"][name].pop("outputDefinitions")
        made.spec["components"]["inner"]["dag"]["tasks"][name].pop("inputs", None)
    made.spec["components"]["inner"]["dag"]["tasks"]["second"]["dependentTasks"] = ["first"]
    reference = [{"secretName": "chat", "keyToEnv": [{"secretKey": "token", "envVar": "TOKEN"}]}]
    tpu = {"nodeSelector": {"labels": {"tpu": "v5e"}}, "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}]}
    mounts = {"pvcMount": [{"constant": "models", "mountPath": str(volume)}]}
    made.platform = platform(a={"secretAsEnv": reference, **mounts, **tpu})
    taint = {"key": "google.com/tpu", "effect": "NoSchedule"}
    for secrets, nodes, problem in (
        ({}, [{}], "first: Unschedulable: no node has {'tpu': 'v5e'} and {}"),
        (
            {"chat": {"url": "x"}},
            [{"labels": {"tpu": "v5e"}}],
            "first: CreateContainerConfigError: no key token in chat",
        ),
        ({"chat": {"token": "abc"}}, [{"taints": [taint]}, {"labels": {"tpu": "v6e"}}], "first: Unschedulable"),
    ):
        made.secrets, made.nodes = secrets, nodes
        with pytest.raises(TaskFailed, match=re.escape(problem)):
            made.run(until="first")
    made.nodes = [{"labels": {"tpu": "v5e"}, "taints": [taint]}, {}]
    made.run(until="second")
    logs = [(made.home / "tasks" / f"{made.runs:02d}-{task}" / "log").read_text() for task in ("first", "second")]
    assert logs == ["abc True\n", "None False\n"]
    made.nodes = [made.nodes[0]]
    with pytest.raises(TaskFailed, match="second: Unschedulable"):
        made.run(until="second")
