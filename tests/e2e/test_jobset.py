"""The Trainer on a slice of two hosts: its pod starts a JobSet, whose pods train together, and files the model."""

import json
import os
import sys

import pytest
import yaml
from any_model import BLESSES_ANY
from clusters import FakeCluster
from emulator import RAN, Emulator
from kubernetes_rules import check_jobset
from sandbox import training_model

from shardwright.components.image_trainer.training.history import read_summary
from shardwright.components.runtime.run_jobset import PROXY_VARIABLE
from shardwright.pipelines.cli import main
from shardwright.sample import write_sample

pytestmark = pytest.mark.slow

CONFIG = {
    "name": "clouds",
    "task": "segmentation",
    "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
    "split": {"ratios": {"train": 0.8, "eval": 0.2}},
    "transform": {"size": [32, 32]},
    "trainer": {
        "model": training_model(),
        "epochs": 1,
        "batch_size": 8,
        "hosts": 2,
    },
    "evaluator": {**BLESSES_ANY, "split": "eval"},
    "kubeflow": {
        "image": "registry.example/shardwright:1.0",
        "data_root": "/data",
        "push_directory": "/models/clouds",
        "volumes": [{"claim": "data", "path": "/data"}, {"claim": "models", "path": "/models"}],
        "trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x4"},
    },
}


def test_two_hosts_train_and_the_pipeline_has_one_model(tmp_path, monkeypatch, capsys):
    write_sample(str(tmp_path / "data"), images=20, height=64, width=64, seed=3)
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # The image has the module of the model.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    assert main(["compile", "clouds.yaml", "--target", "kubeflow", "--out", "k.yaml"]) == 0
    assert "Trainer starts a JobSet of 2 pods" in capsys.readouterr().out
    # The document insists on the TPU; virtual devices of a CPU take its place here.
    text = (tmp_path / "k.yaml").read_text(encoding="utf-8")
    assert text.count('"accelerator": "tpu"') == 1
    (tmp_path / "k.yaml").write_text(text.replace('"accelerator": "tpu"', '"accelerator": "cpu"'), encoding="utf-8")
    (tmp_path / "volume").mkdir()
    kubernetes = FakeCluster(logs=tmp_path / "pods", environment={"SHARDWRIGHT_CPU_DEVICES": "4"})
    manifests = []
    start = kubernetes.start
    monkeypatch.setattr(kubernetes, "start", lambda manifest: (manifests.append(manifest), start(manifest)))
    with kubernetes.serving() as url:
        folders = {"/models": str(tmp_path / "volume")}
        pipeline = Emulator.kubeflow(tmp_path / "k.yaml", tmp_path / "home", folders=folders)
        pipeline.environment[PROXY_VARIABLE] = url
        done = pipeline.run(until="Trainer", data_root=str(tmp_path / "data"))
        said = "".join(log.read_text() for log in (tmp_path / "pods").glob("*.log"))
        assert done["Trainer"] == RAN, said
    (manifest,) = manifests
    check_jobset(manifest)
    assert kubernetes.made == {}

    model, run = (pipeline.outputs["Trainer"]["artifacts"][key]["uri"] for key in ("model", "model_run"))
    # As Kubeflow's launcher knows the place, not as the volume of the set does.
    assert model.startswith("minio://")
    mounts = tmp_path / "home" / "mounts" / "minio"
    assert (mounts / model.removeprefix("minio://") / "Format-Serving" / "saved_model.pb").is_file()
    summary = read_summary(mounts / run.removeprefix("minio://"))
    assert (summary.backend, summary.hosts, summary.devices) == ("jax", 2, 8)
    lineage = json.loads((mounts / model.removeprefix("minio://") / "lineage.json").read_text(encoding="utf-8"))
    assert lineage["kind"] == "model"
    # The set's own folder is gone, and so are the checkpoints.
    assert not [path for path in (tmp_path / "volume").rglob("*") if path.is_file()]
