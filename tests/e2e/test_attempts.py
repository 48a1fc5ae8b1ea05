"""A task of a compiled pipeline that is killed, and the next attempt of it, in a pod that has nothing of the first."""

import signal

import pytest
import yaml
from emulator import RAN, Emulator
from sandbox import run_container

from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines.cli import main
from shardwright.sample import write_sample

pytestmark = pytest.mark.slow

CONFIG = {
    "name": "clouds",
    "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
    "shards": {"records": 3},
    "kubeflow": {
        "image": "registry.example/shardwright:1.0",
        "data_root": "/data",
        "push_directory": "/models/clouds",
        "volumes": [{"claim": "data", "path": "/data"}, {"claim": "models", "path": "/models"}],
    },
}
FINISHED = 2
# Runs a module; the process is killed when it has finished some shards, and says which shards it writes.
WATCHED = """# a module of shardwright.components
import os, runpy, signal, sys
from shardwright.staging.staging import Staging
last, sys.argv = int(sys.argv[1]), sys.argv[2:]
write, finished = Staging.write_shard, []

def watched(staging, planned, *more, **named):
    if staging.result(planned) is None:
        print("new", planned, flush=True)
    made = write(staging, planned, *more, **named)
    finished.append(planned)
    if len(finished) == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return made

Staging.write_shard = watched
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Pods:
    """Runs the commands of containers; the first one of a component is killed when it has finished some shards."""

    def __init__(self, component, staging):
        self.component, self.staging = component, staging
        self.codes, self.staged, self.logs = [], [], []

    def run(self, command, *, log, folder, **options):
        watched = any(part.endswith(f".{self.component}.executor.Executor") for part in command)
        if watched:
            last = 10**6 if self.codes else FINISHED
            command = [command[0], "-c", WATCHED, str(last), *command[2:]]
        code = run_container(command, log=log, folder=folder, **options)
        if not watched:
            return code
        self.codes.append(code)
        self.staged.append(len(list(self.staging.glob("*/done/*"))))
        self.logs.append(log.read_text())
        return code


def test_the_next_attempt_uses_the_shards_that_a_killed_one_finished(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample(str(tmp_path / "data"), images=20, height=64, width=96, seed=3)
    (tmp_path / "models").mkdir()
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    assert main(["compile", "clouds.yaml", "--target", "kubeflow", "--out", "k.yaml"]) == 0
    staging = tmp_path / "models" / ".shardwright-staging"
    pods = Pods("image_example_gen", staging)
    pipeline = Emulator.kubeflow("k.yaml", tmp_path / "home", folders={"/models": f"{tmp_path}/models"})
    pipeline.start = pods.run
    done = pipeline.run(until="ImageExampleGen", data_root=str(tmp_path / "data"))
    assert done == {"InputResolver": RAN, "ImageExampleGen": RAN}
    assert pods.codes == [128 + signal.SIGKILL, 0], pods.logs[-1]
    assert pods.staged[0] >= FINISHED
    new = sum(line.startswith("new PlannedShard") for line in pods.logs[1].splitlines())
    uri = pipeline.outputs["ImageExampleGen"]["artifacts"]["examples"]["uri"]
    dataset = ImageDataset.open(tmp_path / "home" / "mounts" / uri.replace("://", "/"))
    assert new == len(dataset.manifest.shards) - pods.staged[0]
    # When the dataset is whole, nothing is left on the volume.
    assert list(staging.iterdir()) == []
