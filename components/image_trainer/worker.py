"""Worker processes: how the Trainer starts one and hears from it, and what every worker does first.

Keras binds to its backend when it is imported, and TFX imports it early: training and export therefore run in processes
of their own. A worker writes one JSON object a line on standard output (its messages) and everything else, libraries
included, on standard error, which goes to a log file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.errors import ShardwrightError, UsageError, told_of_file
from shardwright.escaping import escape, escaping

Message = dict[str, Any]

_LAST_LINES = 12
# What a worker that was told to end gets to save its state; Kubernetes gives as much by default.
_SECONDS_TO_SAVE = 30
_ERROR, _EXIT_CODE = "error", "exit_code"
# What a step of training needs by estimate, in words: whoever kills a process for its memory lets it say nothing.
NEEDS = "needs"


def run_worker(
    module: str,
    spec_file: Path,
    log_file: Path,
    *,
    environment: Mapping[str, str],
    on_message: Callable[[Message], None] = lambda message: None,
) -> None:
    """Runs a worker to its end.

    Args:
        module: what `python -m` runs.
        spec_file: JSON file of its `TrainSpec`.
        log_file: gets the worker's standard error.
        environment: variables set for it, on top of this process's.
        on_message: called with every message.

    Raises:
        ShardwrightError: the worker failed; with its own message where it knew the cause, else its last lines.
        UsageError: the call or the configuration is wrong, as the worker found out.
    """
    command = [sys.executable, "-m", module, "--spec", str(spec_file)]
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
        _told_on(process),
    ):
        try:
            for line in process.stdout or ():
                message = _parsed(line)
                if message is None:
                    log.write(escape(line, lines=True))
                    log.flush()
                elif _ERROR in message:
                    failure = str(message[_ERROR])
                    kind = UsageError if message.get(_EXIT_CODE) == UsageError.exit_code else ShardwrightError
                elif NEEDS in message:
                    needs = str(message[NEEDS])
                else:
                    on_message(message)
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        raise kind(failure or _unexplained(module, process.returncode, log_file, needs))


@contextmanager
def _told_on(process: subprocess.Popen[str]) -> Iterator[None]:
    """Tells the worker to end, too, when this process is: it saves its state, says so, and the error ends this one."""
    if threading.current_thread() is not threading.main_thread():
        # Then this process ends at once, and the worker hears of that from its pipe.
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


def main(work: Callable[[TrainSpec], None]) -> None:
    """Entry point of a worker: reads `--spec FILE` and does the work; an error of ours becomes a message and exit 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, required=True)
    spec = TrainSpec.read(parser.parse_args().spec)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stderr = escaping(sys.stderr)
    _silence_tensorflow()
    code = 1
    try:
        work(spec)
        code = 0
    except ShardwrightError as error:
        send({_ERROR: str(error), _EXIT_CODE: error.exit_code})
    except OSError as error:
        # No space, a folder without permission: nothing of ours is wrong. The log says where, all the same.
        traceback.print_exc()
        if error.strerror and not isinstance(error, ConnectionError):
            send({_ERROR: told_of_file(error)})
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    sys.stdout.flush()
    # Not by the interpreter's regular end: it may wait for ever for threads of TensorFlow that wait for it.
    os._exit(code)


def send(message: Message) -> None:
    """Sends a message to the process that started this one."""
    print(json.dumps(message), flush=True)


def _end_with_parent() -> None:
    """Ends this process when the one that started it is gone: killed, it cannot end its worker, but its pipe closes.

    By the signal that a worker may take as the word to save its state first.
    """
    # Not through `sys.stdin`: its lock, held by this thread, would spoil a regular end of the interpreter.
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _silence_tensorflow() -> None:
    from absl import logging

    logging.set_verbosity(logging.ERROR)


def _parsed(line: str) -> Message | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _unexplained(module: str, code: int, log_file: Path, needs: str) -> str:
    lines = log_file.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-_LAST_LINES:]
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    estimate = f"; a step needs about {needs} of it" if needs else ""
    hint = f" (out of memory{estimate}? Lower trainer.batch_size or transform.size)" if code == -9 else ""
    name = module.rpartition(".")[2]
    return "\n".join([f"{name} {how}{hint}. The whole log is {log_file}. Its last lines:", *(f"  {x}" for x in lines)])
