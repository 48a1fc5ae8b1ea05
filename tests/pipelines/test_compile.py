"""`shardwright compile`: documents are valid by the services' own schemas, and errors are reported beforehand."""

import copy
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, WorkerOptions
from google.auth.credentials import AnonymousCredentials
from google.protobuf import json_format
from kfp import components
from kfp.pipeline_spec import pipeline_spec_pb2

from shardwright.config import parse_config
from shardwright.config.cloud import COMPONENTS
from shardwright.errors import ConfigError, CredentialsError
from shardwright.pipelines.cli import main
from shardwright.pipelines.commands.files import compiled_pipeline
from shardwright.pipelines.compile_kubeflow import check_for_backend, platform_document
from shardwright.pipelines.compile_vertex import dataflow_options, job_of_trainer, worker_pools
from shardwright.pipelines.graph import STEPS
from shardwright.sample import write_sample

GOLDEN = Path(__file__).parent / "golden"
SECRET, SECRET_NAMES = "hush-0b59c2", ("AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "GIT_TOKEN", "KFP_TOKEN")
IMAGE = "europe-docker.pkg.dev/my-project/ml/shardwright:1.0"
CONFIG = {
    "name": "clouds",
    "task": "segmentation",
    "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
    "transform": {"size": [64, 96]},
    "trainer": {"epochs": 2},
    "vertex": {
        "project": "my-project",
        "region": "europe-west4",
        "service_account": "trainer@my-project.iam.gserviceaccount.com",
        "pipeline_root": "gs://bucket/runs/clouds",
        "data_root": "gs://bucket/clouds",
        "image": IMAGE,
        "labels": {"team": "clouds"},
        "resources": {"ImageTransform": {"cpu": 8, "memory": "32GB"}},
        "trainer": {"machine": "g2-standard-8", "gpu": "NVIDIA_L4", "gpus": 1},
        "dataflow": {"components": ["StatisticsGen"], "max_workers": 4, "public_ips": False},
    },
    "kubeflow": {
        "image": IMAGE,
        "pipeline_root": "gs://bucket/kfp",
        "data_root": "gs://bucket/clouds",
        "push_directory": "/models/clouds",
        "resources": {"Trainer": {"cpu": 8, "memory": "32GB"}},
        "node_selectors": {"ImageTransform": {"cloud.google.com/gke-nodepool": "cpu"}},
        "volumes": [{"claim": "models", "path": "/models"}],
        "trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x2"},
    },
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compile")
    write_sample(str(folder / "data"), images=8, height=64, width=96, seed=3)
    (folder / "clouds.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def documents(home):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        for name in SECRET_NAMES:
            patch.setenv(name, SECRET)
        # That of last month is replaced without --force.
        earlier = {"name": "clouds", "command": ["python", "-m", "shardwright.components.runtime.container"]}
        (home / "vertex.json").write_text(json.dumps({"pipelineSpec": {"pipelineInfo": earlier}}, indent=1))
        assert main(["compile", "clouds.yaml", "--target", "vertex", "--out", "vertex.json"]) == 0
        assert main(["compile", "clouds.yaml", "--target", "kubeflow", "--out", "kubeflow.yaml"]) == 0
    return {"vertex": home / "vertex.json", "kubeflow": home / "kubeflow.yaml"}


@pytest.fixture(scope="module")
def job(documents):
    return json.loads(documents["vertex"].read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def kubeflow(documents):
    return list(yaml.safe_load_all(documents["kubeflow"].read_text(encoding="utf-8")))


@pytest.fixture(params=["vertex", "kubeflow"])
def spec(request, job, kubeflow):
    return copy.deepcopy(job["pipelineSpec"] if request.param == "vertex" else kubeflow[0])


def container(spec, component):
    return spec["deploymentSpec"]["executors"][f"{component}_executor"]["container"]


def parameters(spec, task):
    return spec["root"]["dag"]["tasks"][task]["inputs"]["parameters"]


def test_it_parses_strictly(spec):
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(spec["deploymentSpec"], pipeline_spec_pb2.PipelineDeploymentConfig())
    check_for_backend(spec)


def test_every_producer_is_a_task(spec):
    tasks = spec["root"]["dag"]["tasks"]
    for task in tasks.values():
        inputs = task.get("inputs", {})
        for one in inputs.get("parameters", {}).values():
            assert one.get("taskOutputParameter", {"producerTask": "InputResolver"})["producerTask"] in tasks
        for one in inputs.get("artifacts", {}).values():
            assert one["taskOutputArtifact"]["producerTask"] in tasks
        assert set(task.get("dependentTasks", ())) <= set(tasks)


def test_the_input_is_resolved_when_it_runs(spec):
    given = parameters(spec, "ImageExampleGen")
    for name, key in (("input_fingerprint", "fingerprint"), ("input_location", "location")):
        assert given[name]["taskOutputParameter"] == {"producerTask": "InputResolver", "outputParameterKey": key}
    assert parameters(spec, "InputResolver")["data_root"] == {"componentInputParameter": "data_root"}
    defaults = spec["root"]["inputDefinitions"]["parameters"]
    assert defaults["data_root"]["defaultValue"] == "gs://bucket/clouds"
    assert defaults["span"]["defaultValue"] == "newest"


def test_the_dataset_of_the_model_in_force_is_looked_up_when_it_runs(home, monkeypatch, capsys):
    monkeypatch.chdir(home)
    words = {"reuse_from": "blessed", "split": {"keep_from": "blessed"}, "gate": {"drift": {"reference": "blessed"}}}
    Path("looked-up.yaml").write_text(yaml.safe_dump({**CONFIG, **words}), encoding="utf-8")
    assert main(["compile", "looked-up.yaml", "--target", "vertex", "--out", "looked-up.json"]) == 0
    assert "split.keep_from: 'blessed' is looked up when the pipeline runs" in capsys.readouterr().out
    spec = json.loads(Path("looked-up.json").read_text(encoding="utf-8"))["pipelineSpec"]
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    for task, name, key in (("ImageExampleGen", "recipe", "settled_recipe"), ("Report", "drift", "settled_drift")):
        found = parameters(spec, task)[name]["taskOutputParameter"]
        assert found == {"producerTask": "InputResolver", "outputParameterKey": key}
        assert "InputResolver" in spec["root"]["dag"]["tasks"][task]["dependentTasks"]
    asked = json.loads(parameters(spec, "InputResolver")["blessed"]["runtimeValue"]["constant"])
    assert asked["push_directory"] == "gs://bucket/runs/clouds/pushed"
    assert asked["options"] == ["reuse_from", "split.keep_from", "gate.drift.reference"]


def test_what_looks_around_is_never_cached(spec):
    tasks = spec["root"]["dag"]["tasks"]
    cached = {name for name, task in tasks.items() if task["cachingOptions"].get("enableCache")}
    assert cached == set(tasks) & {step.name for step in STEPS if step.cached}


def test_nothing_of_this_machine_is_in_it(documents, home):
    for document in documents.values():
        text = document.read_text(encoding="utf-8")
        assert str(home) not in text
        assert sys.prefix not in text
        assert SECRET not in text
        assert not re.search(r"(?i)secret|password|private_key|BEGIN [A-Z ]*KEY", text)


@pytest.mark.slow
def test_it_is_the_same_again_in_another_process(documents, home):
    code = "from shardwright.pipelines.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    arguments = ["compile", "clouds.yaml", "--target", "vertex", "--out", "again.json"]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code, *arguments]
    subprocess.run(command, cwd=home, check=True, capture_output=True, env=environment)
    assert (home / "again.json").read_bytes() == documents["vertex"].read_bytes()


def test_vertex_takes_the_job(documents):
    from google.cloud import aiplatform

    found = aiplatform.PipelineJob(
        display_name="clouds",
        template_path=str(documents["vertex"]),
        project="my-project",
        location="europe-west4",
        credentials=AnonymousCredentials(),
        parameter_values={"span": "3"},
    )
    values = found._gca_resource.runtime_config.parameter_values
    assert dict(values) == {"span": "3"}


def test_the_trainer_is_a_custom_job(job):
    from google.cloud.aiplatform_v1.types import CustomJob
    from tfx.extensions.google_cloud_ai_platform.constants import ENABLE_VERTEX_KEY, VERTEX_REGION_KEY
    from tfx.extensions.google_cloud_ai_platform.trainer.executor import TRAINING_ARGS_KEY

    args = container(job["pipelineSpec"], "Trainer")["args"]
    assert "shardwright.components.image_trainer.custom_job.Executor" in args

    custom = json.loads(parameters(job["pipelineSpec"], "Trainer")["custom_config"]["runtimeValue"]["constant"])
    assert custom[ENABLE_VERTEX_KEY] is True
    assert custom[VERTEX_REGION_KEY] == "europe-west4"
    result = custom[TRAINING_ARGS_KEY]
    parsed = CustomJob(display_name=result["display_name"], job_spec=result["job_spec"], labels=result["labels"])
    (pool,) = parsed.job_spec.worker_pool_specs
    assert (pool.machine_spec.machine_type, pool.machine_spec.accelerator_count) == ("g2-standard-8", 1)
    assert pool.container_spec.image_uri == IMAGE
    assert parsed.job_spec.service_account.startswith("trainer@")
    assert parsed.job_spec.scheduling.timeout.days == 7


def test_machines_labels_and_dataflow(job):
    assert job["labels"]["team"] == "clouds"
    spec = job["pipelineSpec"]
    assert container(spec, "ImageTransform")["resources"]["cpuLimit"] == 8
    assert container(spec, "ImageTransform")["resources"]["memoryLimit"] == 32
    dataflow = container(spec, "StatisticsGen")["args"]
    assert "--runner=DataflowRunner" in dataflow
    assert f"--sdk_container_image={IMAGE}" in dataflow
    assert "--no_use_public_ips" in dataflow
    assert not any(part.startswith("--runner") for part in container(spec, "ImageExampleGen")["args"])
    assert container(spec, "Pusher")["args"][:2] == ["--artifacts", "mounted"]
    assert container(spec, "ImageExampleGen")["args"][:2] == ["--artifacts", "as-they-are"]


def test_beam_knows_the_options_of_dataflow():
    config = parse_config(CONFIG, base="/")
    options = PipelineOptions(list(dataflow_options(config.vertex, "gs://bucket/runs")))
    assert options.view_as(WorkerOptions).max_num_workers == 4
    assert options.view_as(WorkerOptions).sdk_container_image == IMAGE
    assert options.view_as(WorkerOptions).use_public_ips is False
    assert options.view_as(GoogleCloudOptions).region == "europe-west4"
    assert options.view_as(GoogleCloudOptions).labels == ["team=clouds"]


def test_kubeflow_loads_the_document(documents):
    loaded = components.load_component_from_file(str(documents["kubeflow"]))
    assert loaded.name == "clouds"


def test_kubernetes_gets_node_selectors(kubeflow):
    spec, platform = kubeflow
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(executors) <= set(spec["deploymentSpec"]["executors"])
    trainer = executors["Trainer_executor"]
    assert trainer["nodeSelector"]["labels"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x2",
    }
    assert trainer["tolerations"] == [{"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert container(spec, "Trainer")["resources"]["accelerator"] == {"type": "google.com/tpu", "count": "4"}
    assert container(spec, "Trainer")["resources"]["memoryRequest"] == 32
    assert executors["Pusher_executor"]["pvcMount"] == [{"constant": "models", "mountPath": "/models"}]
    assert executors["ImageTransform_executor"]["nodeSelector"]["labels"] == {"cloud.google.com/gke-nodepool": "cpu"}
    assert spec["defaultPipelineRoot"] == "gs://bucket/kfp"


def test_the_platform_document_has_the_fields_of_kubeflow(kubeflow):
    executors = kubeflow[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    for executor in executors.values():
        # The fields of KubernetesExecutorConfig; only the current stack has kfp-kubernetes, which parses it strictly.
        assert set(executor) <= {"nodeSelector", "tolerations", "pvcMount", "securityContext"}
        if importlib.util.find_spec("kfp.kubernetes"):
            schema = importlib.import_module("kfp.kubernetes.kubernetes_executor_config_pb2")
            json_format.ParseDict(executor, schema.KubernetesExecutorConfig())
    json_format.ParseDict(kubeflow[1], pipeline_spec_pb2.PlatformSpec())


@pytest.mark.parametrize("target", ["vertex", "kubeflow"])
def test_the_next_compile_may_replace_a_document_and_nothing_else(documents, home, target, capsys):
    assert compiled_pipeline(str(documents[target])) == "clouds"
    assert "deploymentSpec" in documents[target].read_text(encoding="utf-8")
    foreign = home / f"foreign{documents[target].suffix}"
    foreign.write_text("{}")
    assert main(["compile", str(home / "clouds.yaml"), "--target", target, "--out", str(foreign)]) == 2
    assert "--force" in capsys.readouterr().err
    assert foreign.read_text() == "{}"


@pytest.mark.parametrize("target", ["vertex", "kubeflow"])
def test_what_changed_in_a_document_is_seen(documents, target):
    """After a change that is meant: SHARDWRIGHT_RENEW_GOLDEN=1 and look at the difference."""
    ending = documents[target].suffix
    file = GOLDEN / f"{target}.yaml"
    text = documents[target].read_text(encoding="utf-8")
    found = [json.loads(text)] if ending == ".json" else list(yaml.safe_load_all(text))
    shown = yaml.safe_dump_all([_without_versions(document) for document in found], sort_keys=True, width=4096)
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


def _without_versions(document):
    """Leaves out what differs between the two stacks: TFX's version, and its long serialized options."""
    if isinstance(document, dict):
        return {
            key: _without_versions(value)
            for key, value in document.items()
            if key not in ("sdkVersion", "instanceSchema", "tfx_version", "tfx_py_version", "stats_options_json")
        }
    if isinstance(document, list):
        inline = [i for i, value in enumerate(document) if value == "--json_serialized_inputs_spec_args"]
        kept = [value for i, value in enumerate(document) if i - 1 not in inline]
        return [_without_versions(value) for value in kept]
    return document


def changed(section, **values):
    config = copy.deepcopy(CONFIG)
    config[section] = {name: value for name, value in {**config[section], **values}.items() if value is not None}
    return config


REFUSED = [
    ("vertex", changed("vertex", image=None), r"vertex\.image: missing"),
    ("vertex", changed("vertex", project=None), r"vertex\.project: missing"),
    ("vertex", changed("vertex", pipeline_root=None), r"vertex\.pipeline_root: missing\. Write gs://"),
    ("vertex", changed("vertex", pipeline_root="bucket/x"), r"pipeline_root: .* Write gs://bucket/x"),
    ("vertex", changed("vertex", data_root=None), r"input\.images: .* does not begin with gs://"),
    ("vertex", changed("vertex", trainer={"machine": "n2-standart-8"}), r"Did you mean 'n2-standard-8'"),
    (
        "vertex",
        changed("vertex", trainer={"machine": "ct5lp-hightpu-4t", "topology": "3x3"}),
        r"'3x3' is not a topo",
    ),
    (
        "vertex",
        changed("vertex", trainer={"machine": "ct6e-standard-4t", "topology": "4x4"}),
        r"which has 4\. Set trainer\.hosts to",
    ),
    ("vertex", changed("vertex", trainer={"machine": "n2-standard-8", "topology": "2x2"}), r"has no TPU"),
    ("kubeflow", changed("kubeflow", image=None), r"kubeflow\.image: missing"),
    ("kubeflow", changed("kubeflow", push_directory=None), r"kubeflow\.push_directory: missing"),
    ("kubeflow", changed("kubeflow", push_directory="/x"), r"push_directory: '/x' is not on a volume"),
    ("kubeflow", changed("kubeflow", push_directory="/modelsx"), r"push_directory: '/modelsx' is not on a volume"),
    ("kubeflow", changed("kubeflow", data_root="/data"), r"data_root: '/data' is not on a bucket or a volume"),
    ("kubeflow", changed("kubeflow", data_root=None), r"input\.images: .* is not on a bucket or a volume"),
    ("kubeflow", changed("kubeflow", trainer={"machine": "ct5lp-hightpu-8t", "topology": "4x4"}), r"not a topology of"),
    ("vertex", {**CONFIG, "gate": {"drift": {"reference": "/ds"}}}, r"gate\.drift\.reference: '/ds' .* gs://BUCKET"),
    (
        "kubeflow",
        {**CONFIG, "gate": {"drift": {"reference": "/ds"}}},
        r"drift\.reference: '/ds' is not on a bucket",
    ),
    *(
        (target, changed("trainer", **weights), rf"trainer\.{name}: '{file}' is not on a bucket")
        for target in ("vertex", "kubeflow")
        for name, file, weights in (
            ("warm_start", "models/unet.keras", {"warm_start": "models/unet.keras"}),
            ("weights", "b0.h5", {"encoder": "efficientnetv2-b0", "weights": "b0.h5"}),
        )
    ),
    (
        "vertex",
        {**changed("vertex", data_root=None), "input": {"images": "gs://b/x"}, "reuse_from": "october"},
        r"reuse_from: '/.*/october' does not begin with gs://",
    ),
    (
        "kubeflow",
        {
            **changed("kubeflow", data_root=None),
            "input": {"images": "/models/x", "labels": {"path": "train.csv"}},
        },
        r"input\.labels\.path: '/.*/train\.csv' is not on a bucket or a volume",
    ),
    ("kubeflow", {**CONFIG, "name": "Clouds_1"}, r"name: 'Clouds_1' is not a pipeline name"),
    (
        "kubeflow",
        {**changed("kubeflow", pipeline_root=None), "reuse_from": "blessed"},
        r"^shardwright: reuse_from: .*tasks cannot read the cluster's own store.* Let kubeflow\.pipeline_root be gs://",
    ),
]


@pytest.mark.parametrize(("target", "config", "message"), REFUSED)
def test_refused_before_there_is_a_document(target, config, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ending = {"vertex": "json", "kubeflow": "yaml"}[target]
    assert main(["compile", "c.yaml", "--target", target, "--out", f"out.{ending}"]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / f"out.{ending}").exists()


def test_without_an_account_a_copy_of_the_input_is_advised(tmp_path, monkeypatch, capsys):
    def refuse(*asked, **options):
        raise CredentialsError("gs://bucket: no valid Google credentials (none found).")

    monkeypatch.setattr("shardwright.pipelines.cloud.pipeline_document.resolve_inputs", refuse)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    assert main(["compile", str(tmp_path / "c.yaml"), "--target", "vertex", "--out", str(tmp_path / "out.json")]) == 2
    message = capsys.readouterr().err
    assert "(none found). Without an account, name a copy on this machine in input.images" in message
    assert "vertex.data_root" in message


@pytest.mark.parametrize(
    ("target", "out", "message"),
    [
        ("vertex", "x.yaml", "Change its ending"),
        ("vertex", "no/x.json", "there is no folder"),
        ("kubeflow", "./c.yaml", "is the configuration, which would be overwritten"),
    ],
)
def test_files_that_cannot_be_written(target, out, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["compile", "c.yaml", "--target", target, "--out", out]) == 2
    assert message in capsys.readouterr().err
    assert yaml.safe_load((tmp_path / "c.yaml").read_text(encoding="utf-8")) == CONFIG


def parameter(spec, task, text):
    """Gives a task one more text."""
    given = spec["root"]["dag"]["tasks"][task]["inputs"]["parameters"]
    given["more"] = {"runtimeValue": {"constant": text}}


def test_settings_and_older_versions_take_room_too(kubeflow):
    spec, platform = copy.deepcopy(kubeflow)
    settings = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    check_for_backend(spec, settings, once=False)
    # Argo before 3.6 hands arguments over twice.
    parameter(spec, "Pusher", "x" * 50_000)
    check_for_backend(spec, settings)
    with pytest.raises(ConfigError, match=r"the driver of the graph take 1\d{5} bytes.* one variable"):
        check_for_backend(spec, settings, once=False)
    # Labels and annotations of a pod are arguments of its driver.
    note = {"annotations": {"example.org/note": "x" * 99_000}}
    settings = {**settings, "Pusher_executor": {**settings["Pusher_executor"], "podMetadata": note}}
    with pytest.raises(ConfigError, match="the driver of Pusher take 1"):
        check_for_backend(kubeflow[0], settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda spec: spec.update(schemaVersion="2.0.0"), "2.1.0 only"),
        (lambda spec: container(spec, "Pusher").update(lifecycle={}), "not a plain container"),
        (lambda spec: spec["components"]["Pusher"].update(executorLabel="x"), "has no executor"),
        (
            lambda spec: container(spec, "Pusher").update(args=["x" * 99_990]),
            r"the arguments of the driver of Pusher take \d+ bytes",
        ),
        # Quoting doubles what is quoted, and doubles it again in the pod of the task.
        (lambda spec: parameter(spec, "Pusher", '"' * 20_000), "the arguments of the pod of Pusher take 1"),
        (lambda spec: parameter(spec, "Pusher", "x" * 99_000), "the driver of the graph take 1"),
    ],
)
def test_what_the_backend_refuses_is_refused_here(kubeflow, change, message):
    spec = copy.deepcopy(kubeflow[0])
    change(spec)
    with pytest.raises(ConfigError, match=message):
        check_for_backend(spec)


@pytest.mark.parametrize(
    ("machine", "topology", "hosts"),
    [("ct5lp-hightpu-4t", "2x2", 1), ("ct6e-standard-8t", "2x4", 1), ("ct5lp-hightpu-4t", "4x4", 4)],
)
def test_tpu_machines_of_vertex(machine, topology, hosts):
    from google.cloud.aiplatform_v1.types import WorkerPoolSpec

    raw = {**changed("vertex", trainer={"machine": machine, "topology": topology}), "trainer": {"hosts": hosts}}
    (pool,) = worker_pools(parse_config(raw, base="/"))
    parsed = WorkerPoolSpec(pool)
    # A slice is one replica, however many machines it has.
    assert (parsed.machine_spec.tpu_topology, parsed.replica_count) == (topology, 1)
    assert {one.name: one.value for one in parsed.container_spec.env} == {
        "SHARDWRIGHT_IMAGE": IMAGE,
        "SHARDWRIGHT_STAGING": "gs://bucket/runs/clouds/staging",
    }


ATTACHMENT = "projects/p/regions/europe-west4/networkAttachments/a"
RESERVATION = "projects/p/zones/europe-west4-a/reservations/tpus"


@pytest.mark.parametrize(
    ("trainer", "section", "expected"),
    [
        ({"capacity": "spot"}, {}, {"scheduling": {"strategy": "SPOT", "timeout": "604800s"}}),
        (
            {"capacity": "flex_start", "max_wait_hours": 2, "restart_on_worker_restart": True},
            {},
            {
                "scheduling": {
                    "strategy": "FLEX_START",
                    "timeout": "604800s",
                    "maxWaitDuration": "7200s",
                    "restartJobOnWorkerRestart": True,
                }
            },
        ),
        ({"persistent_resource": "pool"}, {}, {"persistentResourceId": "pool"}),
        (
            {},
            {"network_attachment": ATTACHMENT},
            {"pscInterfaceConfig": {"networkAttachment": ATTACHMENT}},
        ),
        (
            {},
            {"network": "projects/1/global/networks/n", "reserved_ip_ranges": ["ranges"]},
            {"network": "projects/1/global/networks/n", "reservedIpRanges": ["ranges"]},
        ),
    ],
)
def test_settings_of_the_job_that_trains(trainer, section, expected):
    """As Vertex AI's own message has them."""
    spec = custom_job_of(trainer, section)["jobSpec"]
    assert {name: spec[name] for name in expected} == expected


def test_disk_variables_reservation_and_key_of_the_job_that_trains():
    key = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"
    trainer = {
        "capacity": "reservation",
        "reservation": RESERVATION,
        "disk": {"type": "pd-ssd", "size": "300GB"},
        "env": {"LOG": "info"},
    }
    job = custom_job_of(trainer, {"kms_key": key})
    assert job["encryptionSpec"] == {"kmsKeyName": key}
    (pool,) = job["jobSpec"]["workerPoolSpecs"]
    assert pool["machineSpec"]["reservationAffinity"]["values"] == [RESERVATION]
    assert pool["diskSpec"] == {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 300}
    assert {"name": "LOG", "value": "info"} in pool["containerSpec"]["env"]


def custom_job_of(trainer, section):
    """The CustomJob of a configuration, through Vertex AI's own message, which refuses unknown fields."""
    from google.cloud import aiplatform

    raw = {
        "name": "clouds",
        "input": {"images": "gs://bucket/x"},
        "vertex": {
            "project": "my-project",
            "region": "europe-west4",
            "pipeline_root": "gs://bucket/runs",
            "image": "registry.example/shardwright:1.0",
            "trainer": {"machine": "n2-standard-8", **trainer},
            **section,
        },
    }
    config = parse_config(raw, base="/")
    described = dict(job_of_trainer(config)["ai_platform_training_args"])
    del described["project"]
    message = aiplatform.gapic.CustomJob(described)
    return json_format.MessageToDict(aiplatform.gapic.CustomJob.pb(message))


@pytest.mark.parametrize(
    ("trainer", "section", "message"),
    [
        ({"capacity": "cheap"}, {}, "vertex.trainer.capacity: 'cheap' is not"),
        ({"capacity": "reservation"}, {}, "Give both capacity: reservation and the reservation"),
        ({"reservation": RESERVATION}, {}, "Give both capacity: reservation and the reservation"),
        ({"max_wait_hours": 1}, {}, "Use capacity: flex_start"),
        ({"disk": {"type": "ssd"}}, {}, "vertex.trainer.disk.type: 'ssd' is not"),
        ({"disk": {"size": 1}}, {}, r"vertex.trainer.disk.size: 1 is out of range"),
        ({"env": {"SHARDWRIGHT_IMAGE": "x"}}, {}, "is set by Shardwright itself"),
        ({"machine": None, "capacity": "spot"}, {}, "vertex.trainer.machine: missing"),
        ({}, {"kms_key": "key"}, "vertex.kms_key: 'key' is not well formed"),
        (
            {},
            {
                "network": "projects/1/global/networks/n",
                "network_attachment": "projects/p/regions/europe-west4/networkAttachments/a",
            },
            "vertex.network is given, too",
        ),
    ],
)
def test_settings_that_vertex_ai_does_not_have(trainer, section, message):
    with pytest.raises(ConfigError, match=message):
        custom_job_of(trainer, section)


def test_by_default_the_platform_document_has_the_user_of_each_pod():
    def document(**section):
        return platform_document(parse_config({"input": {"images": "x"}, "kubeflow": section}, base="/"))

    executors = document()["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(executors) == {f"{name}_executor" for name in COMPONENTS}
    user = {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True}
    assert all(executor == {"securityContext": user} for executor in executors.values())
    # Its driver refuses, or does not know, the setting.
    assert document(version="2.15") == document(version="2.4") == {}
