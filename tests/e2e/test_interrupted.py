"""A run that is interrupted says so, and the next one goes on from there."""

import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from running import SHARDWRIGHT, run

from shardwright.sample import write_sample

pytestmark = pytest.mark.slow


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
        assert process.stderr
        said = ""
        for line in process.stderr:
            said += line
            if "epoch 2/" in line:
                break
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
