"""The Trainer's step on Vertex AI that starts a CustomJob and waits: TFX's own, but that the job ends with the step.

TFX's extension starts a job and forgets it when its step is cancelled or fails: machines with TPUs run on and cost
money for days. Here a step that receives SIGTERM, or that fails while it waits, cancels its job.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, RetryError, ServerError
from google.cloud.aiplatform import gapic
from tfx.dsl.components.base import base_executor
from tfx.extensions.google_cloud_ai_platform.constants import VERTEX_REGION_KEY
from tfx.extensions.google_cloud_ai_platform.trainer.executor import TRAINING_ARGS_KEY
from tfx.extensions.google_cloud_ai_platform.training_clients import VertexJobClient
from tfx.utils import json_utils, name_utils

from shardwright.components.image_trainer import executor
from shardwright.components.image_trainer.run_fn import RUN_FN
from shardwright.components.runtime.artifacts import Artifacts
from shardwright.errors import CheckFailed

_SECONDS_BETWEEN_LOOKS = 30.0
# So many looks may fail consecutively. The library itself retries each for two minutes.
_NO_ANSWERS = 20


class Executor(base_executor.BaseExecutor):
    """Trains in a CustomJob."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Starts the job that `custom_config` describes, and waits until it has ended.

        Raises:
            CheckFailed: the job failed or was cancelled.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        custom_config = json_utils.loads(exec_properties["custom_config"])
        described = dict(custom_config[TRAINING_ARGS_KEY])
        project = described.pop("project")
        region = custom_config[VERTEX_REGION_KEY]
        client = VertexJobClient(region)
        # The model of a user's function gets its lineage from our executor; our own function writes it itself.
        ours = exec_properties.get("run_fn") == RUN_FN
        trains = name_utils.get_full_name(executor.Executor if ours else executor.OwnExecutor)
        job = client.create_training_job(input_dict, output_dict, exec_properties, trains, described, None, {})
        run_custom_job(client, region, project, job)


def run_custom_job(client: VertexJobClient, region: str, project: str, job: dict[str, Any]) -> None:
    """Runs a job to its end.

    Args:
        client: TFX's client of that region.
        region: of the job.
        project: where it runs.
        job: a CustomJob as plain values.

    Raises:
        CheckFailed: the job failed or was cancelled.
        SystemExit: this process received SIGTERM; the job is cancelled.
    """
    with _Ending() as ending:
        # The answer has the name that a job is cancelled by, so it is waited for.
        client.launch_job(project, job)
        name = client.get_job_name()
        print(f"CustomJob {name} started", flush=True)
        try:
            with ending.at_once():
                response = _wait(client)
        except BaseException:
            print(f"CustomJob {name}: cancelled with its step", flush=True)
            service = gapic.JobServiceClient(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
            # A job that has ended in the meantime cannot be cancelled, and need not.
            with suppress(GoogleAPICallError):
                service.cancel_custom_job(name=name)
            raise
    if client.get_job_state(response) in client.JOB_STATES_FAILED:
        state = getattr(client.get_job_state(response), "name", client.get_job_state(response))
        raise CheckFailed(
            f"CustomJob {name}: ended as {state}: {response.error}. Read its log in Vertex AI. Checkpoints are kept: "
            "submit the run again, and the training continues from the last one."
        )


class _Ending:
    """Notes, while it is entered, that this process received SIGTERM."""

    def __init__(self) -> None:
        self._number = 0
        self._now = False

    def __enter__(self) -> _Ending:
        self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._number = number
        if self._now:
            sys.exit(128 + number)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Ends this process when the signal comes within, or has come before."""
        self._now = True
        if self._number:
            sys.exit(128 + self._number)
        try:
            yield
        finally:
            self._now = False


def _wait(client: VertexJobClient) -> Any:
    """Waits until the job has ended; returns what Vertex AI reports of it."""
    unanswered = 0
    while True:
        try:
            response = client.get_job()
        except (ConnectionError, RetryError, ServerError):
            unanswered += 1
            if unanswered > _NO_ANSWERS:
                raise
            client.create_client()
        else:
            unanswered = 0
            if client.get_job_state(response) in client.JOB_STATES_COMPLETED:
                return response
        time.sleep(_SECONDS_BETWEEN_LOOKS)
