"""A run that is interrupted says so, and the next one goes on from there."""

import re
import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from running import SHARDWRIGHT, run

from shardwright.sample import write_sample
from shardwright_components.image_trainer.history import read_history
from shardwright_components.image_trainer.run_fn import train_and_export
from shardwright_components.image_trainer.spec import TrainSpec
from shardwright_components.image_trainer.training_summary import read_summary

pytestmark = pytest.mark.slow


def said_until_the_second_epoch(process: "subprocess.Popen[str]") -> str:
    assert process.stderr
    said = ""
    for line in process.stderr:
        said += line
        if "epoch 2/" in line:
            break
    return said


def test_ctrl_c_while_training(tmp_path: Path) -> None:
    write_sample(str(tmp_path / "data"), images=30, height=64, width=96, seed=4, quiet=True)
    config = {
        "name": "small",
        "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
        "split": {"train": 0.6, "eval": 0.2, "test": 0.2},
        "transform": {"size": [32, 48]},
        "evaluator": {"min_dice": 0.0},
        "run": {"root": "root"},
    }
    quick = {"batch_size": 4, "width": 8}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump({**config, "trainer": {**quick, "epochs": 10_000}}))
    command = [SHARDWRIGHT, "run", "small.yaml"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in the background lets them ignore it, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        said = said_until_the_second_epoch(process)
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate()
    assert process.returncode == 130, said + rest
    assert "interrupted; run the same command again" in rest
    assert "Traceback" not in rest
    assert "ImageTransform" in out

    (tmp_path / "small.yaml").write_text(yaml.safe_dump({**config, "trainer": {**quick, "epochs": 1}}))
    again = run(tmp_path, "run", "small.yaml")
    assert again.code == 0, again.err
    assert {"ImageExampleGen", "StatisticsGen", "ImageTransform"} <= again.cached


def test_a_training_that_is_told_to_end_goes_on_in_the_next_run_to_the_same_weights(tmp_path: Path) -> None:
    write_sample(str(tmp_path / "data"), images=24, height=64, width=96, seed=4, quiet=True)
    config = {
        "name": "small",
        "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
        "split": {"train": 0.7, "eval": 0.15, "test": 0.15},
        "transform": {"size": [32, 48]},
        "loader": {"order": "exact"},
        "trainer": {"batch_size": 4, "width": 4, "epochs": 60, "checkpoint": {"every": 3}},
        "evaluator": {"min_dice": 0.0},
        "run": {"root": "root"},
    }
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(config))
    with subprocess.Popen(
        [SHARDWRIGHT, "run", "small.yaml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        said = said_until_the_second_epoch(process)
        # As Kubernetes tells a pod: its first process, and no other.
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate()
    assert process.returncode == 1, said + rest
    assert re.search(r"told to end \(SIGTERM\) and saved its state at step \d+ of \d+. Run it again", rest)
    assert "Traceback" not in rest

    again = run(tmp_path, "run", "small.yaml")
    assert again.code == 0, again.err
    assert {"ImageExampleGen", "StatisticsGen", "ImageTransform"} <= again.cached
    step = int(re.search(r"goes on from its checkpoint: step (\d+) of", again.err)[1])
    assert re.search(rf"saved its state at step {step} of", rest)
    (run_folder,) = (file.parent for file in tmp_path.glob("root/artifacts/Trainer/model_run/*/history.json"))
    assert read_summary(run_folder).resumed == [step]
    assert not list((tmp_path / "root/staging/training").glob("*"))

    # Nobody interrupts this one; it needs no pipeline around it.
    spec = TrainSpec.read(run_folder / "spec.json")
    whole = tmp_path / "whole"
    dataset = tmp_path / "root" / spec.dataset
    train_and_export(spec.recipe, dataset=dataset, run_folder=whole, export_folder=tmp_path / "export")
    assert read_summary(whole).weights == read_summary(run_folder).weights
    assert read_summary(whole).resumed == []
    assert read_history(whole) == read_history(run_folder)
