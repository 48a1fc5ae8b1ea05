"""Documents with the faults that Shardwright's, or TFX's own, once had: each fails in the emulator of its service.

The tasks of the first tests are a stand-in that succeeds at once, so that only the document can be at fault. The last
test runs real tasks.
"""

import copy
import json
import signal
from pathlib import Path

import pytest
import yaml
from emulator import CACHED, RAN, Emulator, TaskFailed

from shardwright.components.runtime.mounts import folder_of
from shardwright.pipelines.cli import main
from shardwright.pipelines.cloud.exit_task import add_webhook_task
from shardwright.sample import write_sample

GOLDEN = Path(__file__).parent / "golden" / "kubeflow.yaml"
TPU_NODE = {
    "labels": {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x2",
    },
    "taints": [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}],
    "capacity": {"google.com/tpu": 4},
}
CPU_NODE = {"labels": {"cloud.google.com/gke-nodepool": "cpu"}}
NEVER_CACHED, FOLLOW_THE_BASELINE = {"InputResolver", "BaselineResolver"}, {"Evaluator", "Pusher"}
INVOCATION = "--json_serialized_invocation_args"
KILLED = 128 + signal.SIGKILL


def loaded():
    """The pipeline, and its executors in the platform document."""
    spec, platform = yaml.safe_load_all(GOLDEN.read_text(encoding="utf-8"))
    return spec, platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]


class Tasks:
    """Writes the outputs of a task in the place of its command; the first attempt of some is killed."""

    def __init__(self, killed=()):
        self.killed, self.attempts = killed, {}

    def start(self, command, *, log, environment, folder, writable):
        del writable
        log.touch()
        if INVOCATION not in command:
            return 0
        given = json.loads(command[command.index(INVOCATION) + 1])
        task = folder.parents[1].name.partition("-")[2]
        self.attempts[task] = self.attempts.get(task, 0) + 1
        if task in self.killed and self.attempts[task] == 1:
            return KILLED
        for listed in given["outputs"]["artifacts"].values():
            place = Path(folder_of(listed["artifacts"][0]["uri"], environment.get("SHARDWRIGHT_MOUNTS", "/")))
            if not place.is_file():
                place.mkdir(parents=True)
                (place / "file").write_text("made", encoding="utf-8")
        for parameter in given["outputs"].get("parameters", {}).values():
            Path(parameter["outputFile"]).write_text("{}", encoding="utf-8")
        return 0


def emulated(tmp_path, spec, executors, tasks):
    """The documents in the emulator, on a cluster with a TPU node and another one."""
    platform = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump_all([spec, platform]), encoding="utf-8")
    made = Emulator.kubeflow(file, tmp_path / "home", folders={})
    made.nodes, made.start = [TPU_NODE, CPU_NODE], tasks.start
    return made


def test_the_document_of_today_passes(tmp_path):
    spec, executors = loaded()
    tasks = Tasks(killed=spec["root"]["dag"]["tasks"])
    made = emulated(tmp_path, spec, executors, tasks)
    assert made.run() == dict.fromkeys(spec["root"]["dag"]["tasks"], RAN)
    assert set(tasks.attempts.values()) == {2}
    assert {task for task, what in made.run().items() if what == RAN} == NEVER_CACHED | FOLLOW_THE_BASELINE


def _schema(spec, executors):
    spec["schemaVersion"] = "2.0.0"


def _constant(spec, executors):
    """As TFX writes constants with schema 2.0.0."""
    for parameter in spec["root"]["dag"]["tasks"]["Pusher"]["inputs"]["parameters"].values():
        parameter["runtimeValue"] = {"constantValue": {"stringValue": "x"}}


def _suffix(spec, executors):
    """As TFX names the producers of dynamic values."""
    for parameter in spec["root"]["dag"]["tasks"]["ImageExampleGen"]["inputs"]["parameters"].values():
        if "taskOutputParameter" in parameter:
            parameter["taskOutputParameter"]["producerTask"] += "_task"


def _component_name(spec, executors):
    """The settings under the name of the component, which the backend ignores."""
    executors["Trainer"] = executors.pop("Trainer_executor")


def _no_selector(spec, executors):
    del executors["Trainer_executor"]["tolerations"]


def _chips(spec, executors):
    container = spec["deploymentSpec"]["executors"]["Trainer_executor"]["container"]
    container["resources"]["accelerator"]["count"] = "8"


def _no_retries(spec, executors):
    del spec["root"]["dag"]["tasks"]["StatisticsGen"]["retryPolicy"]


def _inner(spec, executors):
    """The inner pipeline of an exit handler, as TFX makes it: without the parameters of the run."""
    add_webhook_task(spec, "clouds", "failure", "registry.example/shardwright:1.0")
    del spec["root"]["dag"]["tasks"]["pipeline"]["inputs"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (_schema, r"KFP only supports schema version 2\.1\.0, but the pipeline spec has version 2\.0\.0"),
        (_constant, r"Pusher: .*constantValue.* not implemented"),
        (_suffix, "ImageExampleGen needs {'InputResolver_task'}, not in this DAG"),
        (_component_name, "Trainer: Unschedulable"),
        (_no_selector, "Trainer: Unschedulable"),
        (_chips, "Trainer: Unschedulable"),
        (_no_retries, f"StatisticsGen ended with {KILLED}"),
        (_inner, "parent DAG does not have input parameter"),
    ],
)
def test_a_faulty_document_fails(tmp_path, fault, message):
    spec, executors = loaded()
    fault(spec, executors)
    with pytest.raises(AssertionError, match=message):
        emulated(tmp_path, spec, executors, Tasks(killed=["StatisticsGen"])).run()


def on_vertex(tmp_path, tasks, fault=None):
    """The document for Vertex AI, with a fault, in its emulator."""
    job = yaml.safe_load(GOLDEN.with_name("vertex.yaml").read_text(encoding="utf-8"))
    if fault is not None:
        fault(job["pipelineSpec"], {})
    file = tmp_path / "pipeline.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    made = Emulator.vertex(file, tmp_path / "home", folders={"gs://": f"{tmp_path}/gs/"})
    made.start = tasks.start
    return made


def test_the_document_for_vertex_ai_passes(tmp_path):
    tasks = Tasks(killed=["StatisticsGen", "Trainer"])
    made = on_vertex(tmp_path, tasks)
    assert set(made.run().values()) == {RAN}
    assert tasks.attempts["Trainer"] == 2
    assert {task for task, what in made.run().items() if what == RAN} == NEVER_CACHED | FOLLOW_THE_BASELINE


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (_constant, r"Pusher: .*constantValue.* not implemented"),
        (_suffix, "ImageExampleGen needs {'InputResolver_task'}, not in this DAG"),
        (_no_retries, f"StatisticsGen ended with {KILLED}"),
    ],
)
def test_a_faulty_document_for_vertex_ai_fails(tmp_path, fault, message):
    with pytest.raises(AssertionError, match=message):
        on_vertex(tmp_path, Tasks(killed=["StatisticsGen"]), fault).run()


def _cached_resolver(spec, executors):
    spec["root"]["dag"]["tasks"]["InputResolver"]["cachingOptions"] = {"enableCache": True}


def test_a_resolver_that_is_cached_misses_new_images(tmp_path):
    spec, executors = loaded()
    _cached_resolver(spec, executors)
    (tmp_path / "vertex").mkdir()
    on_both = emulated(tmp_path, spec, executors, Tasks()), on_vertex(tmp_path / "vertex", Tasks(), _cached_resolver)
    for made in on_both:
        made.run()
        assert made.run()["InputResolver"] == CACHED


CONFIG = {
    "name": "clouds",
    "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
    "kubeflow": {
        "image": "registry.example/shardwright:1.0",
        "data_root": "/data",
        "push_directory": "/models/clouds",
        "retries": 0,
        "volumes": [{"claim": "data", "path": "/data"}, {"claim": "models", "path": "/models"}],
    },
}
TFX = ["python", "-m", "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"]


@pytest.mark.slow
def test_the_entry_point_of_tfx_fails_on_what_kubeflow_passes(tmp_path, monkeypatch):
    """Empty types of inputs, and the output for the log. `shardwright.components.runtime.container` handles both."""
    monkeypatch.chdir(tmp_path)
    write_sample(str(tmp_path / "data"), images=8, height=64, width=96, seed=3)
    (tmp_path / "models").mkdir()
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    assert main(["compile", "clouds.yaml", "--target", "kubeflow", "--out", "k.yaml"]) == 0
    made = Emulator.kubeflow("k.yaml", tmp_path / "home", folders={"/models": f"{tmp_path}/models"})
    data = str(tmp_path / "data")
    good = copy.deepcopy(made.spec)
    for task, problem in (("StatisticsGen", "AttributeError"), ("ImportSchemaGen", "Could not import system.Artifact")):
        made.spec = copy.deepcopy(good)
        container = made.spec["deploymentSpec"]["executors"][f"{task}_executor"]["container"]
        container["command"] = TFX
        container["args"] = container["args"][container["args"].index("--executor_class_path") :]
        with pytest.raises(TaskFailed, match=problem):
            made.run(until=task, data_root=data)
    made.spec = good
    assert made.run(until="StatisticsGen", data_root=data)["StatisticsGen"] == RAN
