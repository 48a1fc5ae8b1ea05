"""The exit task of a pipeline on Kubeflow: posts how the run ended to a webhook.

    python -m shardwright.components.runtime.post_notification --pipeline NAME --when failure --status JSON

The address is a secret, because everyone who has it can post. It comes from a variable that Kubernetes fills from a
Secret, and no message contains it. The body is `{"text": …}`, which Slack, Mattermost and Google Chat take.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence

from shardwright.errors import ShardwrightError, UsageError
from shardwright.text.escaping import escape, escape_message, escaped_streams

MODULE = "shardwright.components.runtime.post_notification"
WEBHOOK_VARIABLE = "SHARDWRIGHT_WEBHOOK"
FAILURE, ALWAYS = "failure", "always"

# States of ML Metadata, which Kubeflow's driver passes, and of Vertex AI.
_GOOD = ("COMPLETE", "CACHED", "SUCCEEDED")
_TRIES, _SECONDS, _PAUSE = 3, 30, 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Posts the message.

    Returns:
        0; 1 if the message could not be delivered; 2 if there is no address.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", allow_abbrev=False)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--when", required=True, choices=(FAILURE, ALWAYS))
    parser.add_argument("--status", required=True, help="a PipelineTaskFinalStatus as JSON")
    options = parser.parse_args(arguments)
    try:
        with escaped_streams():
            print(notify(options.pipeline, options.when, json.loads(options.status), os.environ), flush=True)
    except ShardwrightError as error:
        print(f"shardwright: {escape_message(str(error))}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


def notify(pipeline: str, when: str, status: Mapping[str, object], environment: Mapping[str, str]) -> str:
    """Posts how a run ended; returns a line for the log.

    Args:
        pipeline: name of the pipeline.
        when: `failure` posts nothing about a run that succeeded.
        status: the fields of `PipelineTaskFinalStatus`.
        environment: has the address.

    Raises:
        UsageError: there is no address, or it is not one of the web.
        ShardwrightError: the message could not be delivered.
    """
    state = str(status.get("state") or "UNKNOWN")
    if state in _GOOD and when == FAILURE:
        return f"{pipeline}: {state}, so nothing is posted"
    address = environment.get(WEBHOOK_VARIABLE, "").strip()
    if not address.startswith(("https://", "http://")):
        raise UsageError(f"{WEBHOOK_VARIABLE}: is not an address that begins with https://. Correct the Secret.")
    _post(address, message(pipeline, state, status))
    return f"{pipeline}: {state}, posted"


def message(pipeline: str, state: str, status: Mapping[str, object]) -> str:
    """Returns the text that is posted."""
    run = status.get("pipelineJobResourceName")
    named = f" (run {run})" if run else ""
    if state in _GOOD:
        return escape(f"Pipeline {pipeline} succeeded{named}.")
    problem = status.get("error")
    reason = problem.get("message") if isinstance(problem, dict) else None
    # A pod that was killed reports nothing, and its pipeline remains "RUNNING".
    return escape(f"Pipeline {pipeline} did not succeed{named}: state {state}{f', {reason}' if reason else ''}.")


def _post(address: str, text: str) -> None:
    body = json.dumps({"text": text}).encode()
    headers = {"Content-Type": "application/json; charset=utf-8"}
    problem = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE * attempt)
        try:
            request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 -- checked above
            with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310 -- likewise
                return
        except urllib.error.HTTPError as error:
            problem = f"the server answered {error.code}"
            if error.code < 500 and error.code != 429:
                break
        # Errors of urllib may contain the address.
        except (OSError, ValueError) as error:
            problem = type(error).__name__
    raise ShardwrightError(f"{WEBHOOK_VARIABLE}: the message could not be delivered ({problem}).")


if __name__ == "__main__":
    sys.exit(main())
