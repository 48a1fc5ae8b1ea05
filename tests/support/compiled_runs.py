"""A configuration for both targets, compiled and run in the emulator: each task, from the input to the pushed model."""

import os
import shutil
import sys

import yaml
from any_model import BLESSES_ANY
from emulator import Emulator
from sandbox import training_model

from shardwright.pipelines.cli import main
from shardwright.sample import write_sample

IMAGE = "registry.example/shardwright:1.0"
CONFIG = {
    "name": "clouds",
    "task": "segmentation",
    "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
    # Kept from, copied from and compared with the dataset of the newest blessed model, once there is one.
    "reuse_from": "blessed",
    "split": {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}, "keep_from": "blessed"},
    "gate": {"drift": {"reference": "blessed"}},
    "transform": {"size": [32, 48]},
    # A small model: most of the time of a short training goes into tracing and exporting one.
    "trainer": {"model": training_model(), "epochs": 1, "batch_size": 4},
    "evaluator": BLESSES_ANY,
    "vertex": {
        "project": "my-project",
        "region": "europe-west4",
        "pipeline_root": "gs://bucket/runs",
        "data_root": "gs://data",
        "push_directory": "gs://models/clouds",
        "image": IMAGE,
    },
    "kubeflow": {
        "image": IMAGE,
        "pipeline_root": "gs://bucket/runs",
        "data_root": "/data",
        "push_directory": "/models/clouds",
        "volumes": [{"claim": "data", "path": "/data"}, {"claim": "models", "path": "/models"}],
    },
}


def write_input(folder, **options):
    """Writes the sample and the configuration; `options` are keys of both targets."""
    write_sample(str(folder / "data"), images=20, height=64, width=96, seed=3)
    targets = {target: {**CONFIG[target], **options} for target in ("vertex", "kubeflow")}
    (folder / "clouds.yaml").write_text(yaml.safe_dump({**CONFIG, **targets}), encoding="utf-8")
    return folder


def compiled(home, target, monkeypatch):
    """Compiles the configuration in a folder; returns the document's file."""
    monkeypatch.chdir(home)
    # The image has the module of the model.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    document = home / f"{target}.{'json' if target == 'vertex' else 'yaml'}"
    assert main(["compile", "clouds.yaml", "--target", target, "--out", str(document)]) == 0
    return document


def emulated(home, document, place):
    """Returns the emulator of a document with an input of its own below `place`, and the parameters of its runs."""
    if document.suffix == ".json":
        shutil.copytree(home / "data", place / "gs" / "data")
        return Emulator.vertex(document, place, folders={"gs://": f"{place}/gs/"}), {}
    (place / "models").mkdir(parents=True)
    # The input lies elsewhere than the document says: a parameter of the run.
    shutil.copytree(home / "data", place / "data")
    folders = {"/models": f"{place}/models", "gs://": f"{place}/gs/"}
    return Emulator.kubeflow(document, place, folders=folders), {"data_root": str(place / "data")}
