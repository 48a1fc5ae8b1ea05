"""`vertex`, `kubeflow` and `beam`: what is taken, and what is refused with its place and the fix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vertex_section import VERTEX

from shardwright.config import parse_config
from shardwright.config.cloud import check_bucket
from shardwright.config.pods import PodConfig
from shardwright.errors import ConfigError


def parse(**sections):
    return parse_config({"input": {"images": "pictures"}, **sections}, base="/data")


def test_both_are_empty_by_default():
    config = parse()
    assert config.vertex.image is None
    assert config.vertex.dataflow.components == ()
    assert config.kubeflow.volumes == ()
    assert config.vertex.schedule.max_concurrent_runs == 1


def test_a_whole_vertex_section():
    section = parse(
        vertex={
            **VERTEX,
            "resources": {"ImageTransform": {"cpu": 8, "memory": "32GB"}},
            "trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x2"},
            "dataflow": {"components": ["StatisticsGen", "ImageTransform"], "max_workers": 4},
            "schedule": {"cron": "TZ=Europe/Paris 0 3 1 * *", "max_runs": 12},
        }
    ).vertex
    assert section.resources["ImageTransform"].memory == 32 * 10**9
    assert section.trainer.topology == "2x2"
    assert section.schedule.max_runs == 12


def test_a_whole_kubeflow_section():
    section = parse(
        kubeflow={
            "image": "registry.local:5000/shardwright@sha256:" + "0" * 64,
            "pipeline_root": "minio://mlpipeline/clouds",
            "resources": {"Trainer": {"cpu": 0.5, "memory": "1GiB"}},
            "node_selectors": {"Evaluator": {"cloud.google.com/gke-nodepool": "cpu"}},
            "tolerations": {"Trainer": [{"key": "dedicated", "operator": "Equal", "value": "ml"}]},
            "volumes": [{"claim": "data", "path": "/data"}],
            "trainer": {"gpu": "nvidia.com/gpu", "gpus": 1},
        }
    ).kubeflow
    assert section.tolerations["Trainer"][0].value == "ml"
    assert section.volumes[0].path == "/data"
    assert section.trainer.gpus == 1


PEERED = {"network": "projects/12/global/networks/own"}
KEY = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"
GPU = {"machine": "n1-standard-8", "gpu": "NVIDIA_TESLA_T4", "gpus": 1}
RESERVED = {"capacity": "reservation", "reservation": "projects/p/zones/us-west1-b/reservations/r"}
PLACES = ("vertex", "kubeflow")
IMAGES = ("x::1", "x//y:1", "a-:1", "x:1:2", "X/Y:1", "x:", "x@sha256:12")
CRON = [
    ("", "'' has no five fields"),
    ("60 3 1 * *", "'60' cannot be the minute. Use numbers from 0 to 59"),
    ("0 24 1 * *", "'24' cannot be the hour"),
    ("0 3 0 * *", "'0' cannot be the day of the month"),
    ("0 3 1 13 *", "'13' cannot be the month"),
    ("0 3 1 foo *", "'foo' cannot be the month"),
    ("0 3 1 * MON-SUX", "'MON-SUX' cannot be the day of the week"),
    ("0 3 9-1 * *", "'9-1' cannot be the day of the month"),
    ("*/0 3 1 * *", r"'\*/0' cannot be the minute"),
    ("0,,1 3 1 * *", "'0,,1' cannot be the minute"),
    ("TZ=Mars/Phobos 0 3 1 * *", "'Mars/Phobos' is not a time zone"),
    ("TZ=Europe 0 3 1 * *", "'Europe' is not a time zone"),
    ("TZ= 0 3 1 * *", "'' is not a time zone"),
    ("FOOTZ=UTC 0 3 1 * *", "'FOOTZ=UTC 0 3 1 .*' has no five fields"),
]
ZONES = ("", "TZ=UTC ", "CRON_TZ=America/Argentina/Buenos_Aires ")
TIMES = ("0 3 1 * *", "*/15 0-23/2 1,15 jan-MAR ?", "0 3 * * MON-FRI", "5/10 3 ? 12 7")
LONG = "a" * 64
CLAIM = {"claim": "data", "path": "/data"}
KUBERNETES = [
    ({"data_root": "/models/{SPAN}"}, r"data_root: '/models/{SPAN}' names a span, .* before the first mark"),
    ({"data_root": "s3://B_/x"}, r"data_root: 's3://B_/x' is not a folder of a bucket\. Write s3://BUCKET/FOLDER"),
    ({"volumes": [{**CLAIM, "path": "/da:ta"}]}, r"volumes\[0\]\.path: '/da:ta' is not a folder to mount at"),
    ({"volumes": [{**CLAIM, "path": "/da\nta"}]}, r"volumes\[0\]\.path"),
    ({"volumes": [{**CLAIM, "path": "//"}]}, r"volumes\[0\]\.path: '//' is not"),
    ({"volumes": [{**CLAIM, "claim": LONG}]}, r"volumes\[0\]\.claim"),
    ({"volumes": [CLAIM, {"claim": "b", "path": "//data/"}]}, "volumes: two claims at one path"),
    ({"pods": {"all": {"scratch": [{"path": "/a:b", "size": "1GB"}]}}}, r"pods\.all\.scratch\[0\]\.path: '/a:b'"),
    (
        {"pods": {"all": {"scratch": [{"path": "/a", "size": "1GB"}, {"path": "/a/", "size": "1GB"}]}}},
        r"pods\.all\.scratch: two volumes at one path",
    ),
    (
        {"pods": {"all": {"shared_memory": "1GB"}, "Trainer": {"scratch": [{"path": "/dev/shm", "size": "1GB"}]}}},
        r"pods\.Trainer\.scratch\[0\]\.path: '/dev/shm' is a path of kubeflow\.pods\.all\.shared_memory, too",
    ),
    (
        {"volumes": [{"claim": "a", "path": "/dev/shm"}], "pods": {"Trainer": {"shared_memory": "1GB"}}},
        r"pods\.Trainer\.shared_memory: '/dev/shm' is a path of kubeflow\.volumes, too",
    ),
    ({"jobset": {"queue": LONG}}, r"jobset\.queue: .* has 64 characters, and the value of a label at most 63"),
    ({"jobset": {"service_account": "a..b"}}, r"jobset\.service_account: 'a\.\.b' is not a name"),
    ({"image_pull_secrets": ["a.-b"]}, r"image_pull_secrets\[0\]: 'a\.-b' is not the name of a Secret"),
    ({"pods": {"all": {"secret_env": {"A": "s/.."}}}}, r"pods\.all\.secret_env\.A: 's/\.\.' is not NAME/KEY"),
    ({"pods": {"all": {"config_map_env": {"A": "a..b/k"}}}}, r"pods\.all\.config_map_env\.A: 'a\.\.b/k' is not"),
    ({"pods": {"all": {"labels": {"a": LONG}}}}, r"pods\.all\.labels\.a: .* is not a label of a pod"),
    ({"pods": {"all": {"labels": {"a..b/c": "d"}}}}, r"pods\.all\.labels\.a\.\.b/c"),
    ({"pods": {"all": {"annotations": {"a..b/c": "d"}}}}, r"pods\.all\.annotations\.a\.\.b/c"),
    (
        {"pods": {"all": {"scratch": [{"path": "/a", "size": "1GB", "storage_class": "a_b"}]}}},
        r"pods\.all\.scratch\[0\]\.storage_class: 'a_b' is not a name",
    ),
    ({"node_selectors": {"Trainer": {"a": "b c"}}}, r"node_selectors\.Trainer\.a: 'b c' is not a label of a node"),
    (
        {"tolerations": {"Trainer": [{"key": "a", "operator": "Equal", "value": "b c"}]}},
        r"tolerations\.Trainer\[0\]\.value: 'b c' is not the value of a taint",
    ),
    ({"trainer": {"gpu": "NVIDIA_L4", "gpus": 1}}, r"trainer\.gpu: 'NVIDIA_L4' is not a resource of a node"),
]
REFUSED = [
    ({"vertex": {"project": "My Project"}}, r"vertex\.project: 'My Project' is not well formed"),
    ({"vertex": {"region": "Holland"}}, r"vertex\.region: .* europe-west4"),
    ({"vertex": {"service_account": "me"}}, r"vertex\.service_account: .*gserviceaccount"),
    ({"vertex": {"pipeline_root": "bucket/runs"}}, r"pipeline_root: 'bucket/runs' is not .* Write gs://bucket/runs\."),
    ({"vertex": {"data_root": "s3://bucket/x"}}, r"vertex\.data_root: .* Write gs://BUCKET/FOLDER\."),
    ({"vertex": {"data_root": "gs://bucket/{SPAN}"}}, r"vertex\.data_root: .* names a span.* before the first mark"),
    ({"vertex": {"push_directory": "/models"}}, r"push_directory: .* Write gs://BUCKET/FOLDER\."),
    ({"vertex": {"image": "shardwright"}}, r"vertex\.image: 'shardwright' .* a tag or a digest"),
    ({"vertex": {"labels": {"Team": "x"}}}, r"vertex\.labels\.Team: 'x' is not a label"),
    ({"vertex": {"resources": {"Trainr": {}}}}, r"vertex\.resources\.Trainr: .* Did you mean Trainer\?"),
    (
        {"vertex": {"resources": {"Trainer": {"cpu": 0}}}},
        r"vertex\.resources\.Trainer\.cpu: 0\.0 is out of range\. Use a value from 0\.1 to 96",
    ),
    ({"vertex": {"resources": {"Trainer": {"memory": 16}}}}, r"resources\.Trainer\.memory: 16 is out of range"),
    ({"vertex": {"trainer": {"topology": "2x2"}}}, r"vertex\.trainer\.machine: missing"),
    ({"vertex": {"trainer": {"machine": "g2-standard-4", "gpu": "NVIDIA_L4"}}}, r"trainer\.gpus: 0 of NVIDIA_L4"),
    ({"vertex": {"dataflow": {"components": ["Evaluator"]}}}, r"dataflow\.components\.Evaluator: .*its machine"),
    ({"vertex": {"dataflow": {"components": ["Trainer"]}}}, r"dataflow\.components\.Trainer: .* Use: ImageExampleGen"),
    ({"vertex": {"dataflow": {"max_workers": 0}}}, r"dataflow\.max_workers: 0 is too small"),
    ({"vertex": {"schedule": {"cron": "daily"}}}, r"schedule\.cron: 'daily' has no five fields"),
    ({"vertex": {"schedule": {"cron": "TZ=UTC 0 3 * *"}}}, r"schedule\.cron: .* has no five fields"),
    ({"vertex": {"schedule": {"max_runs": 0}}}, r"schedule\.max_runs: 0 is too small"),
    ({"kubeflow": {"image": "x y:1"}}, r"kubeflow\.image: 'x y:1'"),
    ({"kubeflow": {"pipeline_root": "/tmp"}}, r"kubeflow\.pipeline_root: '/tmp' is not a folder on an object store"),
    ({"kubeflow": {"resources": {"X": {}}}}, r"kubeflow\.resources\.X: 'X' is not a component here"),
    ({"kubeflow": {"node_selectors": {"Trainer": {"a b": "c"}}}}, r"node_selectors\.Trainer\.a b"),
    ({"kubeflow": {"tolerations": {"Trainer": [{"key": "-"}]}}}, r"tolerations\.Trainer\[0\]\.key"),
    ({"kubeflow": {"tolerations": {"Trainer": [{"key": "a", "operator": "Is"}]}}}, r"operator: 'Is' is not known"),
    ({"kubeflow": {"tolerations": {"Trainer": [{"key": "a", "value": "b"}]}}}, r"value: 'b' with operator Exists"),
    ({"kubeflow": {"tolerations": {"Trainer": [{"key": "a", "effect": "No"}]}}}, r"effect: 'No' is not known"),
    ({"kubeflow": {"volumes": [{"claim": "Data", "path": "/data"}]}}, r"volumes\[0\]\.claim: 'Data'"),
    ({"kubeflow": {"volumes": [{"claim": "data", "path": "data"}]}}, r"volumes\[0\]\.path: 'data'"),
    ({"kubeflow": {"volumes": [{"claim": "data", "path": "/a/../b"}]}}, r"volumes\[0\]\.path"),
    ({"kubeflow": {"volumes": [{"claim": "a", "path": "/a"}, {"claim": "b", "path": "/a"}]}}, r"volumes: two claims"),
    ({"kubeflow": {"trainer": {"machine": "ct5lp-hightpu-4t"}}}, r"kubeflow\.trainer: a TPU needs a machine and a top"),
    ({"kubeflow": {"trainer": {"gpus": 2}}}, r"kubeflow\.trainer\.gpus: 2, and kubeflow\.trainer\.gpu is not set"),
    ({"vertex": {"network": "foo"}}, r"vertex\.network: 'foo' is not .* projects/NUMBER/global/networks/NAME"),
    ({"vertex": {"network": "projects/my-project/global/networks/n"}}, r"vertex\.network: .* number of the project"),
    ({"vertex": {"network": "projects/1/global/networks/N"}}, r"vertex\.network: .* is not well formed"),
    ({"vertex": {"reserved_ip_ranges": ["a"]}}, r"reserved_ip_ranges: are ranges of vertex\.network, which is missing"),
    ({"vertex": {**PEERED, "reserved_ip_ranges": ["1a"]}}, r"vertex\.reserved_ip_ranges\[0\]: '1a' is not well formed"),
    (
        {"vertex": {**PEERED, "reserved_ip_ranges": ["a" * 64]}},
        r"reserved_ip_ranges\[0\]: .* is not well formed",
    ),
    (
        {"vertex": {"region": "us-east1", "kms_key": KEY}},
        r"kms_key: is in europe-west4, and vertex\.region is us-east1\. Use one of the same region",
    ),
    (
        {"vertex": {"region": "us-east1", "network_attachment": "projects/p/regions/us-west1/networkAttachments/n"}},
        r"network_attachment: is in us-west1, and vertex\.region is us-east1",
    ),
    (
        {"vertex": {"region": "us-east1", "dataflow": {"subnetwork": "regions/us-west1/subnetworks/s"}}},
        r"dataflow\.subnetwork: is in us-west1, and vertex\.region is us-east1",
    ),
    (
        {"vertex": {"region": "us-east1", "trainer": {**GPU, **RESERVED}}},
        r"trainer\.reservation: is in us-west1, and vertex\.region is us-east1",
    ),
    *[
        ({"vertex": {"pipeline_root": f"gs://{name}/x"}}, r"vertex\.pipeline_root: .* is not a folder on Cloud Storage")
        for name in ("a" * 64, f"{'a' * 64}.b", f"{'a.' * 111}b", "192.168.5.4", "ab", "a-")
    ],
    ({"kubeflow": {"pipeline_root": f"s3://{'a' * 64}"}}, r"kubeflow\.pipeline_root"),
    ({"vertex": {"labels": {f"a{number}": "" for number in range(65)}}}, r"vertex\.labels: 65 are too many"),
    ({"vertex": {"labels": {"a": "x.y"}}}, r"vertex\.labels\.a: 'x\.y' is not a label"),
    ({"vertex": {"resources": {"Trainer": {"cpu": 97}}}}, r"vertex\.resources\.Trainer\.cpu: 97\.0 is out of range"),
    (
        {"vertex": {"resources": {"Trainer": {"memory": "700GB"}}}},
        r"resources\.Trainer\.memory: .* out of range",
    ),
    ({"vertex": {"dataflow": {"machine": "n2 standard 4"}}}, r"dataflow\.machine: 'n2 standard 4' is not well formed"),
    ({"vertex": {"dataflow": {"subnetwork": "ml"}}}, r"subnetwork: 'ml' .* regions/REGION/subnetworks/NAME"),
    ({"vertex": {"trainer": {**GPU, "persistent_resource": "1"}}}, r"persistent_resource: '1' is not well formed"),
    *[({"vertex": {"schedule": {"cron": cron}}}, rf"vertex\.schedule\.cron: {message}") for cron, message in CRON],
    *[({place: {"image": image}}, rf"{place}\.image: .* a tag or a digest") for place in PLACES for image in IMAGES],
    *[({"kubeflow": section}, rf"kubeflow\.{message}") for section, message in KUBERNETES],
    ({"beam": {"options": ["runner=X"]}}, r"beam\.options\[0\]: 'runner=X' is not an option of Beam"),
    ({"beam": {"per_component": {"StatisticsGen": ["x"]}}}, r"beam\.per_component\.StatisticsGen\[0\]: 'x'"),
]


@pytest.mark.parametrize(("sections", "message"), REFUSED)
def test_refused_with_place_and_fix(sections, message):
    with pytest.raises(ConfigError, match=message):
        parse(**sections)


@pytest.mark.parametrize(
    "sections",
    [
        {"vertex": {**PEERED, "reserved_ip_ranges": ["range-one"], "kms_key": KEY, "region": "europe-west4"}},
        {
            "vertex": {
                "dataflow": {"subnetwork": "https://www.googleapis.com/compute/v1/projects/p/regions/r/subnetworks/s"}
            }
        },
        *[
            {"vertex": {"pipeline_root": f"gs://{name}/x"}}
            for name in ("a" * 63, f"{'a' * 63}.{'b' * 63}", "1.2.3.4.5")
        ],
        *[{"vertex": {"schedule": {"cron": f"{zone}{rest}"}}} for zone in ZONES for rest in TIMES],
        *[{"kubeflow": {"image": image}} for image in ("x:1", "h.io:50/a/b_c/d--e.f:V-1", "x:1@sha256:" + "0" * 64)],
        {"kubeflow": {"volumes": [{"claim": "data", "path": "/a b/ö"}], "jobset": {"queue": "a" * 63}}},
        {"kubeflow": {"image_pull_secrets": ["a.b-c"], "pods": {"all": {"secret_env": {"A": "s/.dockerconfigjson"}}}}},
        {"kubeflow": {"tolerations": {"Trainer": [{"key": "a.b/c", "operator": "Equal", "value": ""}]}}},
    ],
)
def test_taken(sections):
    parse(**sections)


@given(st.text(alphabet="abz019._-/: *[", max_size=40))
def test_only_folders_on_cloud_storage_pass(text):
    refused = ""
    try:
        check_bucket("vertex.pipeline_root", text)
    except ConfigError as error:
        refused = error.fix
    assert ("gs://" in refused) or (text.startswith("gs://") and not set(text) & set(" *["))


def test_a_variable_of_a_component_replaces_that_of_all_whatever_its_source():
    everywhere = PodConfig(env={"A": "all", "B": "all"}, secret_env={"C": "s/all"}, config_map_env={"D": "m/all"})
    own = PodConfig(env={"C": "own", "D": "own"}, secret_env={"A": "s/own"})
    merged = own.over(everywhere)
    assert merged.env == {"B": "all", "C": "own", "D": "own"}
    assert (merged.secret_env, merged.config_map_env) == ({"A": "s/own"}, {})
