"""`shardwright submit` and `schedule`: the request that Vertex AI gets, and the messages if it gets none."""

import json
from types import SimpleNamespace

import pytest
import yaml
from google.api_core.exceptions import NotFound, PermissionDenied
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError
from google.cloud import aiplatform

from shardwright.pipelines.cli import main
from shardwright.pipelines.cloud import vertex_requests as submit
from shardwright.pipelines.cloud import vertex_runs as runs
from shardwright.pipelines.cloud.pipeline_document import Compiled

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
    assert main(["submit", "c.yaml", "--dry-run", "--parameter", "span=2024-05-01"]) == 0
    request = json.loads(capsys.readouterr().out)
    assert request["parent"] == "projects/my-project/locations/europe-west4"
    job = request["pipelineJob"]
    assert job["runtimeConfig"]["parameterValues"] == {"span": "19844"}
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://bucket/runs"
    assert job["serviceAccount"] == CONFIG["vertex"]["service_account"]
    assert job["labels"]["team"] == "clouds"
    assert job["pipelineSpec"]["pipelineInfo"] == {"name": "clouds"}


def test_image_and_root_of_one_run(asked, capsys):
    arguments = [
        "--set",
        "vertex.image=registry.example/shardwright:2.0",
        "--set",
        "vertex.pipeline_root=gs://other/runs",
    ]
    assert main(["submit", "c.yaml", "--dry-run", *arguments, "--parameter", "data_root=gs://other/data"]) == 0
    job = json.loads(capsys.readouterr().out)["pipelineJob"]
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://other/runs"
    assert asked[0].vertex.image == "registry.example/shardwright:2.0"
    assert asked[0].vertex.data_root == "gs://other/data"


def test_key_ranges_and_name_of_one_run(asked, tmp_path, capsys):
    key = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"
    changes = {"kms_key": key, "reserved_ip_ranges": ["ranges"], "network": "projects/1/global/networks/n"}
    config = {**CONFIG, "vertex": {**CONFIG["vertex"], **changes}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert main(["submit", "c.yaml", "--dry-run", "--run-name", "clouds-november"]) == 0
    job = json.loads(capsys.readouterr().out)["pipelineJob"]
    assert job["encryptionSpec"] == {"kmsKeyName": key}
    assert (job["reservedIpRanges"], job["network"]) == (["ranges"], "projects/1/global/networks/n")


def test_the_request_of_a_schedule(asked, tmp_path, capsys):
    config = {**CONFIG, "vertex": {**CONFIG["vertex"], "experiment": "monthly"}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert main(["schedule", "c.yaml", "--dry-run"]) == 0
    output = capsys.readouterr()
    assert output.err.startswith("vertex.experiment: Vertex AI does not add scheduled runs to an experiment.")
    request = json.loads(output.out)["schedule"]
    assert request["cron"] == "TZ=Europe/Paris 0 3 1 * *"
    assert request["maxRunCount"] == "12"
    assert request["createPipelineJobRequest"]["parent"] == "projects/my-project/locations/europe-west4"
    assert request["createPipelineJobRequest"]["pipelineJob"]["serviceAccount"].startswith("trainer@")


def test_a_run_is_sent_and_its_link_printed(asked, capsys, monkeypatch):
    sent = {}
    monkeypatch.setattr(submit, "_credentials", lambda wanted: AnonymousCredentials())
    monkeypatch.setattr(aiplatform.PipelineJob, "submit", lambda self, **options: sent.update(options))
    monkeypatch.setattr(aiplatform.PipelineJob, "to_dict", lambda self: job_resource("clouds-7", "RUNNING"))
    assert main(["submit", "c.yaml"]) == 0
    assert sent == {
        "service_account": CONFIG["vertex"]["service_account"],
        "network": None,
        "reserved_ip_ranges": None,
        "experiment": None,
    }
    assert capsys.readouterr().out.splitlines() == [
        f"{CONSOLE}/pipelines/runs/clouds-7?project=12",
        "Next: shardwright status c.yaml clouds-7",
    ]


CONSOLE = "https://console.cloud.google.com/vertex-ai/locations/europe-west4"


def job_resource(name, state, tasks=(), **more):
    """A run as Vertex AI describes it (`PipelineJob` as JSON); `tasks` are (name, state, error)."""
    details = [
        {"taskId": "1", "taskName": name, "state": state},
        *(
            {
                "taskId": str(i),
                "parentTaskId": "1",
                "taskName": task,
                "state": found,
                **({"error": {"message": error}} if error else {}),
            }
            for i, (task, found, error) in enumerate(tasks, 2)
        ),
    ]
    return {
        "name": f"projects/12/locations/europe-west4/pipelineJobs/{name}",
        "state": f"PIPELINE_STATE_{state}",
        "createTime": "2026-11-23T08:00:00Z",
        "jobDetail": {"taskDetails": details},
        **more,
    }


class Region:
    """The schedules of a region, as far as the client's class shows them."""

    def __init__(self, monkeypatch):
        self.there, self.log = [], []
        kind = aiplatform.PipelineJobSchedule
        monkeypatch.setattr(submit, "_credentials", lambda wanted: AnonymousCredentials())
        monkeypatch.setattr(kind, "create", lambda new, **options: self.add(new._gca_resource.display_name, **options))
        monkeypatch.setattr(kind, "resource_name", property(lambda new: self.there[-1].resource_name))
        monkeypatch.setattr(kind, "list", self.list)

    def add(self, name, *, cron="TZ=Europe/Paris 0 3 1 * *", max_concurrent_run_count=1, done=False, **options):
        one = SimpleNamespace(display_name=name, cron=cron, max_concurrent_run_count=max_concurrent_run_count)
        number = sum(entry[0] == "created" for entry in self.log) + 1
        one.resource_name = f"projects/12/locations/europe-west4/schedules/{number}"
        one.options, one.done, one.state = options, lambda: done, "ACTIVE"
        one.max_run_count = options.get("max_run_count", 0)
        one.to_dict = lambda: {
            "name": one.resource_name,
            "state": one.state,
            "cron": cron,
            "nextRunTime": "2026-12-01T02:00:00Z",
        }
        one.delete = lambda: (self.there.remove(one), self.log.append(("deleted", number)))
        one.pause = lambda: (setattr(one, "state", "PAUSED"), self.log.append(("paused", number)))
        one.resume = lambda catch_up: (setattr(one, "state", "ACTIVE"), self.log.append(("resumed", number, catch_up)))
        self.log.append(("created", number))
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
    assert capsys.readouterr().out.splitlines() == [
        f"{CONSOLE}/pipelines/schedules/1?project=12",
        "Next: shardwright schedule c.yaml --list",
    ]


def test_a_schedule_reserves_the_addresses_of_its_runs(asked, region, tmp_path, monkeypatch):
    place = {"network": "projects/12/global/networks/own", "reserved_ip_ranges": ["range-one"]}
    config = {**CONFIG, "vertex": {**CONFIG["vertex"], **place}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    sent = []
    monkeypatch.setattr(
        aiplatform.PipelineJobSchedule,
        "create",
        lambda new, **options: (sent.append(new.to_dict()), region.add("clouds", **options)),
    )
    assert main(["schedule", "c.yaml"]) == 0
    assert sent[0]["createPipelineJobRequest"]["pipelineJob"]["reservedIpRanges"] == ["range-one"]


def test_the_same_schedule_twice_is_one(asked, region, capsys):
    assert main(["schedule", "c.yaml"]) == 0
    first = capsys.readouterr().out
    assert main(["schedule", "c.yaml"]) == 0
    output = capsys.readouterr()
    assert output.out == first
    assert "schedule 'clouds': exists already, so nothing was sent." in output.err
    assert "Add --replace" in output.err
    assert region.log == [("created", 1)]


def test_other_times_are_refused_not_ignored(asked, region, capsys):
    assert main(["schedule", "c.yaml"]) == 0
    assert main(["schedule", "c.yaml", "--cron", "0 4 * * 1"]) == 2
    message = "exists with cron 'TZ=Europe/Paris 0 3 1 * *', and vertex.schedule.cron is '0 4 * * 1'. Add --replace"
    assert message in capsys.readouterr().err
    region.there[0].max_run_count = 3
    assert main(["schedule", "c.yaml"]) == 2
    assert "exists with max_runs 3, and vertex.schedule.max_runs is 12. Add --replace" in capsys.readouterr().err
    assert len(region.there) == 1


def test_several_of_one_name_are_shown(asked, region, capsys):
    region.add("clouds")
    region.add("clouds")
    assert main(["schedule", "c.yaml"]) == 2
    assert (
        f"2 schedules of that name exist: {CONSOLE}/pipelines/schedules/1?project=12, https" in capsys.readouterr().err
    )


def test_a_schedule_is_replaced_when_the_new_one_exists(asked, region, capsys):
    region.add("clouds")
    region.add("clouds", cron="0 0 * * *")
    region.add("clouds-2")
    region.add("clouds", done=True)
    assert main(["schedule", "c.yaml", "--replace"]) == 0
    assert region.log[4:] == [("created", 5), ("deleted", 1), ("deleted", 2)]
    assert [one.resource_name.rpartition("/")[2] for one in region.there] == ["3", "4", "5"]
    output = capsys.readouterr()
    assert "schedules/5" in output.out
    assert "schedules/1" in output.err


def test_schedules_that_have_ended_or_have_other_names_do_not_count(asked, region):
    region.add("clouds-2")
    region.add("clouds", done=True)
    assert main(["schedule", "c.yaml"]) == 0
    assert region.log[2:] == [("created", 3)]


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
    ("arguments", "advised"),
    [
        (["submit", "c.yaml"], True),
        (["schedule", "c.yaml"], True),
        (["schedule", "c.yaml", "--delete"], False),
        (["status", "c.yaml"], False),
        (["cancel", "c.yaml", "run1"], False),
    ],
)
def test_a_dry_run_is_advised_where_there_is_one(asked, capsys, monkeypatch, arguments, advised):
    def refuse(*place, **options):
        raise DefaultCredentialsError("none found")

    monkeypatch.setattr(submit, "_credentials", lambda wanted: AnonymousCredentials())
    for kind, method in (("PipelineJob", "submit"), ("PipelineJob", "list"), ("PipelineJob", "get")):
        monkeypatch.setattr(getattr(aiplatform, kind), method, refuse)
    monkeypatch.setattr(aiplatform.PipelineJobSchedule, "list", refuse)
    assert main(arguments) == 2
    assert ("--dry-run" in capsys.readouterr().err) == advised


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["submit", "c.yaml", "--parameter", "span"], "--parameter span: has no value"),
        (["submit", "c.yaml", "--parameter", "span=abc", "--dry-run"], "--parameter span: 'abc'"),
        (
            ["submit", "c.yaml", "--parameter", "x=1"],
            "--parameter x: is not a parameter of a run. Use: data_root",
        ),
        (
            ["submit", "c.yaml", "--parameter", "data_root=/tmp/x"],
            "--parameter data_root: '/tmp/x' is not a folder on Cloud Storage. Write gs://BUCKET/FOLDER.",
        ),
        (
            ["submit", "c.yaml", "--parameter", "data_root=gs://bucket/{SPAN}"],
            "--parameter data_root: 'gs://bucket/{SPAN}' names a span",
        ),
        (["deliver", "c.yaml", "--roll-back", "--batch", "a", "b"], "--batch: --roll-back predicts nothing"),
        (["deliver", "c.yaml", "--token-file", "x"], "--token-file: is for --model-registry"),
        (["deliver", "c.yaml", "--alias", "1"], "--alias: '1' is not an alias of a version"),
        (["deliver", "c.yaml", "--endpoint", ""], "--endpoint: '' is not a name"),
        (["deliver", "c.yaml", "--machine", "N1"], "--machine: 'N1' is not a machine type"),
        (["deliver", "c.yaml", "--serving-image", "tf"], "--serving-image: 'tf' is not the name of an image"),
        (["deliver", "c.yaml", "--roll-back", "--dry-run"], "--dry-run: --roll-back needs the state of the endpoint"),
        (["submit", "c.yaml", "--set", "vertex.image=shardwright"], "vertex.image: 'shardwright' is not the name"),
        (["submit", "c.yaml", "--set", "vertex.pipeline_root=bucket"], "Write gs://bucket."),
        (["schedule", "c.yaml", "--cron", "daily"], "vertex.schedule.cron: 'daily' has no five fields"),
        (["schedule", "c.yaml", "--delete", "--dry-run"], "--dry-run: --delete does not use it. Leave it out"),
        (["schedule", "c.yaml", "--pause", "--replace"], "--replace: --pause does not use it. Leave it out"),
        (["schedule", "c.yaml", "--resume", "--cron", "0 4 * * 1"], "--cron: --resume does not use it. Leave it out"),
        (["submit", "c.yaml", "--run-name", "Bad Name!"], "--run-name: 'Bad Name!' is not an ID. Use a-z, 0-9 and -"),
    ],
)
def test_calls_that_are_wrong(asked, capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_region_is_refused_in_a_line(asked, tmp_path, capsys):
    config = {**CONFIG, "vertex": {**CONFIG["vertex"], "region": "europe-west99"}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert main(["submit", "c.yaml", "--dry-run"]) == 2
    assert "vertex.region: Vertex AI has no such region" in capsys.readouterr().err


def test_a_schedule_needs_a_time(asked, tmp_path, capsys):
    config = {**CONFIG, "vertex": {**CONFIG["vertex"], "schedule": {}}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert main(["schedule", "c.yaml"]) == 2
    assert "vertex.schedule.cron: missing" in capsys.readouterr().err


def test_schedules_are_listed_paused_resumed_and_deleted(asked, region, capsys):
    region.add("clouds")
    region.add("clouds-2")
    assert main(["schedule", "c.yaml", "--list"]) == 0
    line = f"active  TZ=Europe/Paris 0 3 1 * *  {CONSOLE}/pipelines/schedules/1?project=12"
    assert capsys.readouterr().out == f"{line}, next run 2026-12-01T02:00:00Z\n"
    assert main(["schedule", "c.yaml", "--resume"]) == 0  # It is active: nothing is sent.
    for change in ("--pause", "--pause", "--resume", "--delete"):
        assert main(["schedule", "c.yaml", change]) == 0
    assert region.log[2:] == [("paused", 1), ("resumed", 1, False), ("deleted", 1)]
    assert [one.display_name for one in region.there] == ["clouds-2"]
    assert capsys.readouterr().out.splitlines()[-1].startswith("deleted  TZ=Europe/Paris")
    assert main(["schedule", "c.yaml", "--delete"]) == 2
    assert "schedule 'clouds': does not exist" in capsys.readouterr().err
    assert main(["schedule", "c.yaml", "--list"]) == 0


class Jobs:
    """The runs of a region; each call of `to_dict` describes the next state."""

    def __init__(self, monkeypatch, **states):
        self.states, self.cancelled = {name: list(found) for name, found in states.items()}, []
        monkeypatch.setattr(aiplatform.PipelineJob, "list", self.list)
        monkeypatch.setattr(aiplatform.PipelineJob, "get", self.get)

    def list(self, **asked):
        assert asked.pop("order_by") == "create_time desc"
        assert asked == {"filter": 'display_name="clouds"', "project": "my-project", "location": "europe-west4"}
        return [self.get(name) for name in sorted(self.states, reverse=True)]

    def get(self, name, **place):
        if name not in self.states:
            raise NotFound("no such run")
        left = self.states[name]
        return SimpleNamespace(
            to_dict=lambda: left.pop(0) if len(left) > 1 else left[0], cancel=lambda: self.cancelled.append(name)
        )


RUNS = {
    "run2": [job_resource("run2", "RUNNING", [("Trainer", "RUNNING", None), ("DataGate", "SUCCEEDED", None)])],
    "run1": [
        job_resource(
            "run1",
            "FAILED",
            [("Trainer", "FAILED", "first"), ("Trainer", "FAILED", "no\x1b[2J memory")],
            error={"message": "Trainer failed"},
            endTime="2026-11-23T09:00:00Z",
        )
    ],
}


def test_runs_are_listed(asked, capsys, monkeypatch):
    Jobs(monkeypatch, **RUNS)
    assert main(["status", "c.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3:2] for line in lines] == [["running", "run2"], ["failed", "run1"]]
    assert main(["status", "c.yaml", "--limit", "1", "--json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["name"], only["state"], only["ended"]) == ("run2", "running", None)


def test_one_run_shows_its_tasks_and_its_error(asked, capsys, monkeypatch):
    Jobs(monkeypatch, **RUNS)
    assert main(["status", "c.yaml", "run2"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["  succeeded     DataGate", "  running       Trainer"]
    assert main(["status", "c.yaml", "run1"]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  failed        Trainer: no\\u001b[2J memory",
        "  Trainer failed",
    ]
    assert main(["status", "c.yaml", "run3"]) == 2
    assert "run 'run3': does not exist in europe-west4 of my-project" in capsys.readouterr().err


def test_only_a_run_that_has_not_ended_is_cancelled(asked, capsys, monkeypatch):
    jobs = Jobs(monkeypatch, **RUNS)
    assert main(["cancel", "c.yaml", "run2"]) == 0
    assert main(["cancel", "c.yaml", "run1"]) == 1
    assert jobs.cancelled == ["run2"]
    assert "run 'run1': has ended (failed). Nothing was cancelled." in capsys.readouterr().err


@pytest.mark.parametrize(("end", "code"), [("SUCCEEDED", 0), ("FAILED", 1), ("CANCELLED", 1)])
def test_submit_waits_for_the_end_of_the_run(asked, capsys, monkeypatch, end, code):
    states = [
        job_resource("run1", "PENDING"),
        job_resource("run1", "RUNNING", [("Trainer", "RUNNING", None)]),
        job_resource("run1", "RUNNING", [("Trainer", "RUNNING", None)]),
        job_resource("run1", end, [("Trainer", end, None)]),
    ]
    Jobs(monkeypatch, run1=states)
    monkeypatch.setattr(submit, "_credentials", lambda wanted: AnonymousCredentials())
    monkeypatch.setattr(aiplatform.PipelineJob, "submit", lambda self, **options: None)
    monkeypatch.setattr(aiplatform.PipelineJob, "to_dict", lambda self: states[0])
    monkeypatch.setattr(runs, "SECONDS_BETWEEN", 0)
    assert main(["submit", "c.yaml", "--wait"]) == code
    output = capsys.readouterr()
    assert output.err.count("Trainer: running") == 1
    assert f"run run1: {end.lower()}" in output.err
    assert output.out == f"{CONSOLE}/pipelines/runs/run1?project=12\n"
