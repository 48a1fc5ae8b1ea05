"""The Trainer's step on Vertex AI, started as its container starts it: the job that it asks for, and what ends it."""

import json
import os
import signal
from types import SimpleNamespace

import pytest
from google.api_core.exceptions import FailedPrecondition, ServiceUnavailable
from google.cloud.aiplatform_v1.types import CustomJob, JobState
from tfx.extensions.google_cloud_ai_platform import training_clients
from vertex_section import VERTEX

from shardwright.components.image_trainer import custom_job
from shardwright.components.runtime import container
from shardwright.config import parse_config
from shardwright.pipelines.compile_vertex import job_of_trainer

CONFIG = {
    "name": "clouds",
    "input": {"images": "gs://bucket/x"},
    "vertex": {
        **VERTEX,
        "trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x2", "max_hours": 36},
    },
}


class Google:
    """Google's service, as far as the step uses it. `answers` are the job's states, or errors, look by look."""

    def __init__(self, *answers):
        self.answers, self.jobs, self.cancelled, self.meddle = list(answers), [], [], lambda: None

    def __call__(self, **options):
        assert options == {"client_options": {"api_endpoint": "europe-west4-aiplatform.googleapis.com"}}
        return self

    def create_custom_job(self, parent, custom_job):
        self.jobs.append(json.loads(json.dumps(custom_job)))
        self.meddle()
        return SimpleNamespace(name=f"jobs/{len(self.jobs)}")

    def get_custom_job(self, name, retry):
        self.meddle()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(state=answer, error="no room")

    def cancel_custom_job(self, name):
        self.cancelled.append(name)


@pytest.fixture
def step(tmp_path, monkeypatch):
    """Runs the step against a service; returns the exit code."""
    monkeypatch.setenv("SHARDWRIGHT_MOUNTS", str(tmp_path))
    monkeypatch.setattr(custom_job, "_SECONDS_BETWEEN_LOOKS", 0)
    config = parse_config(CONFIG, base="/")
    custom = {"recipe": {"epochs": 1}, **job_of_trainer(config)}
    values = {
        "run_fn": "shardwright.components.image_trainer.run_fn.run_fn",
        "train_args": '{"splits": ["train"]}',
        "eval_args": '{"splits": ["eval"]}',
        "custom_config": json.dumps(custom),
    }
    spec = {"parameters": {name: {"parameterType": "STRING"} for name in values}}

    def typed(key, kind):
        title = {"instanceSchema": f"title: tfx.{kind}\ntype: object\n"}
        return {key: {"artifacts": [{"name": key, "uri": f"gs://bucket/runs/{key}", "type": title}]}}

    task = {
        "inputs": {"parameterValues": values, "artifacts": typed("examples", "Examples")},
        "outputs": {"artifacts": typed("model", "Model"), "outputFile": str(tmp_path / "output.json")},
    }

    def run(google):
        monkeypatch.setattr(training_clients.gapic, "JobServiceClient", google)
        return container.main(
            [
                *("--artifacts", "mounted", "--executor_class_path", f"{custom_job.__name__}.Executor"),
                *("--json_serialized_invocation_args", json.dumps(task)),
                *("--json_serialized_inputs_spec_args", json.dumps(spec)),
            ]
        )

    return run


def test_the_job_reads_buckets_and_its_artifacts_are_mounted(step, tmp_path):
    google = Google(JobState.JOB_STATE_PENDING, JobState.JOB_STATE_RUNNING, JobState.JOB_STATE_SUCCEEDED)
    assert step(google) == 0
    (job,) = google.jobs
    (pool,) = job["job_spec"]["worker_pool_specs"]
    variables = {one["name"]: one["value"] for one in pool["container_spec"]["env"]}
    assert variables["SHARDWRIGHT_STAGING"] == "gs://bucket/runs/staging"
    assert f"{tmp_path}/gcs/bucket/runs/examples" in " ".join(pool["container_spec"]["command"])
    assert CustomJob(**job).job_spec.scheduling.timeout.total_seconds() == 36 * 3600
    assert google.cancelled == []


def test_a_look_that_fails_ends_no_training(step):
    google = Google(ConnectionError(), ServiceUnavailable("busy"), JobState.JOB_STATE_SUCCEEDED)
    assert step(google) == 0
    assert google.cancelled == []


def test_a_job_that_fails_is_reported(step, capsys):
    assert step(Google(JobState.JOB_STATE_FAILED)) == 1
    assert "CustomJob jobs/1: ended as JOB_STATE_FAILED: no room." in capsys.readouterr().err


@pytest.mark.parametrize("when", ["while it starts", "while it runs"])
def test_a_step_that_receives_sigterm_cancels_its_job(step, when):
    """As when a run is cancelled: the machine is not paid for any longer."""
    google = Google(JobState.JOB_STATE_RUNNING, JobState.JOB_STATE_RUNNING)

    def end():
        if when == "while it starts" or len(google.answers) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    google.meddle = end
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        step(google)
    assert ended.value.code == 128 + signal.SIGTERM
    assert google.cancelled == ["jobs/1"]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_step_that_fails_cancels_its_job(step):
    google = Google(PermissionError("no"))

    def refuse(name):
        google.cancelled.append(name)
        raise FailedPrecondition("has ended")

    google.cancel_custom_job = refuse
    with pytest.raises(PermissionError):
        step(google)
    assert google.cancelled == ["jobs/1"]
