"""`deliver --model-registry`, against a stand-in for Kubeflow's registry; `deliver --batch`, its request and Job."""

import http.server
import json
import threading
import urllib.parse
from types import SimpleNamespace

import pytest
import yaml
from google.cloud import aiplatform_v1 as vertex
from kubernetes_rules import strictly

from shardwright.config import parse_config
from shardwright.errors import CheckFailed, UsageError
from shardwright.lineage.blessing import Blessing
from shardwright.pipelines.cli import main
from shardwright.pipelines.cloud import deliver_model as deliver
from shardwright.pipelines.cloud import kserve, model_registry
from shardwright.pipelines.cloud.batch import start_batch
from shardwright.pipelines.cloud.deliver_model import DeliveryOptions, Services
from shardwright.pipelines.cloud.model_registry import RegistryServer, register

API = "/api/model_registry/v1alpha3"
CONFIG = {
    "name": "clouds",
    "task": "segmentation",
    "input": {"images": "gs://bucket/x", "labels": {"path": "gs://bucket/x.csv"}},
    "vertex": {
        "project": "my-project",
        "region": "europe-west4",
        "pipeline_root": "gs://bucket/runs",
        "image": "registry.example/shardwright:1.0",
    },
    "kubeflow": {
        "image": "registry.example/shardwright:1.0",
        "push_directory": "/models/clouds",
        "volumes": [{"claim": "data", "path": "/models"}],
        "pods": {"all": {"env": {"A": "1"}}},
        "resources": {"Evaluator": {"cpu": 4, "memory": "8GB"}},
    },
}
BLESSING = Blessing("1700000000", "d" * 64, {"mean_dice": 0.5}, {"dataset": "e" * 64})
# Fields of the requests, and what a value of `customProperties` may be: api/openapi/model-registry.yaml of
# kubeflow/model-registry at bd07139 (`RegisteredModelCreate`, `ModelVersionCreate`, `ModelArtifact`, `MetadataValue`).
BASE = {"name", "description", "externalId", "customProperties", "state"}
FIELDS = {
    "registered_models": BASE | {"owner"},
    "model_versions": BASE | {"registeredModelId", "author"},
    "artifacts": BASE
    | {"artifactType", "uri", "modelFormatName", "modelFormatVersion", "storageKey", "storagePath"}
    | {"serviceAccountName", "modelSourceKind", "modelSourceClass", "modelSourceGroup", "modelSourceId"},
}
VALUES = {"MetadataStringValue": ("string_value", str), "MetadataDoubleValue": ("double_value", float)}
TOKEN = "hush-41c7"


class Registry(http.server.ThreadingHTTPServer):
    """Keeps what is posted, and finds it by name and parent; refuses what the API refuses."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.kept = {}
        self.address = f"http://127.0.0.1:{self.server_port}"

    def post(self, path, body):
        kind = path.rpartition("/")[2]
        assert set(body) <= FIELDS[kind], body
        for value in body.get("customProperties", {}).values():
            field, type_ = VALUES[value["metadataType"]]
            assert set(value) == {"metadataType", field}
            assert isinstance(value[field], type_)
        kept = self.kept.setdefault(path, [])
        if any(one["name"] == body["name"] for one in kept):
            return 409, {"message": "it exists"}
        kept.append({**body, "id": str(len(self.kept) * 10 + len(kept))})
        return 201, kept[-1]

    def get(self, path, query):
        if path.endswith("/artifacts"):
            return 200, {"items": self.kept.get(path), "size": len(self.kept.get(path, []))}
        for one in self.kept.get(f"{path}s", ()):
            if one["name"] == query["name"] and one.get("registeredModelId") == query.get("parentResourceId"):
                return 200, one
        return 404, {"message": "not found"}


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def taken(self):
        return self.path.startswith(f"{API}/") and self.headers["Authorization"] == f"Bearer {TOKEN}"

    def do_GET(self):
        if not self.taken():
            return self.answer(401, {"message": "who are you"})
        split = urllib.parse.urlsplit(self.path.removeprefix(API))
        return self.answer(*self.server.get(split.path, dict(urllib.parse.parse_qsl(split.query))))

    def do_POST(self):
        if not self.taken():
            return self.answer(401, {"message": "who are you"})
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return self.answer(*self.server.post(self.path.removeprefix(API), body))

    def log_message(self, *_):
        pass


@pytest.fixture
def registry():
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def blessed(monkeypatch):
    for module, place in ((deliver, "gs://bucket/runs/pushed"), (model_registry, "/models/clouds")):
        monkeypatch.setattr(module, "read_blessing", lambda folder, place=place: BLESSING if folder == place else None)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return path


def test_a_model_is_registered_once(registry, file, capsys):
    command = ["deliver", str(file), "--model-registry", registry.address, "--token-file", str(file.parent / "token")]
    assert main(command) == 0
    version = capsys.readouterr().out.splitlines()[-1]
    assert {path: len(kept) for path, kept in registry.kept.items()} == {
        "/registered_models": 1, "/model_versions": 1, f"/model_versions/{version}/artifacts": 1,
    }  # fmt: skip
    (model,), (made,), (artifact,) = registry.kept.values()
    assert (model["name"], made["name"], made["registeredModelId"]) == ("clouds", "1700000000", model["id"])
    values = {name: value[VALUES[value["metadataType"]][0]] for name, value in made["customProperties"].items()}
    assert values == {
        "shardwright_digest": "d" * 64, "shardwright_dataset": "e" * 64, "task": "segmentation", "mean_dice": 0.5,
    }  # fmt: skip
    assert (artifact["artifactType"], artifact["uri"]) == ("model-artifact", "pvc://data/clouds/1700000000")
    before = json.dumps(registry.kept)
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": version}
    assert json.dumps(registry.kept) == before
    # An artifact that an earlier call could not create is created now.
    registry.kept.popitem()
    assert main(command) == 0
    assert json.dumps(registry.kept) == before


def test_another_model_of_that_name_stays(registry, file, monkeypatch):
    config, server = parse_config(CONFIG, base="/"), RegistryServer(registry.address, TOKEN)
    register(config, server, lambda line: None)
    other = Blessing(BLESSING.model, "f" * 64, {}, {})
    monkeypatch.setattr(model_registry, "read_blessing", lambda folder: other)
    with pytest.raises(CheckFailed, match="has another model as version 1700000000 of clouds"):
        register(config, server, lambda line: None)


def test_the_dry_run_prints_what_is_sent(registry, file, capsys):
    assert main(["deliver", str(file), "--model-registry", registry.address, "--dry-run"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert registry.kept == {}
    register(parse_config(CONFIG, base="/"), RegistryServer(registry.address, TOKEN), lambda line: None)
    for one, (path, (kept,)) in zip(shown.values(), registry.kept.items(), strict=True):
        ids = {field: kept[field] for field in ("id", "registeredModelId") if field in kept}
        asked = {**one["body"], **{field: ids[field] for field in one["body"] if field in ids}, "id": kept["id"]}
        assert asked == kept
        assert one["request"].partition(" ")[2].replace("VERSION", path.split("/")[-2]) == f"{API}{path}"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model-registry", "registry"], 2, "'registry' is not an address. Write https://"),
        (["--model-registry", "http://127.0.0.1:9"], 1, "cannot be reached"),
        (["--model-registry", "ADDRESS"], 1, "answers 401"),
        (["--model-registry", "ADDRESS", "--token-file", "/missing/token"], 2, "/missing/token"),
    ],
)
def test_what_cannot_be_registered(registry, file, capsys, arguments, code, message):
    arguments = [registry.address if part == "ADDRESS" else part for part in arguments]
    assert main(["deliver", str(file), *arguments]) == code
    assert message in capsys.readouterr().err


def test_no_blessed_model_is_here(registry, file, monkeypatch, capsys):
    monkeypatch.setattr(model_registry, "read_blessing", lambda folder: None)
    assert main(["deliver", str(file), "--model-registry", registry.address]) == 2
    assert "/models/clouds: no model was blessed there, or it is not mounted here" in capsys.readouterr().err


def test_batch_prediction_on_vertex(file, capsys):
    command = ["deliver", str(file), "--machine", "n1-highmem-4", "--replicas", "3", "--dry-run", "--batch"]
    for images, form in (("gs://b/list.txt", "file-list"), ("gs://b/instances.jsonl", "jsonl")):
        assert main([*command, images, "gs://b/out"]) == 0
        (shown,) = json.loads(capsys.readouterr().out).values()
        request = vertex.CreateBatchPredictionJobRequest.from_json(json.dumps(shown))
        job = request.batch_prediction_job
        assert (job.input_config.instances_format, list(job.input_config.gcs_source.uris)) == (form, [images])
        assert job.output_config.gcs_destination.output_uri_prefix == "gs://b/out"
        assert job.dedicated_resources.machine_spec.machine_type == "n1-highmem-4"
        assert job.dedicated_resources.max_replica_count == 3
    assert main([*command, "/data/list.txt", "gs://b/out"]) == 2
    assert "'/data/list.txt' is not on a bucket" in capsys.readouterr().err


def test_batch_prediction_is_of_the_registered_version():
    config, sent = parse_config(CONFIG, base="/"), []

    class Client:
        def __init__(self, *digests):
            self.digests = digests

        def list_models(self, parent):
            return [SimpleNamespace(name="models/1", display_name="clouds")]

        def list_model_versions(self, name):
            labels = [{"shardwright-digest": digest} for digest in self.digests]
            return [SimpleNamespace(name=name, version_id=str(n), labels=one) for n, one in enumerate(labels)]

        def create_batch_prediction_job(self, request):
            sent.append(request)
            return SimpleNamespace(name="batchPredictionJobs/7")

    def start(client):
        services = Services(client, client, client)
        return start_batch(config, "gs://b/list.txt", "gs://b/out", DeliveryOptions(), services, client)

    assert start(Client("x", "d" * 63)) == "batchPredictionJobs/7"
    assert sent[0].batch_prediction_job.model == "models/1@1"
    with pytest.raises(UsageError, match="does not have the blessed model"):
        start(Client("x"))


def test_batch_prediction_on_kubernetes(file, capsys):
    assert main(["deliver", str(file), "--kserve", "--batch", "gs://b/images/*.jpg", "/models/predicted.csv"]) == 0
    job = yaml.safe_load(capsys.readouterr().out)
    strictly({**job, "metadata": {"name": "x"}})
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [
        "predict", "/models/clouds", "gs://b/images/*.jpg", "--out", "/models/predicted.csv", "--force",
    ]  # fmt: skip
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "8000000000"}
    # The volume itself is on the volume.
    assert main(["deliver", str(file), "--kserve", "--batch", "/models", "/models/x.csv"]) == 0
    capsys.readouterr()
    assert main(["deliver", str(file), "--kserve", "--batch", "/models", "/models/"]) == 2
    assert (
        "--batch: '/models/' is a volume. Give the name of a file, e.g. /models/predictions.csv."
        in capsys.readouterr().err
    )
    assert main(["deliver", str(file), "--kserve", "--batch", "/elsewhere", "/models/x.csv"]) == 2
    assert "'/elsewhere' is not on a bucket or a volume" in capsys.readouterr().err


def test_the_folders_of_both_services_differ():
    """The registry of Kubeflow has the model of its own volume."""
    config = parse_config(CONFIG, base="/")
    assert kserve.pushed_folder(config) == "/models/clouds"
    assert deliver.blessed_model(config)[0].startswith("gs://")
