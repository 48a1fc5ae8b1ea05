"""Runs a compiled pipeline as Vertex AI and Kubeflow do: every task's own command, with a proper ExecutorInput.

What the services do around the commands is imitated: topological order, artifacts and parameters handed on (dynamic
ones too), caching by the container and by the identity of what goes in. Buckets and volumes are folders.
"""

import graphlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from shardwright.components.runtime.mounts import folder_of

PLACEHOLDER = "{{$}}"
# What KFP's own container components are told one by one.
_SINGLE = re.compile(r"\{\{\$\.(inputs|outputs)\.(parameters|artifacts)\['([^']+)'\](?:\.(path|uri|output_file))?\}\}")
RAN, CACHED, DUE = "ran", "cached", "due"


class TaskFailed(AssertionError):
    """A task's command ended with another code than 0."""


@dataclass
class Emulator:
    """One pipeline, run as often as wanted; what earlier runs made is cached.

    Attributes:
        spec: the pipeline as plain values.
        root: folder or URL of all artifacts.
        home: folder of logs and outputs.
        environment: variables of all containers.
        as_kubeflow: hand artifacts over as Kubeflow's driver does, not as Vertex AI does.
        cache: key -> outputs.
        runs: how many runs there were.
        start: runs the command of a container and returns its exit code; see `run_container`.
    """

    spec: dict
    root: str
    home: Path
    environment: dict = field(default_factory=dict)
    as_kubeflow: bool = False
    cache: dict = field(default_factory=dict)
    runs: int = 0
    outputs: dict = field(default_factory=dict)
    _without: frozenset = frozenset()
    _ids: dict = field(default_factory=dict)
    start: Callable[..., int] = field(default_factory=lambda: run_container)

    @staticmethod
    def vertex(file, home, *, folders):
        """A JSON of `--target vertex`; `folders` says which folder stands for the beginning of which place."""
        job = json.loads(_moved(Path(file).read_text(encoding="utf-8"), folders))
        return Emulator(job["pipelineSpec"], job["runtimeConfig"]["gcsOutputDirectory"], Path(home))

    @staticmethod
    def kubeflow(file, home, *, folders):
        """A YAML of `--target kubeflow`; its artifacts' places stay URLs, as Kubeflow's launcher gives them."""
        spec, *_ = yaml.safe_load_all(_moved(Path(file).read_text(encoding="utf-8"), folders))
        mounts = Path(home, "mounts")
        root = spec.get("defaultPipelineRoot", "minio://mlpipeline/v2/artifacts")
        return Emulator(spec, root, Path(home), {"SHARDWRIGHT_MOUNTS": str(mounts)}, as_kubeflow=True)

    def run(self, until=None, without=(), **parameters):
        """Runs all tasks, or what one needs and that one; returns what each did, in order: `{task: RAN or CACHED}`.

        Those of `without` are `DUE` where they are not cached: they would run. What needs one must be among them.
        """
        given = self._begin(parameters)
        self._without = frozenset(without)
        tasks = self.spec["root"]["dag"]["tasks"]
        needs = {name: sorted(_needs(tasks[name])) for name in sorted(tasks)}
        wanted = set(tasks) if until is None else _with_needs(until, needs)
        done = {}
        for name in graphlib.TopologicalSorter({n: needs[n] for n in sorted(wanted)}).static_order():
            done[name] = self._task(name, tasks[name], given)
        return done

    def first(self, name, **parameters):
        """Runs one task that needs no other; returns its outputs."""
        given = self._begin(parameters)
        self._task(name, self.spec["root"]["dag"]["tasks"][name], given)
        return self.outputs[name]

    def _begin(self, parameters):
        self.runs += 1
        self.outputs = {}
        defined = self.spec["root"].get("inputDefinitions", {}).get("parameters", {})
        assert set(parameters) <= set(defined)
        return {name: parameters.get(name, definition.get("defaultValue")) for name, definition in defined.items()}

    def _task(self, name, task, given):
        component = self.spec["components"][task["componentRef"]["name"]]
        container = self.spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
        assert "lifecycle" not in container
        defined = component.get("inputDefinitions", {}).get("parameters", {})
        values = {key: one["defaultValue"] for key, one in defined.items() if "defaultValue" in one}
        values |= {key: self._value(one, given) for key, one in task.get("inputs", {}).get("parameters", {}).items()}
        artifacts = {}
        if name in self._without and any(needed not in self.outputs for needed in _needs(task)):
            return DUE
        for key, one in task.get("inputs", {}).get("artifacts", {}).items():
            produced = one["taskOutputArtifact"]
            made = self.outputs[produced["producerTask"]]["artifacts"][produced["outputArtifactKey"]]
            artifacts[key] = {"artifacts": [self._handed_over(made, produced["outputArtifactKey"])]}
        key = _digest([container, values, {k: a["artifacts"][0]["name"] for k, a in artifacts.items()}])
        if task.get("cachingOptions", {}).get("enableCache") and key in self.cache:
            self.outputs[name] = self.cache[key]
            return CACHED
        if name in self._without:
            return DUE
        self.outputs[name] = self.cache[key] = self._execute(
            name, component, container, values, artifacts, task.get("retryPolicy", {}).get("maxRetryCount", 0)
        )
        return RAN

    def _handed_over(self, made, key):
        """An output of one task as the input of another.

        Kubeflow's driver reads artifacts back from its metadata store (kubeflow/pipelines, backend/src/v2/metadata):
        the name is the store's number (`toRuntimeArtifact`), the type is always empty (`ToRuntimeArtifact` with the
        `Schema: ""` of `GetOutputArtifactsByExecutionId`), and two properties were added (`RecordArtifact`).
        """
        if not self.as_kubeflow:
            return made
        number = self._ids.setdefault(made["name"], len(self._ids) + 1)
        added = {"display_name": key, "store_session_info": "{}"}
        return {
            "name": str(number),
            "uri": made["uri"],
            "type": {"instanceSchema": ""},
            "metadata": {**added, **made["metadata"]},
        }

    def _value(self, source, given):
        if "taskOutputParameter" in source:
            produced = source["taskOutputParameter"]
            return self.outputs[produced["producerTask"]]["parameters"][produced["outputParameterKey"]]
        if "componentInputParameter" in source:
            return given[source["componentInputParameter"]]
        return source["runtimeValue"]["constant"]

    def _execute(self, name, component, container, values, artifacts, retries):
        folder = self.home / "tasks" / f"{self.runs:02d}-{name}"
        folder.mkdir(parents=True)
        output_file = folder / "executor_output.json"
        defined = component.get("outputDefinitions", {})
        made = {
            key: {
                "name": f"artifacts/{self.runs}-{name}-{key}",
                "uri": f"{self.root}/{self.runs:02d}/{name}/{key}",
                "type": definition["artifactType"],
                "metadata": {},
            }
            for key, definition in defined.get("artifacts", {}).items()
        }
        executor_input = {
            "inputs": {"parameterValues": values, "artifacts": artifacts},
            "outputs": {
                "artifacts": {key: {"artifacts": [artifact]} for key, artifact in made.items()},
                "parameters": {key: {"outputFile": str(folder / key)} for key in defined.get("parameters", {})},
                "outputFile": str(output_file),
            },
        }
        json_format.ParseDict(executor_input, pipeline_spec_pb2.ExecutorInput())
        arguments = [self._resolved(part, executor_input) for part in container["args"]]
        log = folder / "log"
        for attempt in range(1 + retries):
            code = self.start(
                [*container["command"], *arguments],
                log=log,
                environment={**{one["name"]: one["value"] for one in container.get("env", ())}, **self.environment},
                folder=folder / "work" / str(attempt),
            )
            if not code:
                break
            self._forget_pod(made, output_file)
        if code:
            raise TaskFailed(f"{name} ended with {code}:\n{log.read_text(encoding='utf-8', errors='replace')[-6000:]}")
        said = json.loads(output_file.read_text(encoding="utf-8")) if output_file.exists() else {}
        json_format.ParseDict(said, pipeline_spec_pb2.ExecutorOutput())
        for key, artifact in made.items():
            told = said.get("artifacts", {}).get(key, {}).get("artifacts", [{}])[0]
            assert told.get("uri", artifact["uri"]) == artifact["uri"]
            artifact["metadata"] = told.get("metadata", {})
        written = {
            key: (folder / key).read_text(encoding="utf-8")
            for key in defined.get("parameters", {})
            if (folder / key).exists()
        }
        return {"artifacts": made, "parameters": {**written, **said.get("parameterValues", {})}}

    def _forget_pod(self, made, output_file):
        """What a failed attempt has left in its own pod is lost; the next attempt gets the same places."""
        output_file.unlink(missing_ok=True)
        if self.as_kubeflow:
            for artifact in made.values():
                folder = Path(folder_of(artifact["uri"], self.environment["SHARDWRIGHT_MOUNTS"]))
                shutil.rmtree(folder, ignore_errors=True)

    def _resolved(self, part, executor_input):
        """An argument with its placeholders filled in, the files and folders of outputs made ready."""
        if part == PLACEHOLDER:
            return json.dumps(executor_input)

        def value(match):
            side, kind, name, what = match.groups()
            if kind == "parameters":
                if side == "outputs":
                    return executor_input["outputs"]["parameters"][name]["outputFile"]
                found = executor_input["inputs"]["parameterValues"][name]
                # Numbers are doubles there, and Go writes a whole one without a point.
                return found if isinstance(found, str) else json.dumps(found).removesuffix(".0")
            uri = executor_input[side]["artifacts"][name]["artifacts"][0]["uri"]
            if what == "uri":
                return uri
            path = Path(folder_of(uri, self.environment.get("SHARDWRIGHT_MOUNTS", "/")))
            path.parent.mkdir(parents=True, exist_ok=True)
            return str(path)

        return _SINGLE.sub(value, part)


def run_container(command, *, log, environment, folder):
    """Runs `python -m MODULE …` in a new folder; returns its exit code. Its output goes to the file `log`."""
    assert command[:2] == ["python", "-m"]
    folder.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        return subprocess.run(
            [sys.executable, *command[1:]],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode


def _needs(task):
    inputs = task.get("inputs", {})
    producers = {one["taskOutputArtifact"]["producerTask"] for one in inputs.get("artifacts", {}).values()}
    producers |= {
        one["taskOutputParameter"]["producerTask"]
        for one in inputs.get("parameters", {}).values()
        if "taskOutputParameter" in one
    }
    return producers | set(task.get("dependentTasks", ()))


def _with_needs(name, needs):
    return {name}.union(*(_with_needs(other, needs) for other in needs[name]))


def _moved(text, folders):
    for place, folder in folders.items():
        text = text.replace(place, str(folder))
    return text


def _digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
