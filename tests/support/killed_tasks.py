"""Faults in an emulated run: the first attempts of every task are killed, each at a point that a seed draws."""

import hashlib
import itertools
import random
import re
import signal
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import run_container
from tensorflow.core.protobuf import saved_model_pb2

from shardwright.components.runtime.mounts import folder_of

# A point is a change of files: the n-th, or the end of the task if it makes fewer. Its outputs are then written, and
# no program was notified of them.
_MOST = 40
# Point 0 is never reached.
_WATCHED = """# a module of shardwright.components
import os, runpy, signal, sys
point, module, sys.argv = int(sys.argv[1]), sys.argv[2], sys.argv[2:]
made = 0

def changes(event, details):
    global made
    if event == "open" and isinstance(details[2], int):
        found = details[2] & (os.O_WRONLY | os.O_RDWR)
    else:
        found = event in ("os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")
    made += bool(found)
    if found and made == point:
        print("killed at", made, event, *details, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(changes)
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
finally:
    print("killed at the end," if point else "ended", "after", made, "changes", flush=True)
    if point:
        os.kill(os.getpid(), signal.SIGKILL)
"""
# Files that name the place, the time or the process of a run.
_OWN = (
    "location",
    "build.json",
    "lineage.json",
    "training.json",
    "spec.json",
    "eval_config.json",
    "executor-logs-*",
    "events.out.*",
    "train.log",  # XLA puts the time on its lines.
)
# TensorFlow numbers the functions of a graph through all that its process traces, which is less where a killed attempt
# left finished shards. The rest of the graph is compared, and not the fingerprint of the file.
_GRAPH, _GRAPH_FINGERPRINT = "transform_fn/saved_model.pb", "transform_fn/fingerprint.pb"
# In an archive of Keras the rest has dates and the numbers of objects.
_KERAS = ("model.weights.h5",)


@dataclass
class AttemptsKilled:
    """Runs the commands of containers; the first attempts of each task are killed.

    Attributes:
        seed: of the points.
        kills: how many attempts of each task are killed. Their points are in as many equal parts of the task.
        changes: task -> how many changes it makes; a run without kills sets it.
        codes: task -> exit code of each attempt.
        points: task -> the last line of each killed attempt.
    """

    seed: int
    kills: int = 1
    changes: dict[str, int] = field(default_factory=dict)
    codes: dict[str, list[int]] = field(default_factory=dict)
    points: dict[str, list[str]] = field(default_factory=dict)

    def run(self, command, *, log, folder, **options):
        """As `sandbox.run_container`; the folder is named after the attempt, its parents after the task."""
        task, attempt = folder.parents[1].name.partition("-")[2], int(folder.name)
        point = self._points(task)[attempt] if attempt < self.kills else 0
        command = [*command[:1], "-c", _WATCHED, str(point), *command[2:]]
        code = run_container(command, log=log, folder=folder, **options)
        self.codes.setdefault(task, []).append(code)
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()
        if point:
            last = next((line for line in reversed(said) if line.startswith("killed at")), "")
            self.points.setdefault(task, []).append(last)
        elif not self.kills:
            self.changes[task] = int(re.findall(r"^ended after (\d+) changes$", "\n".join(said), re.MULTILINE)[-1])
        return code

    def check(self, tasks):
        """Checks that every task was killed as often as wanted, and that its next attempt succeeded."""
        assert self.codes == {task: [128 + signal.SIGKILL] * self.kills + [0] for task in tasks}, self.points
        points = [point for each in self.points.values() for point in each]
        assert all(points), self.points
        assert len(set(points)) >= 3 * self.kills, self.points

    def _points(self, task):
        """The points of a task's attempts, in drawn order; the last part of a task ends after its last change."""
        draw = random.Random(f"{self.seed} {task}")
        most = self.changes.get(task, _MOST - 1) + 1
        ends = [most * part // self.kills for part in range(self.kills + 1)]
        points = [draw.randint(min(first + 1, most), last or 1) for first, last in itertools.pairwise(ends)]
        draw.shuffle(points)
        return points


def contents(pipeline):
    """Path -> digest of each file of a run's artifacts, without those that depend on where and when it ran."""
    found = {}
    for task, outputs in pipeline.outputs.items():
        for key, artifact in outputs["artifacts"].items():
            place = Path(folder_of(artifact["uri"], pipeline.environment.get("SHARDWRIGHT_MOUNTS", "/")))
            files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
            for file in files:
                if not any(file.match(name) for name in (*_OWN, _GRAPH_FINGERPRINT)):
                    found |= _digests(file, f"{task}/{key}/{file.relative_to(place)}")
    return found


def _digests(file, name):
    if file.match(_GRAPH):
        return {name: hashlib.sha256("\n".join(_without_numbers(file)).encode()).hexdigest()}
    if file.suffix != ".keras":
        return {name: hashlib.sha256(file.read_bytes()).hexdigest()}
    with zipfile.ZipFile(file) as archive:
        return {f"{name}/{part}": hashlib.sha256(archive.read(part)).hexdigest() for part in _KERAS}


def _without_numbers(file):
    """Lines of a graph, in any order, without the numbers of its functions."""
    graph = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    lines = str(graph).splitlines()
    assert len(lines) > 1000
    return sorted(re.sub(r"_\d+", "", line) for line in lines)
