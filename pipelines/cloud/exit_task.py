"""Notification of how a run ended: the exit task of a compiled pipeline.

All tasks move into an inner pipeline, `pipeline`. The exit task runs when that has ended, in any state. KFP's
compiler gives `dsl.ExitHandler` the same form, and both services run it. On Kubeflow the exit task becomes an exit hook
of Argo (kubeflow/pipelines at 7b70c7b, backend/src/v2/compiler/argocompiler/dag.go:62-111), and the driver fills in the
final status (backend/src/v2/driver/resolve.go:458-488).
"""

from __future__ import annotations

from typing import Any

from shardwright.components.runtime.documents import pass_inputs
from shardwright.components.runtime.post_notification import MODULE

# The inner pipeline: its task, which both services show, and its component.
INNER = "pipeline"
NOTIFY = "Notify"
EXECUTOR = f"{NOTIFY}_executor"
_STATUS = "status"

# Google's component that sends mail, as `google_cloud_pipeline_components` 2.22.0 compiles it
# (kubeflow/pipelines, components/google-cloud/…/v1/vertex_notification_email/component.py).
_EMAIL_IMAGE = "gcr.io/ml-pipeline/google-cloud-pipeline-components:2.22.0"
_EMAIL_MODULE = "google_cloud_pipeline_components.container.v1.vertex_notification_email.executor"
_EMAIL_STATUS = "pipeline_task_final_status"


def add_email_task(spec: dict[str, Any], recipients: tuple[str, ...]) -> None:
    """Makes Vertex AI send mail when the run has ended, whether it failed or not.

    Args:
        spec: the pipeline, changed in place.
        recipients: addresses.
    """
    container = {
        "image": _EMAIL_IMAGE,
        "command": ["python3", "-u", "-m", _EMAIL_MODULE],
        "args": ["--type", "VertexNotificationEmail", "--payload", ""],
    }
    given = {"recipients": {"runtimeValue": {"constant": list(recipients)}}}
    _add_exit_task(spec, container, _EMAIL_STATUS, {"recipients": "LIST"}, given)


def add_webhook_task(spec: dict[str, Any], pipeline: str, when: str, image: str) -> None:
    """Makes Kubeflow post to a webhook when the run has ended; its address is in a variable of the pod.

    Args:
        spec: the pipeline, changed in place.
        pipeline: its name, for the message.
        when: `failure` or `always`.
        image: Shardwright's image.
    """
    status = f"{{{{$.inputs.parameters['{_STATUS}']}}}}"
    args = ["--pipeline", pipeline, "--when", when, "--status", status]
    _add_exit_task(spec, {"image": image, "command": ["python", "-m", MODULE], "args": args}, _STATUS, {}, {})


def _add_exit_task(
    spec: dict[str, Any], container: dict[str, Any], status: str, types: dict[str, str], given: dict[str, Any]
) -> None:
    root = spec["root"]
    spec["components"][INNER] = {"dag": root["dag"]}
    spec["components"][NOTIFY] = {
        "executorLabel": EXECUTOR,
        "inputDefinitions": {
            "parameters": {
                status: {"parameterType": "TASK_FINAL_STATUS", "isOptional": True},
                **{name: {"parameterType": kind} for name, kind in types.items()},
            }
        },
    }
    spec["deploymentSpec"]["executors"][EXECUTOR] = {"container": container}
    tasks = {
        INNER: {"componentRef": {"name": INNER}, "taskInfo": {"name": INNER}},
        NOTIFY: {
            "componentRef": {"name": NOTIFY},
            "taskInfo": {"name": NOTIFY},
            # A second run that ends in the same way is news, too.
            "cachingOptions": {},
            "dependentTasks": [INNER],
            "inputs": {"parameters": {status: {"taskFinalStatus": {"producerTask": INNER}}, **given}},
            "triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
        },
    }
    root["dag"] = {"tasks": tasks}
    pass_inputs(spec)
