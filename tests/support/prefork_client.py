"""The program behind `python` and `shardwright` of `prefork.py`: asks a server for a fork, or becomes the real thing.

    prefork_client.py FOLDER REAL-PROGRAM ARGUMENTS...

It imports as little as it can: it runs at every start of a process.
"""

import array
import contextlib
import fcntl
import json
import os
import signal
import socket
import sys

# Variables with these names or beginnings change how an interpreter, TensorFlow or Keras start.
SAME = ("LANG", "LC_", "PYTHON", "KERAS_", "JAX_", "XLA_", "TF_", "OMP_", "MALLOC_", "LD_", "CUDA_", "OPENBLAS_")
FREE = ("PYTHONPATH", "PYTHONUNBUFFERED", "TF_CPP_MIN_LOG_LEVEL", "LC_CTYPE", "KERAS_BACKEND")
# JAX and XLA read these when they first need a device.
FREE += ("JAX_PLATFORMS", "XLA_FLAGS")
# TensorFlow reads these when it makes its first tensor.
FREE += ("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")
# TFX sets these when it is imported, and its processes inherit them.
FREE += ("TF2_BEHAVIOR", "TF_USE_LEGACY_KERAS")
# Modules that `python -m` runs in forks: ours, TFX's executors, Beam's workers, the kernels of notebooks.
OURS = ("shardwright", "benchmarks", "tfx.", "apache_beam.", "ipykernel_launcher")
# The program by which execnet starts a process of pytest-xdist; what to run there comes through its standard input.
TEST_PROCESS = "import sys;exec(eval(sys.stdin.readline()))"
# The variable of `sandbox.py`, which is imported only where it is set.
SANDBOXED = "SHARDWRIGHT_TEST_WRITABLE"
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)


def main():
    folder, real, *arguments = sys.argv[1:]
    with open(os.path.join(folder, "start.json"), encoding="utf-8") as file:
        start = json.load(file)
    request = read_call(folder, real, arguments)
    kind = kind_of(request, os.environ) if request else ""
    if kind and same_start(start["environment"], os.environ):
        connection = connect(folder, start, kind)
        if connection is not None:
            follow(connection, request)
    if SANDBOXED in os.environ:
        sys.path.insert(0, os.path.dirname(__file__))
        from sandbox import enter_as_asked

        enter_as_asked(os.environ)
    os.execv(real, [real, *arguments])


def read_call(folder, real, arguments):
    """Returns the program to fork, or None where the real interpreter is wanted."""
    module, program, isolated, script = "", "", False, real
    if os.environ.get("SHARDWRIGHT_TEST_PREFORK") == "0":
        return None
    if os.path.basename(real) == "python":
        first, second = [*arguments, "", ""][:2]
        if arguments == ["-u", "-c", TEST_PROCESS]:
            program, arguments = TEST_PROCESS, []
        elif first == "-m" and second.startswith(OURS):
            module, arguments = second, arguments[2:]
        elif first == "-c" and is_ours(second):
            program, arguments = second, arguments[2:]
        elif first == "-I" and second.endswith("/clean_process.py"):
            isolated, script, arguments = True, second, arguments[2:]
        elif arguments[:2] == ["-I", "-c"] and "import tensorflow" in arguments[2]:
            isolated, program, arguments = True, arguments[2], arguments[3:]
        elif first.endswith(".py") and is_ours(text_of(first)):
            script, arguments = os.path.abspath(first), arguments[1:]
        else:
            return None
    mask = os.umask(0)
    os.umask(mask)
    return {
        "programs": folder,
        "module": module,
        "program": program,
        "script": script,
        "isolated": isolated,
        "arguments": arguments,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "umask": mask,
    }


def is_ours(program):
    """Returns whether a program of a test trains or runs a component. `multiprocessing` passes descriptors, too."""
    return "shardwright.components" in program and "multiprocessing" not in program


def text_of(file):
    with contextlib.suppress(OSError, UnicodeDecodeError), open(file, encoding="utf-8") as opened:
        return opened.read()
    return ""


def kind_of(request, found):
    """The server that has imported what the process will: Keras binds to its backend at import."""
    if request["isolated"]:
        return "clean"
    devices = request["program"] and "SHARDWRIGHT_CPU_DEVICES" in found
    if devices or found.get("KERAS_BACKEND") == "jax":
        return "jax" if found.get("JAX_PLATFORMS", "cpu") == "cpu" else ""
    return "full" if found.get("KERAS_BACKEND", "tensorflow") == "tensorflow" else ""


def same_start(wanted, found):
    names = {name for name in {**wanted, **found} if name.startswith(SAME) and name not in FREE}
    return all(wanted.get(name) == found.get(name) for name in names)


def connect(folder, start, kind):
    """A connection to a server, which is started if there is none; None: it cannot be started."""
    here = os.open(".", os.O_RDONLY)
    connection = socket.socket(socket.AF_UNIX)
    # By a relative name: the folder's whole name may be longer than an address can be.
    os.chdir(folder)
    try:
        try:
            connection.connect(f"{kind}.socket")
        except OSError:
            if SANDBOXED in os.environ and os.statvfs("/").f_flag & os.ST_RDONLY:
                return None  # A server that is started in a sandbox would stay in it.
            with open(f"{kind}.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                try:
                    connection.connect(f"{kind}.socket")
                except OSError:
                    if not start_server(start, kind):
                        return None
                    connection.connect(f"{kind}.socket")
    finally:
        os.fchdir(here)
        os.close(here)
    return connection


def start_server(start, kind):
    if os.path.exists(f"{kind}.socket"):
        os.unlink(f"{kind}.socket")
    ready, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            log = os.open(f"{kind}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(source, target)
            os.set_inheritable(write, True)
            os.closerange(3, write)
            os.closerange(write + 1, 256)
            command = [*start["server"], kind, str(write)]
            backend = (
                {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"} if kind == "jax" else {"KERAS_BACKEND": "tensorflow"}
            )
            os.execve(command[0], command, {**start["environment"], **backend})
        os._exit(0)
    os.wait()
    os.close(write)
    started = os.read(ready, 1)
    os.close(ready)
    return bool(started)


def follow(connection, request):
    """Sends the request, and signals to its process; ends as that one ends. Does not return."""
    child, pending = 0, []

    def forward(number, _):
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
        else:
            pending.append(number)

    for number in FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    text = json.dumps(request).encode()
    streams = array.array("i", [0, 1, 2])
    connection.sendmsg([len(text).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    connection.sendall(text)
    # The child alone holds the streams from here on, so that who reads them sees their end with its end.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    answers = connection.makefile("rb")
    line = answers.readline()
    if line:
        child = int(line)
        for number in pending:
            os.kill(child, number)
        line = answers.readline()
    code = int(line) if line else 1
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
