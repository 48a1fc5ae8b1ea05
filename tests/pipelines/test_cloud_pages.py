"""The tutorials for Vertex AI and Kubeflow: their configurations and commands, with the bucket that they name."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from emulators import make_bucket
from object_stores import running_stores

from shardwright.pipelines.cli import main
from shardwright.sample import write_sample

DOCS = Path(__file__).parents[2] / "docs"
# These show the request instead of sending it.
NEEDS_GOOGLE = ("submit", "schedule")
# These read what Vertex AI has; tests/pipelines/test_submit.py runs them.
READS_GOOGLE = ("status", "cancel")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """The bucket of both pages."""
    drawn = tmp_path_factory.mktemp("drawn")
    write_sample(str(drawn), images=6, height=64, width=64, seed=3)
    with running_stores() as stores:
        make_bucket("gs", stores.urls["gs"], "my-bucket")
        stores.copy_of(drawn, "gs://my-bucket/clouds")
        for span in (6, 7):
            stores.copy_of(drawn / "train_images", f"gs://my-bucket/clouds/{span}/images")
            stores.write(f"gs://my-bucket/clouds/{span}/train.csv", (drawn / "train.csv").read_bytes())
        yield stores


def page(name, tmp_path, monkeypatch):
    """Puts the configuration of a page where its commands look for it; returns the commands."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    Path("clouds.yaml").write_text(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1], encoding="utf-8")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    found = re.findall(r"^ *(shardwright [^#\n]*)", "".join(blocks), re.MULTILINE)
    return [shlex.split(command)[1:] for command in found]


def test_vertex(bucket, tmp_path, monkeypatch, capsys):
    output = {}
    commands = page("vertex-tpu", tmp_path, monkeypatch)
    assert {command[0] for command in commands} >= {*NEEDS_GOOGLE, *READS_GOOGLE}
    for command in commands:
        if command[0] in READS_GOOGLE:
            continue
        asked = [*command, "--dry-run"] if command[0] in NEEDS_GOOGLE and "--dry-run" not in command else command
        capsys.readouterr()
        assert main(asked) == 0, command
        output[" ".join(command)] = capsys.readouterr().out
    assert len(output) == 5
    job = json.loads(Path("clouds.json").read_text())
    default = job["pipelineSpec"]["root"]["inputDefinitions"]["parameters"]["data_root"]["defaultValue"]
    assert default == "gs://my-bucket/clouds"
    sent = json.loads(output["submit clouds.yaml --parameter span=7"])["pipelineJob"]
    assert sent["runtimeConfig"]["parameterValues"] == {"span": "7"}
    cron = json.loads(output["schedule clouds.yaml"])["schedule"]["cron"]
    assert cron == "TZ=Europe/Paris 0 3 1 * *"


def test_kubeflow(bucket, tmp_path, monkeypatch):
    commands = page("gke-tpu", tmp_path, monkeypatch)
    assert [main(command) for command in commands] == [0, 0]
    spec, platform = yaml.safe_load_all(Path("pipeline.yaml").read_text())
    assert spec["defaultPipelineRoot"] == "gs://my-bucket/kfp/clouds"
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    labels = executors["Trainer_executor"]["nodeSelector"]["labels"]
    assert labels["cloud.google.com/gke-tpu-topology"] == "2x2"
