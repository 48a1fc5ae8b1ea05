"""Notification of how a run ended: the exit task of both services, and the program that posts."""

import copy
import http.server
import json
import sys
import threading
from pathlib import Path
from typing import List  # noqa: UP035 -- as Google's component has it

import pytest
import yaml
from emulator import RAN, Emulator, TaskFailed
from google.protobuf import json_format
from kfp import compiler, dsl
from kfp.pipeline_spec import pipeline_spec_pb2

from shardwright.components.runtime import post_notification as notify
from shardwright.components.runtime.post_notification import WEBHOOK_VARIABLE
from shardwright.config import parse_config
from shardwright.errors import ConfigError
from shardwright.pipelines.cloud.exit_task import INNER, NOTIFY, add_email_task, add_webhook_task
from shardwright.pipelines.compile_kubeflow import add_image_parameter, check_for_backend, platform_document

GOLDEN = Path(__file__).parent / "golden"
IMAGE = "registry.example/shardwright:1.0"
FAILED = {"state": "FAILED", "pipelineTaskName": INNER, "pipelineJobResourceName": "run-7", "error": {}}


@pytest.fixture(params=["vertex", "kubeflow"])
def spec(request):
    """The document of the configuration of test_compile."""
    document = next(yaml.safe_load_all((GOLDEN / f"{request.param}.yaml").read_text(encoding="utf-8")))
    found = copy.deepcopy(document.get("pipelineSpec", document))
    found.setdefault("sdkVersion", "tfx")
    return found


@pytest.fixture
def web():
    """A server; the codes that it answers with, and what it was sent."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.sent.append(json.loads(body))
            self.send_response(server.codes.pop(0) if server.codes else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.sent, server.codes = [], []
    server.address = f"http://127.0.0.1:{server.server_port}/hush-0b59c2"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


@dsl.container_component
def vertex_pipelines_notification_email(
    recipients: List[str],  # noqa: UP006
    pipeline_task_final_status: dsl.PipelineTaskFinalStatus,
):
    """Google's component, whose package is not a dependency: its source in kubeflow/pipelines, version 2.22.0."""
    return dsl.ContainerSpec(
        image="gcr.io/ml-pipeline/google-cloud-pipeline-components:2.22.0",
        command=[
            "python3", "-u", "-m", "google_cloud_pipeline_components.container.v1.vertex_notification_email.executor",
        ],
        args=["--type", "VertexNotificationEmail", "--payload", ""],
    )  # fmt: skip


@dsl.container_component
def nothing(text: str):
    return dsl.ContainerSpec(image=IMAGE, command=["true"], args=[text])


def test_the_exit_task_is_what_kfp_compiles(spec, tmp_path):
    @dsl.pipeline
    def own(data_root: str = "gs://data"):
        after = vertex_pipelines_notification_email(recipients=["a@example.com"])
        with dsl.ExitHandler(after):
            nothing(text=data_root)

    compiler.Compiler().compile(own, str(tmp_path / "own.yaml"))
    of_kfp = yaml.safe_load((tmp_path / "own.yaml").read_text())
    task = "vertex-pipelines-notification-email"
    wanted = of_kfp["root"]["dag"]["tasks"][task]
    add_email_task(spec, ("a@example.com",))
    made = spec["root"]["dag"]["tasks"][NOTIFY]
    assert made["triggerPolicy"] == wanted["triggerPolicy"]
    assert made["inputs"]["parameters"]["recipients"] == wanted["inputs"]["parameters"]["recipients"]
    status = made["inputs"]["parameters"]["pipeline_task_final_status"]
    assert status == {"taskFinalStatus": {"producerTask": INNER}}
    assert set(made["inputs"]["parameters"]) == set(wanted["inputs"]["parameters"])
    component = of_kfp["components"][wanted["componentRef"]["name"]]
    assert spec["components"][NOTIFY]["inputDefinitions"] == component["inputDefinitions"]
    executor = of_kfp["deploymentSpec"]["executors"][component["executorLabel"]]
    assert spec["deploymentSpec"]["executors"]["Notify_executor"] == executor


@pytest.mark.parametrize("kind", ["email", "webhook"])
def test_the_document_is_complete(spec, kind):
    before = copy.deepcopy(spec)
    if kind == "email":
        add_email_task(spec, ("a@example.com",))
    else:
        add_webhook_task(spec, "clouds", "failure", IMAGE)
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(spec["deploymentSpec"], pipeline_spec_pb2.PipelineDeploymentConfig())
    check_for_backend(spec)
    inner = spec["components"][INNER]
    assert inner["dag"] == before["root"]["dag"]
    passed = spec["root"]["dag"]["tasks"][INNER]["inputs"]["parameters"]
    assert passed == {name: {"componentInputParameter": name} for name in ("data_root", "span")}
    assert set(inner["inputDefinitions"]["parameters"]) == set(passed)


def test_the_parameter_of_the_image_reaches_the_inner_pipeline(spec):
    add_image_parameter(spec, IMAGE)
    add_webhook_task(spec, "clouds", "failure", IMAGE)
    assert "image" in spec["root"]["dag"]["tasks"][INNER]["inputs"]["parameters"]
    assert "image" in spec["components"][INNER]["inputDefinitions"]["parameters"]


@pytest.mark.parametrize("module", ["missing_module", "this"])
def test_kubeflow_posts_after_a_failure_only(tmp_path, web, module):
    """The compiled exit task itself, in the emulator: `this` is a module that ends with 0."""
    spec = {
        "root": {"dag": {"tasks": {"work": {"componentRef": {"name": "work"}, "taskInfo": {"name": "work"}}}}},
        "components": {"work": {"executorLabel": "work"}},
        "deploymentSpec": {
            "executors": {"work": {"container": {"image": IMAGE, "command": ["python", "-m", module], "args": []}}}
        },
    }
    add_webhook_task(spec, "clouds", "failure", IMAGE)
    path = ":".join(filter(None, sys.path))
    environment = {"SHARDWRIGHT_MOUNTS": str(tmp_path), WEBHOOK_VARIABLE: web.address, "PYTHONPATH": path}
    pipeline = Emulator(spec, "minio://bucket/runs", tmp_path / "home", environment, as_kubeflow=True)
    if module == "this":
        pipeline.run()
        assert web.sent == []
    else:
        with pytest.raises(TaskFailed):
            pipeline.run()
        assert web.sent == [{"text": "Pipeline clouds did not succeed (run run-1): state FAILED."}]
    assert pipeline.done[NOTIFY] == RAN
    log = (pipeline.home / "tasks" / "01-Notify" / "log").read_text()
    assert "hush" not in log
    assert f"clouds: {'COMPLETE' if module == 'this' else 'FAILED'}" in log


@pytest.mark.parametrize(
    ("when", "state", "posted"),
    [
        ("failure", "COMPLETE", None),
        ("always", "COMPLETE", "Pipeline clouds succeeded (run run-7)."),
        ("failure", "FAILED", "Pipeline clouds did not succeed (run run-7): state FAILED."),
        # A pod that was killed reports nothing.
        ("failure", "RUNNING", "Pipeline clouds did not succeed (run run-7): state RUNNING."),
    ],
)
def test_what_is_posted(web, when, state, posted):
    notify.notify("clouds", when, {**FAILED, "state": state}, {WEBHOOK_VARIABLE: web.address})
    assert web.sent == ([] if posted is None else [{"text": posted}])


def test_a_server_that_is_busy_is_asked_again_and_no_message_has_the_address(web, monkeypatch, capsys):
    monkeypatch.setattr(notify, "_PAUSE", 0.0)
    monkeypatch.setenv(WEBHOOK_VARIABLE, web.address)
    arguments = ["--pipeline", "clouds", "--when", "failure", "--status", json.dumps(FAILED)]
    web.codes = [503, 429]
    assert notify.main(arguments) == 0
    assert len(web.sent) == 3
    web.codes = [404]
    assert notify.main(arguments) == 1
    assert len(web.sent) == 4
    web.codes = [500, 500, 500]
    assert notify.main(arguments) == 1
    monkeypatch.setenv(WEBHOOK_VARIABLE, "http://127.0.0.1:9/hush-0b59c2")
    assert notify.main(arguments) == 1
    monkeypatch.setenv(WEBHOOK_VARIABLE, "file:///etc/hush")
    assert notify.main(arguments) == 2
    shown = capsys.readouterr()
    assert "hush" not in shown.out + shown.err
    assert "the server answered 404" in shown.err


def config(**sections):
    return parse_config({"input": {"images": "gs://bucket/x"}, **sections}, base="/")


def test_the_address_is_in_a_secret():
    pods = {"all": {"secret_env": {"TOKEN": "own/token"}, "shared_memory": "1GB"}}
    made = config(kubeflow={"notify": {"webhook": "chat/url"}, "pods": pods, "image_pull_secrets": ["registry"]})
    executors = platform_document(made)["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert executors["Notify_executor"] == {
        "imagePullSecret": [{"secretName": "registry"}],
        "secretAsEnv": [
            {"secretName": owner, "keyToEnv": [{"secretKey": key, "envVar": name}]}
            for name, owner, key in ((WEBHOOK_VARIABLE, "chat", "url"), ("TOKEN", "own", "token"))
        ],
        "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True},
    }


@pytest.mark.parametrize(
    ("section", "notified", "message"),
    [
        ("kubeflow", {"webhook": "https://hooks.example/x"}, r"kubeflow\.notify\.webhook: is an address.*SECRET/KEY"),
        ("kubeflow", {"webhook": "chat"}, r"kubeflow\.notify\.webhook: 'chat' is not NAME/KEY"),
        ("kubeflow", {"webhook": "chat/url", "when": "success"}, r"kubeflow\.notify\.when: .*'success'"),
        ("vertex", {"emails": ["nobody"]}, r"vertex\.notify\.emails\[0\]: 'nobody' is not well formed"),
        ("vertex", {"emails": [f"a{i}@example.com" for i in range(4)]}, r"emails: 4 addresses.*at most 3"),
    ],
)
def test_wrong_settings_are_refused(section, notified, message):
    with pytest.raises(ConfigError, match=message) as error:
        config(**{section: {"notify": notified}})
    assert "hooks.example" not in str(error.value)
