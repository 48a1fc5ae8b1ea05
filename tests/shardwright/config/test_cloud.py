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
    ({"vertex": {"resources": {"Trainer": {"cpu": 0}}}}, r"vertex\.resources\.Trainer\.cpu: 0\.0 is too small"),
    ({"vertex": {"resources": {"Trainer": {"memory": 16}}}}, r"resources\.Trainer\.memory: 16 is too small"),
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
    ({"beam": {"options": ["runner=X"]}}, r"beam\.options: 'runner=X' is not an option of Beam"),
    ({"beam": {"per_component": {"StatisticsGen": ["x"]}}}, r"beam\.per_component\.StatisticsGen: 'x'"),
]


@pytest.mark.parametrize(("sections", "message"), REFUSED)
def test_refused_with_place_and_fix(sections, message):
    with pytest.raises(ConfigError, match=message):
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
