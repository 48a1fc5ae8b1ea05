"""`deliver`: the requests to Vertex AI in their order, traffic, smoke test and roll back; the manifest of KServe."""

import dataclasses
import json
from types import SimpleNamespace

import pytest
import yaml
from emulators import make_bucket
from google.cloud import aiplatform_v1 as vertex
from hypothesis import given
from hypothesis import strategies as st
from object_stores import running_stores
from tensorflow.core.protobuf import saved_model_pb2

from shardwright.config import parse_config
from shardwright.errors import CheckFailed, DatasetError, UsageError
from shardwright.lineage.blessing import Blessing
from shardwright.pipelines.cli import main
from shardwright.pipelines.cloud import deliver_model as module
from shardwright.pipelines.cloud import kserve
from shardwright.pipelines.cloud.deliver_model import (
    DeliveryOptions,
    Services,
    deliver,
    new_traffic,
    roll_back,
    smoke_tests,
)
from shardwright.pipelines.cloud.kserve import kserve_manifest

PLACE = "projects/my-project/locations/europe-west4"
CONFIG = {
    "name": "clouds",
    "task": "segmentation",
    "input": {"images": "gs://bucket/x", "labels": {"path": "gs://bucket/x.csv"}},
    "vertex": {
        "project": "my-project",
        "region": "europe-west4",
        "pipeline_root": "gs://bucket/runs",
        "image": "registry.example/shardwright:1.0",
        "labels": {"team": "clouds"},
        "service_account": "trainer@my-project.iam.gserviceaccount.com",
    },
}
BLESSING = Blessing("1700000000", "d" * 64, {"mean_dice": 0.5, "mean_iou": 0.25}, {"dataset": "e" * 64})


class Registry:
    """Vertex AI's services, as far as they are called: records the requests, which are real messages."""

    def __init__(self, answer=None, versions=(), traffic=None):
        self.sent, self.answer = [], answer or {"predictions": [["1 2"]]}
        self.known = [SimpleNamespace(name=f"{PLACE}/models/1", display_name="clouds")] if versions else []
        self.versions = [SimpleNamespace(name=f"{PLACE}/models/1", version_id="7", labels=one) for one in versions]
        self.existing = []
        self.evaluations = []
        if traffic is not None:
            times = [SimpleNamespace(timestamp=lambda n=n: n) for n in range(len(traffic))]
            models = [SimpleNamespace(id=name, create_time=times[n]) for n, name in enumerate(traffic)]
            split = {name: part for name, part in traffic.items() if part}
            self.existing = [
                SimpleNamespace(
                    name=f"{PLACE}/endpoints/2", display_name="clouds", traffic_split=split, deployed_models=models
                )
            ]

    def services(self):
        return Services(self, self, self)

    def done(self, request, **result):
        self.sent.append(request)
        return SimpleNamespace(result=lambda: SimpleNamespace(**result))

    def list_models(self, parent):
        assert parent == PLACE
        return self.known

    def list_model_versions(self, name):
        return self.versions

    def list_endpoints(self, parent):
        return self.existing

    def upload_model(self, request):
        return self.done(request, model=f"{PLACE}/models/1", model_version_id="8")

    def import_model_evaluation(self, request):
        self.sent.append(request)

    def list_model_evaluations(self, parent):
        return self.evaluations if parent == f"{PLACE}/models/1@7" else []

    def merge_version_aliases(self, name, version_aliases):
        self.sent.append(vertex.MergeVersionAliasesRequest(name=name, version_aliases=version_aliases))

    def create_endpoint(self, request):
        return self.done(request, name=f"{PLACE}/endpoints/2")

    def deploy_model(self, request):
        return self.done(request, deployed_model=SimpleNamespace(id="99"))

    def undeploy_model(self, request):
        return self.done(request)

    def raw_predict(self, request):
        self.sent.append(request)
        return SimpleNamespace(data=json.dumps(self.answer).encode())

    def kinds(self):
        return [type(request).__name__ for request in self.sent]


@pytest.fixture(autouse=True)
def blessed(monkeypatch):
    def read(folder):
        assert folder == "gs://bucket/runs/pushed"
        return BLESSING

    monkeypatch.setattr(module, "read_blessing", read)


def saved_model(operation):
    """Returns the file of a SavedModel of one operation."""
    model = saved_model_pb2.SavedModel()
    model.meta_graphs.add().graph_def.node.add(name="serve", op=operation)
    return model.SerializeToString()


@pytest.fixture(scope="module", autouse=True)
def bucket():
    """The bucket, with the blessed model."""
    with running_stores() as stores:
        make_bucket("gs", stores.urls["gs"], "bucket")
        stores.fill("gs://bucket/runs/pushed/1700000000", {"saved_model.pb": saved_model("Identity")})
        yield stores


@pytest.fixture
def config():
    return parse_config(CONFIG, base="/")


def test_a_first_delivery(config):
    registry, lines = Registry(), []
    made = deliver(config, DeliveryOptions(), registry.services(), lines.append)
    assert registry.kinds() == [
        "UploadModelRequest", "ImportModelEvaluationRequest", "CreateEndpointRequest", "DeployModelRequest",
        "RawPredictRequest",
    ]  # fmt: skip
    upload, evaluation, endpoint, deploy, smoke = registry.sent
    assert (upload.parent, upload.parent_model) == (PLACE, "")
    assert upload.model.artifact_uri == "gs://bucket/runs/pushed/1700000000"
    assert upload.model.version_aliases == ["blessed"]
    assert dict(upload.model.labels) == {
        "team": "clouds", "shardwright-dataset": "e" * 63, "shardwright-digest": "d" * 63,
    }  # fmt: skip
    assert evaluation.parent == f"{PLACE}/models/1@8"
    assert evaluation.model_evaluation.metrics_schema_uri.endswith("/image_segmentation_metrics_1.0.0.yaml")
    (entry,) = evaluation.model_evaluation.metrics["confidenceMetricsEntries"]
    assert dict(entry) == {"diceScoreCoefficient": 0.5, "iouScore": 0.25}
    assert evaluation.model_evaluation.metadata["shardwright"]["lineage"]["dataset"] == "e" * 64
    assert endpoint.endpoint.display_name == "clouds"
    assert dict(deploy.traffic_split) == {"0": 100}
    body = json.loads(smoke.http_body.data)
    assert body["signature_name"] == "rle"
    assert (made.model, made.deployed_id, made.traffic) == (f"{PLACE}/models/1@8", "99", {"99": 100})
    assert len(lines) == 3


def test_a_share_of_the_traffic(config):
    registry = Registry(traffic={"5": 60, "6": 40})
    made = deliver(config, DeliveryOptions(traffic=10), registry.services(), lambda line: None)
    deploy = next(one for one in registry.sent if isinstance(one, vertex.DeployModelRequest))
    assert dict(deploy.traffic_split) == {"0": 10, "5": 54, "6": 36}
    assert made.traffic == {"99": 10, "5": 54, "6": 36}
    assert registry.kinds().count("RawPredictRequest") == smoke_tests(10) == 132
    assert "CreateEndpointRequest" not in registry.kinds()


def test_the_same_model_is_uploaded_once_and_has_alias_and_evaluation(config):
    registry = Registry(versions=[{"shardwright-digest": "x"}, {"shardwright-digest": "d" * 63}])
    made = deliver(config, DeliveryOptions(), registry.services(), lambda line: None)
    assert "UploadModelRequest" not in registry.kinds()
    assert made.model == f"{PLACE}/models/1@7"
    assert registry.kinds()[:2] == ["MergeVersionAliasesRequest", "ImportModelEvaluationRequest"]
    alias, evaluation = registry.sent[:2]
    assert (alias.name, alias.version_aliases) == (f"{PLACE}/models/1@7", ["blessed"])
    assert evaluation.parent == f"{PLACE}/models/1@7"
    registry.sent, registry.evaluations = [], [SimpleNamespace(name="of the first delivery")]
    deliver(config, DeliveryOptions(alias="champion"), registry.services(), lambda line: None)
    assert registry.sent[0].version_aliases == ["champion"]
    assert "ImportModelEvaluationRequest" not in registry.kinds()
    other = Registry(versions=[{"shardwright-digest": "x"}])
    deliver(config, DeliveryOptions(), other.services(), lambda line: None)
    assert other.sent[0].parent_model == f"{PLACE}/models/1"


@pytest.mark.parametrize(
    ("version", "files", "named"),
    [
        ("2", {"saved_model.pb": saved_model("WriteFile")}, "WriteFile"),
        ("3", {"saved_model.pb": b"no model"}, "saved_model.pb cannot be read"),
        ("4", {"saved_model.pb": saved_model("Identity"), "saved_model.pbtxt": b""}, "contains saved_model.pbtxt"),
        ("5", {"assets/saved_model.pb": saved_model("Identity")}, "contains no saved_model.pb"),
    ],
    ids=["operation", "no protocol buffer", "other form", "below"],
)
def test_a_model_that_does_more_than_compute_is_not_uploaded(config, bucket, monkeypatch, version, files, named):
    bucket.fill(f"gs://bucket/runs/pushed/{version}", files)
    monkeypatch.setattr(module, "read_blessing", lambda folder: dataclasses.replace(BLESSING, model=version))
    registry = Registry()
    with pytest.raises(DatasetError, match=f"gs://bucket/runs/pushed/{version}: .*{named}"):
        deliver(config, DeliveryOptions(), registry.services(), lambda line: None)
    assert registry.sent == []
    deliver(config, DeliveryOptions(trust_model=True), registry.services(), lambda line: None)
    assert "UploadModelRequest" in registry.kinds()


@pytest.mark.parametrize("answer", [{"error": "no such signature"}, {"predictions": []}, {"predictions": [[]]}, [1]])
def test_a_model_that_does_not_answer_is_rolled_back(config, answer):
    registry = Registry(answer, traffic={"5": 100})
    with pytest.raises(CheckFailed, match="does not answer .* It was rolled back"):
        deliver(config, DeliveryOptions(traffic=50), registry.services(), lambda line: None)
    last = registry.sent[-1]
    assert isinstance(last, vertex.UndeployModelRequest)
    assert (last.deployed_model_id, dict(last.traffic_split)) == ("99", {"5": 100})


def test_a_model_that_nobody_waited_for_is_rolled_back(config, monkeypatch):
    def stopped(request):
        raise KeyboardInterrupt

    registry = Registry(traffic={"5": 100})
    monkeypatch.setattr(registry, "raw_predict", stopped)
    with pytest.raises(KeyboardInterrupt):
        deliver(config, DeliveryOptions(traffic=50), registry.services(), lambda line: None)
    assert registry.kinds()[-1] == "UndeployModelRequest"


@pytest.mark.parametrize(
    ("before", "after"), [({"5": 60, "6": 30, "7": 10}, {"5": 67, "6": 33}), ({"5": 0, "6": 100}, {"5": 100})]
)
def test_roll_back(config, before, after):
    registry = Registry(traffic=before)
    assert roll_back(config, DeliveryOptions(), registry.services()) == list(before)[-1]
    assert dict(registry.sent[-1].traffic_split) == after
    for nothing in (Registry(), Registry(traffic={"5": 100})):
        with pytest.raises(UsageError, match="no earlier model"):
            roll_back(config, DeliveryOptions(), nothing.services())


@given(st.dictionaries(st.sampled_from("56789"), st.integers(0, 100), max_size=5), st.integers(0, 100))
def test_a_split_always_adds_up(traffic, share):
    split = new_traffic(traffic, share)
    assert sum(split.values()) == 100
    assert all(part >= 0 for part in split.values())
    assert split["0"] == (share if any(traffic.values()) else 100)


def test_the_dry_run_prints_every_request(config, tmp_path, capsys):
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump(CONFIG))
    assert main(["deliver", str(file), "--dry-run", "--traffic", "10"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [name.partition(" ")[0] for name in shown] == list("123456")
    types = [
        vertex.UploadModelRequest, vertex.ImportModelEvaluationRequest, vertex.CreateEndpointRequest,
        vertex.DeployModelRequest, None, vertex.UndeployModelRequest,
    ]  # fmt: skip
    for kind, request in zip(types, shown.values(), strict=True):
        assert kind is None or kind.from_json(json.dumps(request))
    assert shown["5 smoke test"]["httpBody"]["data"]["instances"][0]["image_bytes"]["b64"]
    assert main(["deliver", str(file), "--traffic", "0", "--dry-run"]) == 2
    assert "--traffic: 0 is not a percentage" in capsys.readouterr().err


def test_kserve(tmp_path, capsys):
    file = tmp_path / "c.yaml"
    section = {"push_directory": "/models/clouds", "volumes": [{"claim": "data", "path": "/models"}]}
    file.write_text(yaml.safe_dump({**CONFIG, "kubeflow": section}))
    call = ["deliver", str(file), "--kserve", "--model-version", "17"]
    assert main([*call, "--traffic", "20"]) == 0
    printed = capsys.readouterr()
    assert "Knative as it is installed refuses volumes" in printed.err
    made = yaml.safe_load(printed.out)
    assert main([*call, "--traffic", "20", "--json"]) == 0
    assert yaml.safe_load(json.loads(capsys.readouterr().out)["manifest"]) == made
    assert (made["apiVersion"], made["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    predictor = made["spec"]["predictor"]
    # Each revision has its own version, and TF Serving finds it below /mnt/models.
    mount = {"name": "pushed", "mountPath": "/mnt/models/17", "subPath": "clouds/17", "readOnly": True}
    assert predictor["model"]["volumeMounts"] == [mount]
    assert predictor["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data"
    # Knative takes a profile of containers, and none of the pod.
    assert predictor["model"]["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert "securityContext" not in predictor
    assert predictor["canaryTrafficPercent"] == 20
    assert made["metadata"]["annotations"] == {"serving.kserve.io/deploymentMode": "Knative"}
    # The folder is on the innermost volume.
    inner = [*section["volumes"], {"claim": "inner", "path": "/models/clouds"}]
    file.write_text(yaml.safe_dump({**CONFIG, "kubeflow": {**section, "volumes": inner}}))
    assert main(call) == 0
    printed = capsys.readouterr()
    assert "Knative" not in printed.err
    predictor = yaml.safe_load(printed.out)["spec"]["predictor"]
    assert (predictor["volumes"][0]["persistentVolumeClaim"]["claimName"], "canaryTrafficPercent" in predictor) == (
        "inner",
        False,
    )
    assert predictor["model"]["volumeMounts"][0]["subPath"] == "17"
    file.write_text(yaml.safe_dump({**CONFIG, "kubeflow": {**section, "push_directory": "/other"}}))
    assert main(call) == 2
    assert "KServe cannot read it" in capsys.readouterr().err


@pytest.mark.parametrize("bucket", ["gs://bucket/clouds", "s3://bucket/clouds"])
def test_kserve_copies_the_version_of_a_bucket(bucket, monkeypatch):
    monkeypatch.setattr(kserve, "read_blessing", lambda place: None)
    monkeypatch.setattr(kserve, "pushed_folder", lambda config: bucket)
    config = parse_config(CONFIG, base="/")
    predictor = yaml.safe_load(kserve_manifest(config, 10, "17"))["spec"]["predictor"]
    assert predictor["storageUris"] == [{"uri": f"{bucket}/17", "mountPath": "/mnt/models/17"}]
    assert "storageUri" not in predictor["model"]


def test_kserve_says_that_nothing_is_split_without_the_version(tmp_path, capsys):
    section = {"push_directory": "/models/clouds", "volumes": [{"claim": "data", "path": "/models"}]}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({**CONFIG, "kubeflow": section}))
    call = ["deliver", str(tmp_path / "c.yaml"), "--kserve"]
    assert main(call) == 0
    said = capsys.readouterr()
    assert yaml.safe_load(said.out)["spec"]["predictor"]["model"]["storageUri"] == "pvc://data/clouds"
    assert "no traffic would be split. Name the version: --model-version N" in said.err
    for wrong in ("v17", "../3"):
        assert main([*call, "--model-version", wrong]) == 2
        assert "is not a number. Name a folder of /models/clouds" in capsys.readouterr().err
