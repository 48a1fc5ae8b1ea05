"""Runs a whole pipeline on Flink or Prism on this machine, and compares what its steps write with a local run.

A Flink cluster has two task managers of two slots, and workers in processes of their own. One task manager is killed
while ImageExampleGen writes shards: Flink gives its tasks to the other one. Wants Java 11 or 17. Prism is Beam's own
portable runner, of which `tools/engines.sh` builds the program; it tries no task again, so nothing is killed. The exit
code is 1 when files differ, and 2 when a part of the cluster cannot be had.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from apache_beam.utils.subprocess_server import JavaJarServer
from apache_beam.version import __version__ as beam_version
from tensorflow_metadata.proto.v0 import statistics_pb2

# Beam -> the newest Flink that it has a job server for.
_NEWEST = (((2, 70), "2.1"), ((2, 61), "1.19"), ((0, 0), "1.18"))
# Workers of earlier Beams fail on Prism: "worker_id read from context metadata is an empty string".
_PRISM_SINCE = (2, 70)
_DRIVER = "org.apache.beam.runners.flink.FlinkJobServerDriver"
_MASTER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_RESOURCES = "org.apache.flink.runtime.util.bash.BashJavaUtils"
# Of the steps that run on Beam, but for the Evaluator: TFMA writes as many files as a runner has bundles.
_OUTPUTS = {
    "ImageExampleGen": ["examples"],
    "StatisticsGen": ["statistics"],
    "ImageTransform": ["transformed_examples", "post_transform_stats", "post_transform_schema", "transform_graph"],
}
# Enough shards that both task managers have some, and that one can be killed in between; enough images of `test` for a
# verdict, and few updates.
_CONFIGURATION: dict[str, Any] = {
    "name": "compared",
    "task": "segmentation",
    "input": {"classes": ["Fish", "Flower", "Gravel", "Sugar"]},
    "images": {"verify": "full"},
    "split": {"ratios": {"train": 0.5, "eval": 0.1, "test": 0.4}},
    "shards": {"count": 24},
    "transform": {"size": [64, 96]},
    "trainer": {"epochs": 1, "batch_size": 16},
    "evaluator": {"min_dice": 0.0, "beat_trivial": False},
}
# Java keeps these to itself; Flink's own start scripts open them.
_OPENED = (
    "lang",
    "lang.reflect",
    "io",
    "net",
    "nio",
    "text",
    "time",
    "util",
    "util.concurrent",
    "util.concurrent.atomic",
)
_SECONDS = 120
_SHARDWRIGHT = str(Path(sys.executable).with_name("shardwright"))


_BEAM = tuple(map(int, beam_version.split(".")[:2]))


class Missing(Exception):
    """A part of the cluster cannot be had; the message says which and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="tools/flink.sh", description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help=argparse.SUPPRESS)
    newest = next(flink for since, flink in _NEWEST if since <= _BEAM)
    parser.add_argument("--flink", metavar="X.Y", default=newest, help=f"version of Flink (default {newest})")
    parser.add_argument(
        "--job-server",
        type=Path,
        metavar="JAR",
        help=f"Beam's job server for that version (default: that of Beam {beam_version}, from Maven Central)",
    )
    parser.add_argument("--prism", type=Path, metavar="PROGRAM", help="run on Prism instead of Flink")
    parser.add_argument("--images", type=int, default=150, metavar="N", help="number of images (default 150)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="empty folder for results and logs, kept afterwards")
    options = parser.parse_args(arguments)
    if options.prism is not None and _BEAM < _PRISM_SINCE:
        print(f"prism: skipped: Beam {beam_version}'s workers do not run on it; the current stack's do")
        return 0
    try:
        engine: Callable[[Path], AbstractContextManager[_Engine]]
        if options.prism is not None:
            engine = partial(_prism, program=options.prism.resolve())
        else:
            java, flink = _java(), _flink(options.cache, options.flink)
            server = _job_server(options.job_server, options.flink)
            # Flink reads another file from version 2 on.
            settings = "config.yaml" if int(options.flink.split(".")[0]) > 1 else "flink-conf.yaml"
            engine = partial(_cluster, java=java, flink=flink, job_server=server, settings_file=settings)
    except Missing as error:
        print(f"tools/flink.sh: {error}", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flink-")))
        folder.mkdir(parents=True, exist_ok=True)
        return _compare(folder.resolve(), options.images, engine)


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        raise Missing("there is no Java. Install it: apt-get install openjdk-17-jre-headless.")
    return java


def _flink(cache: Path, version: str) -> Path:
    """Returns the folder of Flink's libraries; the package index has them for PyFlink."""
    package = f"apache-flink-libraries=={version}.*"
    folder = cache / f"apache-flink-libraries-{version}"
    if not folder.exists():
        print(f"flink: installing {package} (230 MB)", flush=True)
        with tempfile.TemporaryDirectory(prefix="flink-") as temporary:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", temporary, package]
            if subprocess.run(command, check=False).returncode:
                raise Missing(f"{package} cannot be installed. Check that the package index can be reached.")
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(Path(temporary) / "pyflink", folder)
    return folder


def _job_server(given: Path | None, version: str) -> Path:
    if given is not None:
        if not given.is_file():
            raise Missing(f"--job-server: {given} is no file. Give the path of the jar.")
        return given.resolve()
    url = JavaJarServer.path_to_beam_jar(f"runners:flink:{version}:job-server:shadowJar")
    try:
        return Path(JavaJarServer.local_jar(url))
    except (OSError, urllib.error.URLError, RuntimeError) as error:
        raise Missing(
            f"Beam's job server cannot be fetched from {url}: {error}. Fetch it on another machine, and give its path "
            "with --job-server."
        ) from None


def _compare(folder: Path, images: int, engine: Callable[[Path], AbstractContextManager[_Engine]]) -> int:
    sample = [_SHARDWRIGHT, "sample", "--quiet", "--out", str(folder / "input")]
    subprocess.run([*sample, "--count", str(images), "--height", "525", "--width", "788"], check=True)
    print("the local run", flush=True)
    local = _started_pipeline(folder, "local", [])
    if local.wait():
        return _failed(folder / "logs/local.log")
    print("the run on the cluster", flush=True)
    with engine(folder) as cluster:
        remote = _started_pipeline(folder, "remote", cluster.options)
        cluster.disturb(lambda: remote.poll() is not None or any((folder / "staging/remote").rglob("*.tfrecord*")))
        if remote.wait():
            return _failed(folder / "logs/remote.log")
        done = cluster.done()
    files, differing = _differences(folder / "local/artifacts", folder / "remote/artifacts")
    for name in differing:
        print(f"{name} differs")
    result = f"{len(differing)} differ" if differing else "the same bytes as in the local run"
    print(
        f"{done or 'the task manager was killed after its tasks: use more --images'}; {files} files compared, {result}"
    )
    return 1 if differing or not files or not done else 0


def _started_pipeline(folder: Path, name: str, options: Sequence[str]) -> subprocess.Popen[bytes]:
    data = folder / "input"
    named = {"images": str(data / "train_images"), "labels": {"path": str(data / "train.csv")}}
    configuration = {
        **_CONFIGURATION,
        "input": {**_CONFIGURATION["input"], **named},
        "run": {"root": str(folder / name), "staging": str(folder / "staging" / name)},
        "beam": {"options": list(options)},
    }
    # JSON is YAML.
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(configuration), encoding="utf-8")
    return _started([_SHARDWRIGHT, "run", str(file)], folder / f"logs/{name}.log")


def _started(command: Sequence[str], log: Path, **variables: str) -> subprocess.Popen[bytes]:
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **variables})


def _failed(log: Path) -> int:
    print(log.read_text(encoding="utf-8", errors="replace")[-3000:], file=sys.stderr)
    return 1


def _shards(staging: Path) -> Iterator[Path]:
    return staging.rglob("*.tfrecord*")


class _Engine:
    """Something that runs Beam's jobs.

    Args:
        options: Beam's options for a pipeline that is to run on it.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self.options = options

    def disturb(self, begun: Callable[[], bool]) -> None:
        """Takes a machine away as soon as work has begun, where others can do it again."""

    def done(self) -> str:
        """Returns what it has done; empty if nothing was disturbed."""
        return "Prism"


class _Cluster(_Engine):
    """A Flink cluster that runs.

    Args:
        rest: port of its REST interface.
        options: Beam's options for a pipeline that is to run on it.
        victim: the task manager to kill.
    """

    def __init__(self, rest: int, options: Sequence[str], victim: subprocess.Popen[bytes]) -> None:
        super().__init__(options)
        self._rest = rest
        self._victim = victim

    def disturb(self, begun: Callable[[], bool]) -> None:
        """Kills a task manager as a machine dies: it says nothing to anybody."""
        _wait_for(begun, "a shard")
        self._victim.send_signal(signal.SIGKILL)
        self._victim.wait()

    def get(self, path: str) -> Any:
        """Returns what the REST interface answers."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._rest}/{path}", timeout=30) as answer:
            return json.load(answer)

    def task_managers(self) -> int:
        """Returns how many task managers have joined."""
        try:
            return int(self.get("overview")["taskmanagers"])
        except (OSError, ValueError):
            return 0

    def done(self) -> str:
        """Returns the number of finished jobs, and of those that lost a task manager on the way, if any did."""
        finished = [job["jid"] for job in self.get("jobs/overview")["jobs"] if job["state"] == "FINISHED"]
        lost = sum(bool(self.get(f"jobs/{job}/exceptions")["exceptionHistory"]["entries"]) for job in finished)
        return f"Flink: {len(finished)} jobs, {lost} continued after a task manager was killed" if lost else ""


def _portable(jobs: int, pool: int) -> list[str]:
    options = ["--runner=PortableRunner", f"--job_endpoint=localhost:{jobs}", "--environment_type=EXTERNAL"]
    return [*options, f"--environment_config=localhost:{pool}", "--parallelism=2", "--sdk_location=container"]


def _pool(port: int) -> list[str]:
    return [sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={port}"]


@contextmanager
def _running(folder: Path, commands: Mapping[str, Sequence[str]]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Starts programs, and stops them at the end."""
    # The pool starts its workers as `python`.
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command in commands.items():
            processes[name] = _started(command, folder / f"logs/{name}.log", PATH=search)
        yield processes
    finally:
        for process in reversed(processes.values()):
            process.terminate()
        for process in processes.values():
            process.wait()


@contextmanager
def _prism(folder: Path, program: Path) -> Iterator[_Engine]:
    jobs, pool = _free_ports(2)
    commands = {"prism": [str(program), f"--job_port={jobs}", "--serve_http=false"], "workers": _pool(pool)}
    with _running(folder, commands):
        _wait_for(lambda: _listens(jobs) and _listens(pool), "Prism")
        yield _Engine(_portable(jobs, pool))


@contextmanager
def _cluster(folder: Path, java: str, flink: Path, job_server: Path, settings_file: str) -> Iterator[_Cluster]:
    """Starts a cluster with two task managers, Beam's job server and a pool of workers, and stops all at the end."""
    master, rest, jobs, pool = _free_ports(4)
    settings = folder / "flink"
    _write_settings(settings / settings_file, master, rest)
    opened = [option for name in _OPENED for option in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")]
    begin = [java, *opened, f"-Dlog4j.configurationFile=file:{settings}/log4j.properties"]
    place = ["-cp", f"{flink}/lib/*"]
    memory, resources = _task_manager_options(java, flink, settings)
    task_manager = [*begin, *memory, *place, _TASK_MANAGER, "--configDir", str(settings), *resources]
    server = [*begin, "-cp", str(job_server), _DRIVER, "--flink-master", f"127.0.0.1:{rest}"]
    server += ["--job-port", str(jobs), "--artifact-port", "0", "--expansion-port", "-1"]
    commands = {
        "jobmanager": [*begin, *place, _MASTER, "--configDir", str(settings)],
        "taskmanager-1": task_manager,
        "taskmanager-2": task_manager,
        "jobserver": [*server, "--artifacts-dir", str(folder / "artifacts")],
        "workers": _pool(pool),
    }
    with _running(folder, commands) as processes:
        cluster = _Cluster(rest, _portable(jobs, pool), processes["taskmanager-1"])
        _wait_for(lambda: cluster.task_managers() == 2 and _listens(jobs) and _listens(pool), "the cluster")
        yield cluster


def _write_settings(file: Path, master: int, rest: int) -> None:
    """Writes Flink's settings: small, restarting, and on this machine only."""
    values = {
        "jobmanager.rpc.address": "127.0.0.1",
        "jobmanager.rpc.port": master,
        "jobmanager.memory.process.size": "1024m",
        "taskmanager.host": "127.0.0.1",
        "taskmanager.memory.process.size": "1500m",
        # The statistics of ImageTransform are some 300 tasks, each of which wants 512 buffers otherwise.
        "taskmanager.network.sort-shuffle.min-buffers": 64,
        "taskmanager.memory.network.min": "384m",
        "taskmanager.memory.network.max": "384m",
        "taskmanager.memory.managed.size": "128m",
        "taskmanager.numberOfTaskSlots": 2,
        # Otherwise both tasks would run in one task manager, and the death of the other one would disturb nobody.
        "cluster.evenly-spread-out-slots": "true",
        "rest.address": "127.0.0.1",
        "rest.port": rest,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 10,
        "heartbeat.interval": 2000,
        "heartbeat.timeout": 10000,
    }
    logging = (
        "rootLogger.level = INFO\nrootLogger.appenderRef.out.ref = out\nappender.out.type = CONSOLE\n"
        "appender.out.name = out\nappender.out.layout.type = PatternLayout\n"
        "appender.out.layout.pattern = %d{HH:mm:ss} %p %c{1} %m%n\n"
    )
    file.parent.mkdir()
    text = "".join(f"{key}: {value}\n" for key, value in values.items())
    file.write_text(text, encoding="utf-8")
    (file.parent / "log4j.properties").write_text(logging, encoding="utf-8")


def _task_manager_options(java: str, flink: Path, settings: Path) -> tuple[list[str], list[str]]:
    """Returns options of Java and of a task manager, as Flink divides the memory among its uses."""
    place = f"{flink}/bin/bash-java-utils.jar{os.pathsep}{flink}/lib/*"
    command = [java, "-cp", place, _RESOURCES, "GET_TM_RESOURCE_PARAMS", "--configDir", str(settings)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    found = [line.partition(":")[2].split() for line in printed.splitlines() if line.startswith("BASH_JAVA_UTILS_EXEC")]
    return found[0], found[1]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("localhost", port), timeout=5).close()
    except OSError:
        return False
    return True


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _SECONDS
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"no sign of {what} after {_SECONDS} s; --keep keeps the logs")
        time.sleep(0.05)


def _differences(local: Path, remote: Path) -> tuple[int, list[str]]:
    """Returns the number of files of both runs, and the names of those that are not the same bytes.

    Left out is the graph's SavedModel: TensorFlow numbers its functions by what the process traced before.
    """
    one, other = _files(local), _files(remote)
    names = one.keys() | other.keys()
    differing = (name for name in names if _content(one.get(name)) != _content(other.get(name)))
    return len(names), sorted(differing)


def _files(root: Path) -> dict[str, Path]:
    """Returns the compared files of a run by their names, without the numbers of executions, which may differ."""
    return {
        "/".join((component, output, *file.relative_to(root / component / output).parts[1:])): file
        for component, outputs in _OUTPUTS.items()
        for output in outputs
        for file in (root / component / output).rglob("*")
        if file.is_file() and "transform_fn" not in file.parts
    }


def _content(file: Path | None) -> bytes | str | None:
    """Returns what is compared: TFDV adds numbers in the order of the runner, so the last of 17 digits may differ."""
    if file is None:
        return None
    if file.name != "FeatureStats.pb":
        return file.read_bytes()
    statistics = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read_bytes())
    # Means of hashes are so large that they are written without a point.
    return re.sub(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", lambda number: f"{float(number[0]):.12g}", str(statistics))


if __name__ == "__main__":
    sys.exit(main())
