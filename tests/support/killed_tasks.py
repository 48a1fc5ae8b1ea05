"""Faults in an emulated run: the first attempt of every task is killed at a point that a seed draws."""

import hashlib
import random
import signal
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import run_container

from shardwright.components.runtime.mounts import folder_of

# A point is a change of files: the n-th, or the end of the task if it makes fewer. Its outputs are then written, and
# no program was notified of them.
_MOST = 40
_KILLED = """# a module of shardwright.components
import os, runpy, signal, sys
left, module, sys.argv = int(sys.argv[1]), sys.argv[2], sys.argv[2:]

def ends(event, details):
    global left
    if event == "open" and isinstance(details[2], int):
        changes = details[2] & (os.O_WRONLY | os.O_RDWR)
    else:
        changes = event in ("os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")
    left -= bool(changes)
    if changes and left == 0:
        print("killed at", event, *details, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(ends)
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
finally:
    print("killed at the end,", left, "changes before its point", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
# Files that name the place, the time or the process of a run.
_OWN = ("location", "lineage.json", "training.json", "spec.json", "eval_config.json", "executor-logs-*", "events.out.*")
# In an archive of Keras the rest has dates and the numbers of objects.
_KERAS = ("model.weights.h5",)


@dataclass
class FirstAttemptsKilled:
    """Runs the commands of containers; the first attempt of each task is killed.

    Attributes:
        seed: of the points.
        codes: task -> exit code of each attempt.
        points: task -> the last line of its first attempt.
    """

    seed: int
    codes: dict[str, list[int]] = field(default_factory=dict)
    points: dict[str, str] = field(default_factory=dict)

    def run(self, command, *, log, folder, **options):
        """As `sandbox.run_container`; the folder is named after the attempt, its parents after the task."""
        task, first = folder.parents[1].name.partition("-")[2], folder.name == "0"
        if first:
            point = random.Random(f"{self.seed} {task}").randint(1, _MOST)
            command = [*command[:1], "-c", _KILLED, str(point), *command[2:]]
        code = run_container(command, log=log, folder=folder, **options)
        self.codes.setdefault(task, []).append(code)
        if first:
            said = log.read_text(encoding="utf-8", errors="replace").splitlines()
            self.points[task] = next((line for line in reversed(said) if line.startswith("killed at")), "")
        return code

    def check(self, tasks):
        """Checks that every task was killed once, and that its second attempt succeeded."""
        assert self.codes == {task: [128 + signal.SIGKILL, 0] for task in tasks}, self.points
        assert all(self.points.values()), self.points
        assert len({point.partition(",")[0] for point in self.points.values()}) > 3, self.points


def contents(pipeline):
    """Path -> digest of each file of a run's artifacts, without those that depend on where and when it ran."""
    found = {}
    for task, outputs in pipeline.outputs.items():
        for key, artifact in outputs["artifacts"].items():
            place = Path(folder_of(artifact["uri"], pipeline.environment.get("SHARDWRIGHT_MOUNTS", "/")))
            files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
            for file in files:
                if not any(file.match(name) for name in _OWN):
                    found |= _digests(file, f"{task}/{key}/{file.relative_to(place)}")
    return found


def _digests(file, name):
    if file.suffix != ".keras":
        return {name: hashlib.sha256(file.read_bytes()).hexdigest()}
    with zipfile.ZipFile(file) as archive:
        return {f"{name}/{part}": hashlib.sha256(archive.read(part)).hexdigest() for part in _KERAS}
