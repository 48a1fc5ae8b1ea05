"""Buckets as folders inside a container."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.components.runtime import container
from shardwright.components.runtime.mounts import (
    AS_THEY_ARE,
    LOCAL,
    MOUNTED,
    change_uris,
    elsewhere,
    folder_of,
    opened,
    output_folders,
    url_of,
)
from shardwright.errors import UsageError

NAMES = st.lists(st.text(alphabet="ab-_.0", min_size=1, max_size=8).filter(lambda n: n.strip(".")), min_size=1)


@given(st.sampled_from(["gs", "s3", "minio"]), NAMES)
def test_there_and_back(scheme, names):
    url = f"{scheme}://" + "/".join(names)
    assert url_of(folder_of(url)) == url
    assert "://" not in folder_of(url)


@pytest.mark.parametrize(
    ("url", "folder"), [("gs://b/x", "/gcs/b/x"), ("s3://b/x", "/s3/b/x"), ("minio://m/v2", "/minio/m/v2")]
)
def test_where_the_services_put_them(url, folder):
    assert folder_of(url) == folder


@pytest.mark.parametrize("text", ["", "/data/gs://x", "b/gs", "http://x/y"])
def test_other_texts_stay(text):
    assert folder_of(text) == text
    assert url_of(text) == text


def invocation():
    destination = json.dumps({"filesystem": {"base_directory": "gs://models/clouds"}})
    return {
        "inputs": {
            "artifacts": {"model": {"artifacts": [{"uri": "gs://b/model", "name": "n"}]}},
            "parameterValues": {"push_destination": destination, "push_directory": "gs://models/clouds", "allow": "[]"},
        },
        "outputs": {
            "artifacts": {"pushed": {"artifacts": [{"uri": "gs://b/pushed"}]}},
            "outputFile": "gs://b/out.json",
        },
    }


def test_mounted_changes_artifacts_and_parameters():
    changed = opened(invocation(), MOUNTED)
    assert output_folders(changed) == ["/gcs/b/pushed"]
    values = changed["inputs"]["parameterValues"]
    assert values["push_directory"] == "/gcs/models/clouds"
    assert json.loads(values["push_destination"])["filesystem"]["base_directory"] == "/gcs/models/clouds"
    assert values["allow"] == "[]"
    assert changed["outputs"]["outputFile"] == "gs://b/out.json"


def test_local_changes_artifacts_alone():
    changed = opened(invocation(), LOCAL)
    assert changed["inputs"]["artifacts"]["model"]["artifacts"][0]["uri"] == "/gcs/b/model"
    assert changed["inputs"]["parameterValues"] == invocation()["inputs"]["parameterValues"]


def test_what_is_given_is_not_changed():
    given_input = invocation()
    opened(given_input, MOUNTED)
    assert given_input == invocation()
    assert opened(given_input, AS_THEY_ARE) is given_input


def test_outputs_are_reported_by_their_urls():
    report = {"pushed": {"artifacts": [{"uri": "/gcs/b/pushed"}, {"name": "without a place"}]}}
    change_uris(report, url_of)
    assert report["pushed"]["artifacts"][0]["uri"] == "gs://b/pushed"


def test_a_value_is_a_file_in_a_folder():
    value = {"uri": "/a/b/fingerprint", "type": {"instanceSchema": "title: tfx.String\ntype: object\n"}}
    assert output_folders({"outputs": {"artifacts": {"fingerprint": {"artifacts": [value]}}}}) == ["/a/b"]


def test_an_error_of_ours_is_one_line(tmp_path, monkeypatch, capsys):
    def work(flags):
        raise UsageError("input.images: nothing there.")

    monkeypatch.setattr(container, "run_task", work)
    task = {"inputs": {}, "outputs": {"outputFile": str(tmp_path / "output.json")}}
    assert container.main(["--json_serialized_invocation_args", json.dumps(task)]) == 2
    assert capsys.readouterr().err == "shardwright: input.images: nothing there.\n"


def test_every_artifact_has_a_folder_of_its_own_elsewhere():
    given = invocation()
    given["inputs"]["artifacts"]["model"]["artifacts"].append({"uri": "gs://b/other", "name": "o"})
    found = elsewhere(given, "/shared", "inputs")
    assert [one["uri"] for one in found["inputs"]["artifacts"]["model"]["artifacts"]] == [
        "/shared/inputs/model",
        "/shared/inputs/model-1",
    ]
    assert found["outputs"]["artifacts"] == given["outputs"]["artifacts"]
    assert found["outputs"]["outputFile"] == "/shared/executor_output.json"
