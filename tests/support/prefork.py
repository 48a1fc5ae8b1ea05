"""Starts Python processes of the tests as forks of a server that has imported TFX, TensorFlow and Keras once.

A real start imports them for 5 to 20 seconds of processor time, and a pipeline starts six processes. `install` makes a
folder with two small programs, `python` and `shardwright`, and points `sys.executable` at the first. Each program asks
a server to fork: the child gets the caller's arguments, environment, folder, umask and standard streams, and signals
sent to the program reach the child. The program ends as the child ends.

A call is forked only if it is one of these, and if the variables that change how Python or TensorFlow start have the
same values as in the tests:

- `shardwright …`, or `python -m MODULE` of ours, TFX or Beam, or of a notebook's kernel
- `python -c PROGRAM` or `python SCRIPT` with our components in it
- a test process of pytest-xdist
- without our code: `python -I …/clean_process.py`, or `python -I -c PROGRAM` with TensorFlow in it

Every other call replaces the program by the real interpreter. With `SHARDWRIGHT_TEST_PREFORK=0` in its environment a
process starts for real.

Servers start at their first use, one for all test processes, and end with the process named at their start.
"""

from __future__ import annotations

import array
import contextlib
import importlib
import json
import os
import runpy
import selectors
import shlex
import signal
import socket
import sys
import tempfile
import time
import traceback
import types
from pathlib import Path
from typing import Any

from prefork_client import TEST_PROCESS
from sandbox import enter_as_asked

SWITCH = "SHARDWRIGHT_TEST_PREFORK"
FOLDER = "SHARDWRIGHT_TEST_PREFORK_FOLDER"

# `clean_process.py` checks that no module of ours is imported, so it has a server without them.
IMPORTED: dict[str, tuple[str, ...]] = {
    "clean": ("numpy", "tensorflow"),
    "jax": (
        "tensorflow",
        "jax",
        "keras",
        "shardwright.components.image_trainer.training.checkpoints",
        "shardwright.components.image_trainer.training.losses",
        "shardwright.components.image_trainer.training.train",
        "shardwright.components.image_trainer.worker",
    ),
    "full": (
        "tensorflow",
        "keras",
        "tfx.v1",
        "tensorflow_model_analysis",
        "tfx.components.example_validator.executor",
        "tfx.components.schema_gen.executor",
        "tfx.components.trainer.executor",
        "shardwright.components.baseline_resolver.executor",
        "shardwright.components.runtime.container",
        "shardwright.components.data_gate.executor",
        "shardwright.components.evaluator.executor",
        "shardwright.components.image_example_gen.executor",
        "shardwright.components.image_trainer.training.checkpoints",
        "shardwright.components.image_trainer.training.losses",
        "shardwright.components.image_trainer.run_fn",
        "shardwright.components.image_trainer.export.signatures",
        "shardwright.components.image_transform.executor",
        "shardwright.components.inline_schema.executor",
        "shardwright.components.input_resolver.executor",
        "shardwright.components.pusher.executor",
        "shardwright.components.report.executor",
        "shardwright.components.statistics_gen.executor",
        "shardwright.pipelines.cli",
        "shardwright.pipelines.graph",
        "shardwright.pipelines.kfp.task",
        "shardwright.pipelines.run_local",
        "quick_beam",
        "quick_tracing",
    ),
}

_SET_BY_IMPORTS: dict[str, str] = {}


def install(folder: Path) -> None:
    """Writes the two programs into `folder` and makes `sys.executable` the first, unless the switch is off."""
    if os.environ.get(SWITCH) == "0":
        return
    if not (folder / "python").exists():
        _write_programs(folder)
    os.environ[FOLDER] = str(folder)
    sys.executable = str(folder / "python")


def calls(folder: Path) -> dict[str, list[float]]:
    """Returns the processor seconds of the forks by their names: nobody who waits for the tests sees them.

    A fork's seconds contain those of the processes that it started itself and waited for, unless these are forks, too.
    """
    return _recorded(folder / "calls")


def tests(folder: Path) -> dict[str, float]:
    """Test -> processor seconds of its steps in the test process, and of all processes that it started."""
    return {name: sum(seconds) for name, seconds in _recorded(folder / "tests").items()}


def record_test(name: str, seconds: float) -> None:
    """Adds seconds of the test process, and of real processes that it waited for, to those of a test."""
    if FOLDER in os.environ:
        _record(Path(os.environ[FOLDER], "tests"), seconds, name)


def _recorded(file: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            spent, name = line.split(" ", 1)
            found.setdefault(name, []).append(float(spent))
    return found


def record_own_time() -> None:
    """Adds the seconds of this process, and of those that it waited for, to `calls`; does nothing outside a fork."""
    if sys.orig_argv[1:2] == [__file__]:
        times = os.times()
        seconds = times.user + times.system + times.children_user + times.children_system
        _record(Path(os.environ[FOLDER], "calls"), seconds, "test process")


def _record(file: Path, seconds: float, name: str) -> None:
    with file.open("a", encoding="utf-8") as calls:
        calls.write(f"{seconds:.2f} {name}\n")


def _write_programs(folder: Path) -> None:
    real = Path(sys.executable)
    folder.mkdir(parents=True, exist_ok=True)
    client = Path(__file__).with_name("prefork_client.py")
    server = [str(real), __file__, str(folder), str(os.getpid())]
    start = {"server": server, "environment": dict(os.environ)}
    (folder / "start.json").write_text(json.dumps(start), encoding="utf-8")
    for name in ("shardwright", "python"):
        words = [str(real), "-I", "-S", str(client), str(folder), str(real.with_name(name))]
        program = folder / f".{name}"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        program.rename(folder / name)


def main() -> None:
    """Serves until the tests end: `prefork.py FOLDER PID KIND READY`, the last a file descriptor that gets a byte."""
    folder, owner, kind, ready = sys.argv[1:]
    sys.argv[1:] = []
    from shardwright.running.processes import gc_paused

    before = dict(os.environ)
    with gc_paused():
        for name in IMPORTED[kind]:
            importlib.import_module(name)
    times = os.times()
    _record(Path(folder, "calls"), times.user + times.system, f"imports of the server '{kind}'")
    _SET_BY_IMPORTS.update({name: value for name, value in os.environ.items() if name not in before})
    if kind == "clean":
        for name in [name for name in sys.modules if name.partition(".")[0] == "shardwright"]:
            del sys.modules[name]
    _Server(folder, kind, int(owner)).serve(int(ready))


class _Server:
    """One thread, one loop: requests come in, exit codes go out. Only a process without threads may fork."""

    def __init__(self, folder: str, kind: str, owner: int) -> None:
        self._kind = kind
        self._selector = selectors.DefaultSelector()
        self._socket = socket.socket(socket.AF_UNIX)
        # By a relative name: the folder's whole name may be longer than an address can be.
        os.chdir(folder)
        self._socket.bind(f"{kind}.socket")
        self._socket.listen(64)
        self._owner = os.pidfd_open(owner)
        # The descriptor of a child's process -> child, connection, name of what it runs, test that started it.
        self._children: dict[int, tuple[int, socket.socket, str, str]] = {}
        self._converted = 0

    def serve(self, ready: int) -> None:
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._selector.register(self._owner, selectors.EVENT_READ)
        os.write(ready, b"1")
        os.close(ready)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._socket:
                    self._fork()
                elif key.fileobj == self._owner:
                    self._end()
                elif key.fd in self._children:
                    self._ended(key.fd)
                else:
                    self._caller_gone(key.data)

    def _fork(self) -> None:
        connection, _ = self._socket.accept()
        request, streams = _receive(connection)
        if request is None:
            connection.close()
            return
        if self._kind == "full":
            self._convert()
        child = os.fork()
        if child == 0:
            self._socket.close()
            connection.close()
            for key in list(self._selector.get_map().values()):
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()
                else:
                    with contextlib.suppress(OSError):
                        os.close(key.fd)
            self._selector.close()
            _become(request, streams)
        for stream in streams:
            os.close(stream)
        process = os.pidfd_open(child)
        self._children[process] = (child, connection, _name_of(request), _test_of(request))
        self._selector.register(process, selectors.EVENT_READ)
        self._selector.register(connection, selectors.EVENT_READ, process)
        with contextlib.suppress(OSError):
            connection.sendall(b"%d\n" % child)

    def _convert(self) -> None:
        """Converts what forks had to convert so far: the next ones inherit it."""
        begun, known = time.process_time(), self._converted
        with contextlib.suppress(FileNotFoundError), Path("converted").open(encoding="utf-8") as lines:
            lines.seek(known)
            for line in iter(lines.readline, ""):
                sys.modules["quick_tracing"].convert(json.loads(line))
            self._converted = lines.tell()
        if self._converted > known:
            _record(Path("calls"), time.process_time() - begun, "functions converted by the server")

    def _ended(self, process: int) -> None:
        child, connection, name, test = self._children[process]
        found, status, used = os.wait4(child, os.WNOHANG)
        if not found:  # The event was that of another descriptor, which had the same number before.
            return
        del self._children[process]
        self._selector.unregister(process)
        os.close(process)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        connection.close()
        if name:
            _record(Path("calls"), used.ru_utime + used.ru_stime, name)
            _record(Path("tests"), used.ru_utime + used.ru_stime, test)

    def _caller_gone(self, process: int) -> None:
        """A program that was killed takes its child along."""
        if process not in self._children:
            return
        child, connection, _, _ = self._children[process]
        self._selector.unregister(connection)
        os.kill(child, signal.SIGKILL)

    def _end(self) -> None:
        for child, _, _, _ in self._children.values():
            os.kill(child, signal.SIGKILL)
        os._exit(0)


def _name_of(request: dict[str, Any]) -> str:
    """Returns the name shown for a fork; empty for a test process, which records its time before pytest sums up."""
    arguments = request["arguments"] or [""]
    if request["program"] == TEST_PROCESS:
        return ""
    if request["module"] or request["program"]:
        return str(request["module"]) or "python -c"
    return f"{Path(request['script']).stem} {arguments[0] if not request['isolated'] else ''}".strip()


def _test_of(request: dict[str, Any]) -> str:
    """The test that pytest was running when the fork was asked for."""
    return str(request["environment"].get("PYTEST_CURRENT_TEST", "no test")).rpartition(" (")[0] or "no test"


def _receive(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """A request and the three streams that come with it."""
    descriptors = array.array("i")
    data, ancillary, _, _ = connection.recvmsg(8, socket.CMSG_LEN(3 * descriptors.itemsize))
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(content)
    size = int.from_bytes(data, "big")
    text = b""
    while len(text) < size:
        part = connection.recv(size - len(text))
        if not part:
            return None, list(descriptors)
        text += part
    return (json.loads(text) if text else None), list(descriptors)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Makes this fork the process that was asked for; does not return."""
    code = 1
    try:
        _take_over(request, streams)
        code = _run(request)
        _finish()
    except KeyboardInterrupt:
        traceback.print_exc()
        _flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _take_over(request: dict[str, Any], streams: list[int]) -> None:
    import random

    os.setsid()
    for source, target in zip(streams, range(3), strict=True):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update({**_SET_BY_IMPORTS, **request["environment"]})
    os.chdir(request["folder"])
    os.umask(request["umask"])
    enter_as_asked(os.environ)
    tempfile.tempdir = None  # TMPDIR may be another one than the server's.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdout.reconfigure(line_buffering=os.isatty(1), write_through=unbuffered)
    sys.stderr.reconfigure(line_buffering=True, write_through=unbuffered)
    sys.executable = str(Path(request["programs"], "python"))
    first = request["folder"] if request["module"] or request["program"] else str(Path(request["script"]).parent)
    added = [name for name in os.environ.get("PYTHONPATH", "").split(os.pathsep) if name]
    sys.path[:] = [] if request["isolated"] else list(dict.fromkeys([first, *added]))
    sys.path += [name for name in _PATH if name not in sys.path]
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def _run(request: dict[str, Any]) -> int:
    tracing = sys.modules.get("quick_tracing")
    before = frozenset(tracing.conversions() if tracing else ())
    try:
        if request["module"]:
            sys.argv = [request["module"], *request["arguments"]]
            sys.modules.pop(request["module"], None)
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        elif request["program"]:
            sys.argv = ["-c", *request["arguments"]]
            sys.modules["__main__"] = program = types.ModuleType("__main__")
            exec(compile(request["program"], "<string>", "exec"), program.__dict__)
        else:
            sys.argv = [request["script"], *request["arguments"]]
            runpy.run_path(request["script"], run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 255
        print(ended.code, file=sys.stderr)
        return 1
    finally:
        if tracing:
            tracing.report(Path(os.environ[FOLDER], "converted"), before)
    return 0


def _finish() -> None:
    """The interpreter's regular end: threads are waited for, then what was registered runs."""
    import atexit
    import threading

    _flush()
    # Both are private, and what `Py_FinalizeEx` calls; `os.fork` leaves no public way to a regular end.
    threading._shutdown()
    atexit._run_exitfuncs()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


if __name__ == "__main__":
    _PATH = sys.path[1:]
    main()
