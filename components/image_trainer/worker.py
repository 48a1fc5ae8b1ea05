"""Worker processes: the program that trains and exports, and how the Trainer runs it.

Keras binds to its backend when it is imported, and TFX imports it early: training and export therefore run in separate
processes. A worker writes its messages to standard output, one JSON object per line. Everything else goes to standard
error, and from there to a log file.

    python -m shardwright.components.image_trainer.worker train|export|check --spec FILE

`train` trains a model on a transformed dataset and keeps the best epoch. `export` writes its SavedModel. `check` builds
the model with the initial weights of a training. One `train` process runs on every host. On a CPU and on a GPU the same
seed, data and machine give the same weights to the last bit, also after an interruption. Weights, order, augmentation
and operations are seeded or deterministic.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.devices.hosts import this_host
from shardwright.components.image_trainer.devices.placement import Machine, choose_placement
from shardwright.components.image_trainer.spec import NEEDS, TrainSpec
from shardwright.components.image_trainer.training.training_progress import Preemption
from shardwright.errors import ShardwrightError, Stopped, UsageError, describe_os_error
from shardwright.text.escaping import escape, escaping

Message = dict[str, Any]

# The module that `python -m` runs for the jobs `train`, `export` and `check`.
WORKER = "shardwright.components.image_trainer.worker"

_LAST_LINES = 12
# A worker that received SIGTERM has this time to save its state; it is Kubernetes' default, too.
_SECONDS_TO_SAVE = 30
_ERROR, _EXIT_CODE = "error", "exit_code"
_KINDS: dict[Any, type[ShardwrightError]] = {kind.exit_code: kind for kind in (UsageError, Stopped)}


def run_worker(
    program: Sequence[str],
    spec_file: Path,
    log_file: Path,
    *,
    environment: Mapping[str, str],
    on_message: Callable[[Message], None] = lambda message: None,
) -> None:
    """Runs a worker to its end.

    Args:
        program: module for `python -m`, with its arguments: `(WORKER, "train")`.
        spec_file: JSON file of its `TrainSpec`.
        log_file: gets the worker's standard error.
        environment: variables set for it, on top of this process's.
        on_message: called with every message.

    Raises:
        ShardwrightError: the worker failed; with its own message if it knew the cause, else its last lines.
        UsageError: the worker found an error in the call or the configuration.
        Stopped: a signal stopped the worker.
    """
    command = [sys.executable, "-m", *program, "--spec", str(spec_file)]
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1", **environment}
    # A worker imports what this process imports, also when a path was added after its start.
    variables["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    failure = needs = ""
    kind: type[ShardwrightError] = ShardwrightError
    with (
        log_file.open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=variables, text=True
        ) as process,
        _forwarded_sigterm(process),
    ):
        try:
            for line in process.stdout or ():
                try:
                    message = json.loads(line)
                except ValueError:
                    message = None
                if not isinstance(message, dict):
                    log.write(escape(line, lines=True))
                    log.flush()
                elif _ERROR in message:
                    failure = str(message[_ERROR])
                    kind = _KINDS.get(message.get(_EXIT_CODE), ShardwrightError)
                elif NEEDS in message:
                    needs = str(message[NEEDS])
                else:
                    on_message(message)
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        # Before it listens, the signal ends it.
        kind = Stopped if process.returncode == -signal.SIGTERM else kind
        raise kind(failure or _unexplained(program[-1], process.returncode, log_file, needs))


@contextmanager
def _forwarded_sigterm(process: subprocess.Popen[str]) -> Iterator[None]:
    """Passes SIGTERM to the worker: it saves its state, and its error message ends this process."""
    if threading.current_thread() is not threading.main_thread():
        # No handler is possible: SIGTERM ends this process at once, and the worker notices that its pipe closes.
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_SECONDS_TO_SAVE)
    except subprocess.TimeoutExpired:
        process.kill()


def main(jobs: Callable[[TrainSpec], None] | Mapping[str, Callable[[TrainSpec], None]]) -> None:
    """Runs a job on the specification of `--spec FILE`; an error of ours becomes a message and exit code 1.

    Args:
        jobs: the job, or several jobs by name; the first argument then names one.
    """
    parser = argparse.ArgumentParser()
    if not callable(jobs):
        parser.add_argument("job", choices=sorted(jobs))
    parser.add_argument("--spec", type=Path, required=True)
    options = parser.parse_args()
    from absl import logging

    work = jobs if callable(jobs) else jobs[options.job]
    spec = TrainSpec.read(options.spec)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # A line reaches the pipe or the log in one call, so that two lines never mix; unbuffered, `print` needs two.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)
    sys.stderr = escaping(sys.stderr)
    logging.set_verbosity(logging.ERROR)
    code = 1
    try:
        work(spec)
        code = 0
    except ShardwrightError as error:
        send({_ERROR: str(error), _EXIT_CODE: error.exit_code})
    except OSError as error:
        # No space, no permission: not an error of the program. The log has the traceback nevertheless.
        traceback.print_exc()
        if error.strerror and not isinstance(error, ConnectionError):
            send({_ERROR: describe_os_error(error)})
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    sys.stdout.flush()
    # The interpreter's regular end may deadlock with threads of TensorFlow.
    os._exit(code)


def send(message: Message) -> None:
    """Sends a message to the process that started this one."""
    print(json.dumps(message), flush=True)


def _end_with_parent() -> None:
    """Sends SIGTERM to this process when its parent is gone: a killed parent cannot, but its pipe closes."""
    # Not `sys.stdin`: its lock, held by this thread, would block a regular end of the interpreter.
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _unexplained(name: str, code: int, log_file: Path, needs: str) -> str:
    lines = log_file.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-_LAST_LINES:]
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    estimate = f"; a step needs about {needs} of it" if needs else ""
    hint = f" (out of memory{estimate}? Lower trainer.batch_size or transform.size)" if code == -9 else ""
    return "\n".join(
        [f"the worker {name} {how}{hint}. The whole log is {log_file}. Its last lines:", *(f"  {x}" for x in lines)]
    )


def check(spec: TrainSpec) -> None:
    """Builds the model with its initial weights, and discards it.

    Raises:
        UsageError: a custom model does not meet the requirements, weights are of another architecture, or the function
            that makes callbacks cannot be imported.
    """
    from shardwright.components.image_trainer.models.build import model_of
    from shardwright.components.image_trainer.training.warm_start import begin_with
    from shardwright.components.runtime.user_code import import_function
    from shardwright.config.trainer import is_own

    model = model_of(spec)
    if spec.warm_from:
        begin_with(model, spec.warm_from, spec.classes, own=is_own(spec.recipe.trainer.model))
    if spec.recipe.trainer.callbacks:
        import_function(spec.recipe.trainer.callbacks, option="trainer.callbacks")


def train(spec: TrainSpec) -> None:
    """Trains, and writes `model.keras`, `history.json`, `training.json` and TensorBoard logs to `spec.output`.

    Raises:
        ShardwrightError: the loss is not finite, memory is exhausted, or a host received a signal to stop.
    """
    preemption = Preemption()
    preemption.listen()
    here = this_host(os.environ, spec.recipe.trainer.hosts)
    placement = choose_placement(spec.recipe.trainer.accelerator, here.count, Machine.look(os.environ))
    # Before anything imports Keras or JAX.
    os.environ.update(placement.to_environment(os.environ))

    from shardwright.components.image_trainer.training.train import run_training

    run_training(spec, placement, here, preemption, send)


def export(spec: TrainSpec) -> None:
    """Writes the SavedModel of a finished training, see `export_model`."""
    from shardwright.components.image_trainer.export.export_model import export_model

    export_model(spec)


if __name__ == "__main__":
    main({"train": train, "export": export, "check": check})
