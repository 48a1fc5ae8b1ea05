"""Runs a compiled pipeline as Vertex AI and Kubeflow do: every task's own command, with a proper ExecutorInput.

The work of the services around the commands is imitated. That is topological order, inner pipelines and exit tasks,
passing artifacts and parameters (dynamic ones too), caching by container and identity of inputs, and attempts. Buckets
and volumes are folders. Each rule names its source: files without a repository are in kubeflow/pipelines at 7b70c7b,
below backend/src/v2; `kubeflow_driver.RULES` says which were compared with the real programs. Vertex AI's source is not
public: its rules are those of its documentation, as far as they differ.
"""

import contextlib
import graphlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from kubeflow_driver import LOGS, V2_5, V2_17, cache_key, executors_of, fingerprint, pod_of, through_the_store
from sandbox import run_container

from shardwright.components.runtime.mounts import folder_of

PLACEHOLDER = "{{$}}"
# The parameters that KFP's own container components get one by one.
_SINGLE = re.compile(r"\{\{\$\.(inputs|outputs)\.(parameters|artifacts)\['([^']+)'\](?:\.(path|uri|output_file))?\}\}")
RAN, CACHED, DUE = "ran", "cached", "due"
# The exit code of a pod that is killed, with the launcher in it.
KILLED = 128 + 9
_EXIT = "ALL_UPSTREAM_TASKS_COMPLETED"


class TaskFailed(AssertionError):
    """A task's command ended with another code than 0, or could not start.

    Attributes:
        reported: whether a launcher lived to tell the metadata store.
    """

    reported = False


@dataclass
class Emulator:
    """One pipeline, run as often as wanted; what earlier runs made is cached.

    Attributes:
        spec: the pipeline as plain values.
        root: folder or URL of all artifacts.
        home: folder of logs and outputs.
        environment: variables of all containers.
        as_kubeflow: hand artifacts over as Kubeflow's driver does, not as Vertex AI does.
        version: of Kubeflow Pipelines.
        platform: Kubeflow's second document.
        secrets: name of a Secret or ConfigMap -> its keys and values.
        nodes: of the cluster, each with `labels`, `taints` and `capacity` where it has some.
        cache: key -> outputs.
        runs: how many runs there were.
        outputs: task -> its artifacts and parameters in the last run.
        done: task -> what it did in the last run, also if that failed.
        start: runs the command of a container and returns its exit code; see `run_container`.
        buckets: folders that stand for buckets, which a container reads and writes itself.
    """

    spec: dict
    root: str
    home: Path
    environment: dict = field(default_factory=dict)
    as_kubeflow: bool = False
    version: tuple = V2_17
    platform: dict = field(default_factory=dict)
    secrets: dict = field(default_factory=dict)
    nodes: list = field(default_factory=lambda: [{}])
    cache: dict = field(default_factory=dict)
    runs: int = 0
    outputs: dict = field(default_factory=dict)
    done: dict = field(default_factory=dict)
    _states: dict = field(default_factory=dict)
    _without: frozenset = frozenset()
    _ids: dict = field(default_factory=dict)
    start: Callable[..., int] = field(default_factory=lambda: run_container)
    buckets: list = field(default_factory=list)

    @staticmethod
    def vertex(file, home, *, folders):
        """A JSON of `--target vertex`; `folders` says which folder stands for the beginning of which place."""
        job = json.loads(_moved(Path(file).read_text(encoding="utf-8"), folders))
        root = job["runtimeConfig"]["gcsOutputDirectory"]
        return Emulator(job["pipelineSpec"], root, Path(home), buckets=_buckets(folders))

    @staticmethod
    def kubeflow(file, home, *, folders, version=V2_17):
        """A YAML of `--target kubeflow`; its artifacts' places stay URLs, as Kubeflow's launcher gives them."""
        spec, *platform = yaml.safe_load_all(_moved(Path(file).read_text(encoding="utf-8"), folders))
        # backend/src/apiserver/template/v2_template.go:235.
        if spec["schemaVersion"] != "2.1.0":
            found = spec["schemaVersion"]
            raise TaskFailed(f"KFP only supports schema version 2.1.0, but the pipeline spec has version {found}")
        if version <= V2_5 and "taskFinalStatus" in json.dumps(spec):
            # argocompiler/dag.go of 2.5.0: the whole pipeline is refused.
            raise TaskFailed("task final status not supported yet")
        mounts = Path(home, "mounts")
        root = spec.get("defaultPipelineRoot", "minio://mlpipeline/v2/artifacts")
        environment = {"SHARDWRIGHT_MOUNTS": str(mounts)}
        own = {"platform": dict(*platform), "buckets": _buckets(folders), "version": version}
        return Emulator(spec, root, Path(home), environment, as_kubeflow=True, **own)

    def run(self, until=None, without=(), **parameters):
        """Runs all tasks, or what one needs and that one; returns what each did, in order: `{task: RAN or CACHED}`.

        Those of `without` are `DUE` where they are not cached: they would run. A task that needs one must be among
        them. Exit tasks run only if all do.
        """
        given = self._begin(parameters)
        self._without = frozenset(without)
        self.done = {}
        self._dag(self.spec["root"]["dag"]["tasks"], given, until)
        return self.done

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

    def _dag(self, tasks, given, until):
        """Runs the tasks of one DAG, and of the DAGs in it.

        An exit task (`ALL_UPSTREAM_TASKS_COMPLETED`) runs when the task before it has ended, in whatever state
        (compiler/argocompiler/dag.go:72 and :124).
        """
        exits = {name for name, task in tasks.items() if task.get("triggerPolicy", {}).get("strategy") == _EXIT}
        needs = {name: sorted(_needs(tasks[name])) for name in sorted(set(tasks) - exits)}
        # A task sees the other tasks of its own DAG only (driver/resolve.go, `getDAGTasks`).
        for name, others in needs.items():
            assert set(others) <= set(needs), f"{name} needs {set(others) - set(needs)}, not in this DAG"
        wanted = _with_needs(until, needs) if until in needs else set(needs)
        for name in graphlib.TopologicalSorter({n: needs[n] for n in sorted(wanted)}).static_order():
            failure = self._dag_or_task(name, tasks[name], given, until)
            for after in sorted(exits) if until is None else ():
                if name in tasks[after]["dependentTasks"]:
                    # The state is that of the executions: one whose launcher was killed stays as it was.
                    failed = "FAILED" if not self.as_kubeflow or getattr(failure, "reported", False) else "RUNNING"
                    self._states[name] = failed if failure else "COMPLETE"
                    self.done[after] = self._task(after, tasks[after], given)
            if failure:
                raise failure

    def _dag_or_task(self, name, task, given, until):
        component = self.spec["components"][task["componentRef"]["name"]]
        try:
            if "dag" in component:
                values = _with_defaults(component, self._values(name, task, component, given))
                self._dag(component["dag"]["tasks"], values, until)
            else:
                self.done[name] = self._task(name, task, given)
        except TaskFailed as failure:
            return failure
        return None

    def _values(self, name, task, component, given):
        """The parameters of a task or an inner DAG, without defaults: driver/resolve.go:375 `resolveInputParameter`."""
        defined = component.get("inputDefinitions", {}).get("parameters", {})
        passed = task.get("inputs", {}).get("parameters", {})
        # TFX gives tasks of our components inputs that are not declared, and the driver passes them all the same.
        return {
            key: self._value(name, one, given, defined.get(key, {}).get("parameterType")) for key, one in passed.items()
        }

    def _task(self, name, task, given):
        component = self.spec["components"][task["componentRef"]["name"]]
        container = self.spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
        assert "lifecycle" not in container
        values = self._values(name, task, component, given)
        artifacts = {}
        if name in self._without and any(needed not in self.outputs for needed in _needs(task)):
            return DUE
        for key, one in task.get("inputs", {}).get("artifacts", {}).items():
            produced = one["taskOutputArtifact"]
            made = self.outputs[produced["producerTask"]]["artifacts"][produced["outputArtifactKey"]]
            artifacts[key] = {"artifacts": [self._handed_over(made, produced["outputArtifactKey"])]}
        key = self._cache_key(task, component, container, {"parameterValues": values, "artifacts": artifacts})
        if task.get("cachingOptions", {}).get("enableCache") and key in self.cache:
            self.outputs[name] = self.cache[key]
            return CACHED
        if name in self._without:
            return DUE
        retries = task.get("retryPolicy", {}).get("maxRetryCount", 0)
        values = _with_defaults(component, values)
        self.outputs[name] = self.cache[key] = self._execute(name, task, container, values, artifacts, retries)
        return RAN

    def _cache_key(self, task, component, container, inputs):
        """The key by which an earlier execution is found, in the same pipeline (driver/cache.go:142).

        Vertex AI's key is not public. Its documentation names the same things, and the variables of the environment.
        """
        claims = [one["name"] for one in self._pod(task)["volumes"] if "persistentVolumeClaim" in one]
        outputs = {key: {**one, "name": key} for key, one in self._outputs("", component).items()}
        key = cache_key(container, component, inputs, outputs, claims, self.version)
        if not self.as_kubeflow:
            key["environment"] = container.get("env", [])
        return self.spec.get("pipelineInfo", {}).get("name"), fingerprint(key)

    def _outputs(self, name, component):
        """Output key -> its artifact without URI: driver/driver.go:733 `provisionOutputs`."""
        defined = dict(component.get("outputDefinitions", {}).get("artifacts", {}))
        if self.as_kubeflow:
            defined |= LOGS
        made = {}
        for key, one in defined.items():
            made[key] = {"type": one["artifactType"], "metadata": dict(one.get("metadata", {}))}
            if not self.as_kubeflow or self.version > V2_5:
                made[key]["name"] = key if self.as_kubeflow else f"artifacts/{self.runs}-{name}-{key}"
        return made

    def _pod(self, task):
        """The specification of a task's pod. Vertex AI has none: a task has its container's variables."""
        return pod_of(task["componentRef"]["name"], self.spec, self.platform)["spec"]

    def _handed_over(self, made, key):
        """An output of one task as the input of another.

        Kubeflow's driver reads artifacts back from its metadata store (kubeflow/pipelines, backend/src/v2/metadata).
        The name is the store's number (`toRuntimeArtifact`). The type is always empty (`ToRuntimeArtifact` with the
        `Schema: ""` of `GetOutputArtifactsByExecutionId`).
        """
        if not self.as_kubeflow:
            return made
        number = self._ids.setdefault(made["uri"], len(self._ids) + 1)
        return {
            "name": str(number),
            "uri": made["uri"],
            "type": {"instanceSchema": ""},
            "metadata": through_the_store(made["metadata"], key, made["uri"], self.version),
        }

    def _value(self, name, source, given, kind):
        if "taskOutputParameter" in source:
            produced = source["taskOutputParameter"]
            return self.outputs[produced["producerTask"]]["parameters"][produced["outputParameterKey"]]
        if "componentInputParameter" in source:
            wanted = source["componentInputParameter"]
            if wanted not in given:
                raise TaskFailed(f"{name}: parent DAG does not have input parameter {wanted}")  # driver/resolve.go:396
            return given[wanted]
        if "taskFinalStatus" in source:
            return self._final_status(source["taskFinalStatus"]["producerTask"], kind)
        if "constant" not in source["runtimeValue"]:
            # driver/resolve.go:456.
            raise TaskFailed(f"{name}: param runtime value spec of type {list(source['runtimeValue'])} not implemented")
        return source["runtimeValue"]["constant"]

    def _final_status(self, producer, kind):
        """A `PipelineTaskFinalStatus`: a struct on Kubeflow (driver/resolve.go:471), with ML Metadata's states.

        Vertex AI has its own states, and passes a text where the component asks for one, as TFX's exit handlers do.
        """
        state = self._states[producer]
        if not self.as_kubeflow:
            state = {"COMPLETE": "SUCCEEDED"}.get(state, state)
        found = {
            "state": state,
            "pipelineTaskName": producer,
            "pipelineJobResourceName": f"run-{self.runs}",
            "error": {},
        }
        return json.dumps(found) if kind == "STRING" else found

    def _execute(self, name, task, container, values, artifacts, retries):
        component = self.spec["components"][task["componentRef"]["name"]]
        folder = self.home / "tasks" / f"{self.runs:02d}-{name}"
        folder.mkdir(parents=True)
        log = folder / "log"
        asked, reported = self._pod(task), False
        for attempt in range(1 + retries):
            root = self._task_root(name, attempt)
            made = {key: {**one, "uri": f"{root}/{key}"} for key, one in self._outputs(name, component).items()}
            if self.as_kubeflow and self.version >= V2_17:
                # component/launcher_v2.go:538 `qualifyExecutorLogsURI`.
                made["executor-logs"]["uri"] += f"-{attempt}"
            pod = Pod(self, folder / "pods" / str(attempt), component.get("outputDefinitions", {}), root)
            executor_input = pod.executor_input(values, artifacts, made)
            json_format.ParseDict(executor_input, pipeline_spec_pb2.ExecutorInput())
            with self._scheduled(name, asked):
                pod.begin(artifacts, made)
                arguments = [pod.resolved(part, executor_input) for part in container.get("args", ())]
                code = self.start(
                    [*container["command"], *arguments],
                    log=log,
                    environment={**self._variables(name, asked), **self.environment, **pod.environment},
                    folder=folder / "work" / str(attempt),
                    writable=self._writable(pod, asked),
                )
            if not code:
                break
            reported = reported or code != KILLED
            if self.version >= V2_17 and code != KILLED:
                pod.keep_log(made)
        if code:
            # The launcher's own exit code is 1, whatever the command's is (cmd/launcher-v2/main.go).
            shown = f"{code}, of the container 1" if self.as_kubeflow and code != KILLED else code
            text = log.read_text(encoding="utf-8", errors="replace")[-6000:]
            failure = TaskFailed(f"{name} ended with {shown}:\n{text}")
            failure.reported = reported
            raise failure
        return pod.end(name, made)

    def _writable(self, pod, asked):
        """The folders that a container may write to: the mounts of its pod, and the buckets.

        Kubeflow's are folders for the stores' copies (compiler/argocompiler/container.go,
        `addContainerExecutorTemplate`), and those of the platform document. Vertex AI mounts buckets below /gcs.
        """
        claims = [Path(one["mountPath"]) for one in asked["containers"][0]["volumeMounts"]]
        folders = [*pod.writable, *map(Path, self.buckets)]
        return [place for place in (*folders, *claims) if place.is_dir() and place != Path("/")]

    def _variables(self, name, pod):
        """The variables of a container; one whose Secret or key is missing is not created."""
        found = {}
        for one in pod["containers"][0]["env"]:
            if "value" in one:
                found[one["name"]] = one["value"]
                continue
            ((_, wanted),) = one["valueFrom"].items()
            if wanted["key"] not in self.secrets.get(wanted["name"], {}):
                raise TaskFailed(f"{name}: CreateContainerConfigError: no key {wanted['key']} in {wanted['name']}")
            found[one["name"]] = self.secrets[wanted["name"]][wanted["key"]]
        return found

    @contextlib.contextmanager
    def _scheduled(self, name, pod):
        """A pod on a node, with its claims mounted: those of other pods are not there while it runs."""
        limits = pod["containers"][0]["resources"]["limits"]
        if self.as_kubeflow and not any(fits(pod, limits, node) for node in self.nodes):
            raise TaskFailed(f"{name}: Unschedulable: no node has {pod.get('nodeSelector')} and {limits}")
        mounts = [one for settings in executors_of(self.platform).values() for one in settings.get("pvcMount", ())]
        every = {one["mountPath"] for one in mounts}
        own = {one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
        hidden = [Path(path) for path in sorted(every - own) if Path(path).is_dir()]
        for path in hidden:
            path.rename(f"{path}.unmounted")
        try:
            yield
        finally:
            for path in hidden:
                Path(f"{path}.unmounted").rename(path)

    def _task_root(self, name, attempt):
        """The folder of a task's outputs.

        On Kubeflow the driver chooses it before the first attempt (driver/container.go:113), and Argo runs the same
        command again (compiler/argocompiler/container.go:587). Vertex AI's attempts are tasks of their own.
        """
        again = f"-{attempt}" if attempt and not self.as_kubeflow else ""
        return f"{self.root}/{self.runs:02d}/{name}{again}"


class Pod:
    """One attempt of a task: its disk, and what the launcher does before and after the command.

    On Kubeflow an attempt has a disk of its own (`SHARDWRIGHT_MOUNTS` of the container). The launcher downloads the
    inputs to it (component/launcher_v2.go:927) and uploads the outputs of a command that succeeded (:778): files, since
    an object store has no empty folders. Vertex AI mounts the buckets themselves. A root that is a folder of this
    machine stands for a bucket that every task reads itself, so nothing is copied.
    """

    def __init__(self, emulator, folder, defined, root):
        self._bucket = emulator.environment.get("SHARDWRIGHT_MOUNTS", "/")
        self._copies, self._version = emulator.as_kubeflow, emulator.version
        self._disk = folder if self._copies else Path(self._bucket)
        self._files = folder / "tmp"
        self._root = root
        self._defined = defined
        self.environment = {"SHARDWRIGHT_MOUNTS": str(self._disk)} if self._copies else {}
        self.writable = [self._disk, self._files]

    def executor_input(self, values, artifacts, made):
        """The ExecutorInput. The paths of the last two: driver/driver.go:786 `provisionOutputs`."""
        keys = self._defined.get("parameters", {})
        return {
            "inputs": {"parameterValues": values, "artifacts": artifacts},
            "outputs": {
                "artifacts": {key: {"artifacts": [artifact]} for key, artifact in made.items()},
                "parameters": {key: {"outputFile": str(self._files / "kfp" / "outputs" / key)} for key in keys},
                "outputFile": str(self._output_file()),
            },
        }

    def _output_file(self):
        """Kubeflow's is next to the artifacts (driver/driver.go:794), that of 2.5 in a folder of the pod."""
        if self._copies and self._version <= V2_5:
            return self._files / "kfp_outputs" / "output_metadata.json"
        return Path(folder_of(self._root, str(self._disk)) if self._copies else self._files, "output_metadata.json")

    def begin(self, artifacts, made):
        """Downloads the inputs and makes the parent folders of the outputs (component/launcher_v2.go:1280)."""
        (self._files / "kfp" / "outputs").mkdir(parents=True, exist_ok=True)
        self._output_file().parent.mkdir(parents=True, exist_ok=True)
        for listed in artifacts.values():
            self._copy(listed["artifacts"][0]["uri"], self._bucket, self._disk)
        for artifact in made.values():
            place = Path(folder_of(artifact["uri"], str(self._disk)))
            if self._copies and place.is_dir():
                shutil.rmtree(place)  # of an earlier attempt, whose disk is gone
            place.parent.mkdir(parents=True, exist_ok=True)
        if self._copies:
            # The launcher opens it before the command starts (component/launcher_v2.go:632 `getLogWriter`).
            Path(folder_of(made["executor-logs"]["uri"], str(self._disk))).touch()

    def keep_log(self, made):
        """Uploads the log of an attempt that failed (component/launcher_v2.go:632)."""
        if self._copies:
            self._copy(made["executor-logs"]["uri"], self._disk, self._bucket)

    def end(self, name, made):
        """Uploads the outputs; returns them with the metadata and the parameters that the command has reported."""
        file = self._output_file()
        reported = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        json_format.ParseDict(reported, pipeline_spec_pb2.ExecutorOutput())
        for key, artifact in made.items():
            of_it = reported.get("artifacts", {}).get(key, {}).get("artifacts", [{}])[0]
            # A task may report another place (component/launcher_v2.go:1188); ours never do.
            assert key not in LOGS or not of_it
            assert of_it.get("uri", artifact["uri"]) == artifact["uri"]
            artifact["metadata"] = of_it.get("metadata", {})
            self._copy(artifact["uri"], self._disk, self._bucket)
        values = dict(reported.get("parameterValues", {}))
        for key, definition in self._defined.get("parameters", {}).items():
            if key not in values:
                values[key] = self._parameter(name, key, definition["parameterType"])
        if self._copies:
            shutil.rmtree(self._disk, ignore_errors=True)
        return {"artifacts": made, "parameters": values}

    def _parameter(self, name, key, kind):
        """An output parameter from its file, by its type (metadata/converter.go:50); the file must exist."""
        file = self._files / "kfp" / "outputs" / key
        if not file.exists():
            raise TaskFailed(f"{name}: failed to read output parameter {key}: no such file")
        text = file.read_text(encoding="utf-8")
        return text if kind == "STRING" else json.loads(text)

    def _copy(self, uri, source, target):
        origin, place = Path(folder_of(uri, str(source))), Path(folder_of(uri, str(target)))
        if not self._copies or origin == place:
            return
        for file in [origin] if origin.is_file() else (path for path in origin.rglob("*") if path.is_file()):
            copied = place / file.relative_to(origin) if file != origin else place
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)

    def resolved(self, part, executor_input):
        """An argument with its placeholders filled in (component/launcher_v2.go:1051 and :1077)."""

        def value(match):
            side, kind, name, what = match.groups()
            if kind == "parameters":
                if side == "outputs":
                    return executor_input["outputs"]["parameters"][name]["outputFile"]
                found = executor_input["inputs"]["parameterValues"][name]
                # Go writes a double that is a whole number without a point.
                return found if isinstance(found, str) else json.dumps(found).removesuffix(".0")
            uri = executor_input[side]["artifacts"][name]["artifacts"][0]["uri"]
            return uri if what == "uri" else folder_of(uri, str(self._disk))

        return _SINGLE.sub(value, part.replace(PLACEHOLDER, json.dumps(executor_input)))


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


def _buckets(folders):
    return [folder for place, folder in folders.items() if "://" in place]


def _moved(text, folders):
    for place, folder in folders.items():
        text = text.replace(place, str(folder))
    return text


def _with_defaults(component, values):
    """The parameters of a task with those that it does not set: component/launcher_v2.go:1310 `addDefaultParams`."""
    defined = component.get("inputDefinitions", {}).get("parameters", {})
    return {key: one["defaultValue"] for key, one in defined.items() if "defaultValue" in one} | values


def fits(pod, limits, node):
    """Returns whether a pod may run on a node: its labels, its taints, its devices."""
    labels, devices = node.get("labels", {}), node.get("capacity", {})
    tolerated = [
        any(
            one["key"] == taint["key"]
            and one.get("effect", taint["effect"]) == taint["effect"]
            and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""))
            for one in pod["tolerations"]
        )
        for taint in node.get("taints", ())
    ]
    return (
        all(labels.get(name) == value for name, value in pod.get("nodeSelector", {}).items())
        and all(tolerated)
        and all(int(count) <= devices.get(name, 0) for name, count in limits.items() if "/" in name)
    )
