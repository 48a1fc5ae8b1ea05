"""`shardwright submit` and `schedule`: the request that Vertex AI gets, and the messages if it gets none."""

import json
from types import SimpleNamespace

import pytest
import yaml
from google.api_core.exceptions import PermissionDenied
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError
from google.cloud import aiplatform

from shardwright.pipelines.cli import main
from shardwright.pipelines.cloud import submit
from shardwright.pipelines.cloud.compile import Compiled

CONFIG = {
    "name": "clouds",
    "input": {"images": "gs://bucket/clouds/{SPAN}/images"},
    "vertex": {
        "project": "my-project",
        "region": "europe-west4",
        "service_account": "trainer@my-project.iam.gserviceaccount.com",
        "pipeline_root": "gs://bucket/runs",
        "image": "registry.example/shardwright:1.0",
        "labels": {"team": "clouds"},
        "schedule": {"cron": "TZ=Europe/Paris 0 3 1 * *", "max_runs": 12},
    },
}
PARAMETERS = {name: {"parameterType": "STRING", "defaultValue": "x"} for name in submit.PARAMETERS}
JOB = {
    "pipelineSpec": {
        "schemaVersion": "2.1.0",
        "sdkVersion": "tfx-1.0",
        "pipelineInfo": {"name": "clouds"},
        "root": {"inputDefinitions": {"parameters": PARAMETERS}, "dag": {"tasks": {}}},
    },
    "runtimeConfig": {"gcsOutputDirectory": "gs://bucket/runs"},
}


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Compiling is tested elsewhere: here it gives a small job. Returns the configurations that were compiled."""
    seen = []

    def compiled(config, config_file):
        seen.append(config)
        return Compiled(JOB, "gs://bucket", ())

    monkeypatch.setattr(submit, "compile_vertex", compiled)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    return seen


def test_the_request_of_a_run(asked, capsys):
    assert main(["submit", "c.yaml", "--dry-run", "--parameter", "span=7"]) == 0
    job = json.loads(capsys.readouterr().out)["pipelineJob"]
    assert job["runtimeConfig"]["parameterValues"] == {"span": "7"}
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://bucket/runs"
    assert job["serviceAccount"] == CONFIG["vertex"]["service_account"]
    assert job["labels"]["team"] == "clouds"
    assert job["pipelineSpec"]["pipelineInfo"] == {"name": "clouds"}


def test_image_and_root_of_one_run(asked, capsys):
    arguments = ["--image", "registry.example/shardwright:2.0", "--pipeline-root", "gs://other/runs"]
    assert main(["submit", "c.yaml", "--dry-run", *arguments, "--parameter", "data_root=gs://other/data"]) == 0
    job = json.loads(capsys.readouterr().out)["pipelineJob"]
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://other/runs"
    assert asked[0].vertex.image == "registry.example/shardwright:2.0"
    assert asked[0].vertex.data_root == "gs://other/data"


def test_the_request_of_a_schedule(asked, capsys):
    assert main(["schedule", "c.yaml", "--dry-run"]) == 0
    request = json.loads(capsys.readouterr().out)["schedule"]
    assert request["cron"] == "TZ=Europe/Paris 0 3 1 * *"
    assert request["maxRunCount"] == "12"
    assert request["createPipelineJobRequest"]["parent"] == "projects/my-project/locations/europe-west4"
    assert request["createPipelineJobRequest"]["pipelineJob"]["serviceAccount"].startswith("trainer@")


def test_a_run_is_sent_and_its_link_printed(asked, capsys, monkeypatch):
    sent = {}
    monkeypatch.setattr(submit, "_credentials", lambda wanted: AnonymousCredentials())
    monkeypatch.setattr(aiplatform.PipelineJob, "submit", lambda self, **options: sent.update(options))
    monkeypatch.setattr(aiplatform.PipelineJob, "_dashboard_uri", lambda self: "https://console/runs/1")
    assert main(["submit", "c.yaml"]) == 0
    assert sent == {"service_account": CONFIG["vertex"]["service_account"], "network": None}
    assert capsys.readouterr().out == "https://console/runs/1\n"


class Region:
    """The schedules of a region, as far as the client's class shows them."""

    def __init__(self, monkeypatch):
        self.there, self.log = [], []
        kind = aiplatform.PipelineJobSchedule
        monkeypatch.setattr(submit, "_credentials", lambda wanted: AnonymousCredentials())
        monkeypatch.setattr(kind, "create", lambda new, **options: self.add(new._gca_resource.display_name, **options))
        monkeypatch.setattr(kind, "_dashboard_uri", lambda new: f"https://console/{self.there[-1].resource_name}")
        monkeypatch.setattr(kind, "list", self.list)

    def add(self, name, *, cron="TZ=Europe/Paris 0 3 1 * *", max_concurrent_run_count=1, done=False, **options):
        one = SimpleNamespace(display_name=name, cron=cron, max_concurrent_run_count=max_concurrent_run_count)
        one.resource_name = f"schedules/{len(self.log) + 1}"
        one.options, one.done = options, lambda: done
        one._dashboard_uri = lambda: f"https://console/{one.resource_name}"
        one.delete = lambda: (self.there.remove(one), self.log.append(("deleted", one.resource_name)))
        self.log.append(("created", one.resource_name))
        self.there.append(one)

    def list(self, **asked):
        assert asked == {"filter": 'display_name="clouds"', "project": "my-project", "location": "europe-west4"}
        return list(self.there)


@pytest.fixture
def region(monkeypatch):
    return Region(monkeypatch)


def test_a_schedule_is_sent_and_its_link_printed(asked, region, capsys):
    assert main(["schedule", "c.yaml", "--cron", "0 4 * * 1"]) == 0
    (made,) = region.there
    assert (made.cron, made.options["max_run_count"], made.max_concurrent_run_count) == ("0 4 * * 1", 12, 1)
    assert "schedules/1" in capsys.readouterr().out


def test_the_same_schedule_twice_is_one(asked, region, capsys):
    assert main(["schedule", "c.yaml"]) == 0
    first = capsys.readouterr().out
    assert main(["schedule", "c.yaml"]) == 0
    output = capsys.readouterr()
    assert output.out == first
    assert "schedule 'clouds': exists already, so nothing was sent." in output.err
    assert "Add --replace" in output.err
    assert region.log == [("created", "schedules/1")]


def test_other_times_are_refused_not_ignored(asked, region, capsys):
    assert main(["schedule", "c.yaml"]) == 0
    assert main(["schedule", "c.yaml", "--cron", "0 4 * * 1"]) == 2
    message = "exists with cron 'TZ=Europe/Paris 0 3 1 * *', and vertex.schedule.cron is '0 4 * * 1'. Add --replace"
    assert message in capsys.readouterr().err
    assert len(region.there) == 1


def test_several_of_one_name_are_shown(asked, region, capsys):
    region.add("clouds")
    region.add("clouds")
    assert main(["schedule", "c.yaml"]) == 2
    assert "2 schedules of that name exist: https://console/schedules/1, https" in capsys.readouterr().err


def test_a_schedule_is_replaced_when_the_new_one_exists(asked, region, capsys):
    region.add("clouds")
    region.add("clouds", cron="0 0 * * *")
    region.add("clouds-2")
    region.add("clouds", done=True)
    assert main(["schedule", "c.yaml", "--replace"]) == 0
    assert region.log[4:] == [("created", "schedules/5"), ("deleted", "schedules/1"), ("deleted", "schedules/2")]
    assert [one.resource_name for one in region.there] == ["schedules/3", "schedules/4", "schedules/5"]
    output = capsys.readouterr()
    assert "schedules/5" in output.out
    assert "replaced schedules/1" in output.err


def test_schedules_that_have_ended_or_have_other_names_do_not_count(asked, region):
    region.add("clouds-2")
    region.add("clouds", done=True)
    assert main(["schedule", "c.yaml"]) == 0
    assert region.log[2:] == [("created", "schedules/3")]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DefaultCredentialsError("none found"), 2, "Run `gcloud auth application-default login`"),
        (PermissionDenied("no right to create"), 1, "Vertex AI refused: 403 no right to create"),
    ],
)
def test_what_google_complains_of_is_one_line(asked, capsys, monkeypatch, error, code, message):
    def refuse(self, **options):
        raise error

    monkeypatch.setattr(submit, "_credentials", lambda wanted: AnonymousCredentials())
    monkeypatch.setattr(aiplatform.PipelineJob, "submit", refuse)
    assert main(["submit", "c.yaml"]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["submit", "c.yaml", "--parameter", "span"], "--parameter span: has no value"),
        (
            ["submit", "c.yaml", "--parameter", "x=1"],
            "--parameter x: is not a parameter of a run. Use: data_root",
        ),
        (["submit", "c.yaml", "--image", "shardwright"], "vertex.image: 'shardwright' is not the name"),
        (["submit", "c.yaml", "--pipeline-root", "bucket"], "Write gs://bucket."),
        (["schedule", "c.yaml", "--cron", "daily"], "vertex.schedule.cron: 'daily' has no five fields"),
    ],
)
def test_calls_that_are_wrong(asked, capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_schedule_needs_a_time(asked, tmp_path, capsys):
    config = {**CONFIG, "vertex": {**CONFIG["vertex"], "schedule": {}}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert main(["schedule", "c.yaml"]) == 2
    assert "vertex.schedule.cron: missing" in capsys.readouterr().err
