"""A run that is interrupted says so, and the next one goes on from there."""

import dataclasses
import re
import shutil
import signal
import subprocess
from pathlib import Path

import own_models
import pytest
import yaml
from any_model import BLESSES_ANY
from running import SHARDWRIGHT, Run, run
from training import trained

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.training.history import read_history, read_summary
from shardwright.sample import write_sample

pytestmark = pytest.mark.slow


def interrupted(folder: Path, number: signal.Signals) -> Run:
    """Starts `shardwright run`, and gives its first process, and no other, a signal after an epoch that is new.

    A training that continues first shows the last epoch of its checkpoint.
    """
    with subprocess.Popen(
        [SHARDWRIGHT, "run", "small.yaml"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in the background lets them ignore it, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stderr
        said, epochs = "", set()
        for line in process.stderr:
            said += line
            epochs |= set(re.findall(r"epoch (\d+)/", line))
            if len(epochs) == 2:
                break
        process.send_signal(number)
        # Not by `communicate`, which knows nothing of the lines that were read along with that one.
        rest = process.stderr.read()
        assert process.stdout
        out = process.stdout.read()
    print(out, said + rest)
    return Run(process.returncode, out, said + rest)


def test_a_training_goes_on_after_ctrl_c_and_after_it_was_told_to_end_to_the_same_weights(tmp_path: Path) -> None:
    shutil.copy(own_models.__file__, tmp_path)
    write_sample(str(tmp_path / "data"), images=24, height=64, width=96, seed=4, quiet=True)
    config = {
        "name": "small",
        "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
        "split": {"ratios": {"train": 0.7, "eval": 0.15, "test": 0.15}},
        "transform": {"size": [32, 48]},
        "loader": {"order": "exact"},
        # Enough small epochs that the end does not come before the signal.
        "trainer": {"model": "own_models:normed", "batch_size": 4, "epochs": 40, "checkpoint": {"every": 3}},
        "evaluator": BLESSES_ANY,
        "run": {"root": "root"},
    }
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(config))
    first = interrupted(tmp_path, signal.SIGINT)
    assert first.code == 130, first.err
    assert "interrupted; run the same command again" in first.err
    assert "Traceback" not in first.err
    assert "ImageTransform" in first.nodes

    # As Kubernetes tells a pod: its first process, and no other.
    second = interrupted(tmp_path, signal.SIGTERM)
    assert second.code == 143, second.err
    assert {"ImageExampleGen", "StatisticsGen", "ImageTransform"} <= second.cached
    assert re.search(r"stopped \(SIGTERM\) and saved its state at step \d+ of \d+. Run it again", second.err)
    assert "Traceback" not in second.err

    again = run(tmp_path, "run", "small.yaml")
    assert again.code == 0, again.err
    assert {"ImageExampleGen", "StatisticsGen", "ImageTransform"} <= again.cached
    steps = [int(re.search(r"continues from its checkpoint: step (\d+) of", one.err)[1]) for one in (second, again)]
    assert re.search(rf"saved its state at step {steps[1]} of", second.err)
    (run_folder,) = (file.parent for file in tmp_path.glob("root/artifacts/Trainer/model_run/*/history.json"))
    assert read_summary(run_folder).resumed == steps
    assert not list((tmp_path / "root/staging/training").glob("*"))

    # Nobody interrupts this one; it needs no pipeline around it.
    spec = TrainSpec.read(run_folder / "spec.json")
    whole, dataset = tmp_path / "whole", tmp_path / "root" / spec.dataset
    whole.mkdir()
    summary = trained(
        dataclasses.replace(spec, dataset=str(dataset), output=str(whole), checkpoints=str(whole / "checkpoints"))
    )
    assert summary.weights == read_summary(run_folder).weights
    assert summary.resumed == []
    assert read_history(whole) == read_history(run_folder)
