"""`run.on_finish`: every run's end is reported once, with plain values."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from shardwright.errors import CheckFailed, UsageError
from shardwright.pipelines import run_local as local
from shardwright.pipelines.cli import main
from shardwright.pipelines.runs.summary import RunSummary

MINE = """
import json

def log(run):
    with open(run["root"] + "/finished.jsonl", "a") as file:
        file.write(json.dumps(run) + "\\n")

def fails(run):
    raise ValueError(run["state"])
"""
FACTS = {
    "metrics": {"accuracy": 0.75},
    "baseline": {},
    "epochs": [{"epoch": 1, "loss": 0.9, "metrics": {"accuracy": 0.5}}],
    "best_epoch": 1,
    "dataset": {"digest": "abc", "classes": ["a"], "records": {"train": 3}},
}


@pytest.fixture
def config(tmp_path, image_input, monkeypatch):
    """Writes a configuration with a hook and returns its file; `ending` replaces the run itself."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    raw = image_input(tmp_path / "in", layout="label_csv", images=4)

    def write(ending, hook="hook_of_test:log"):
        (tmp_path / "hook_of_test.py").write_text(MINE)
        (tmp_path / "photos.yaml").write_text(yaml.safe_dump({**raw, "run": {"space": "warn", "on_finish": hook}}))
        monkeypatch.setattr(local, "_run", ending)
        return "photos.yaml"

    yield write
    sys.modules.pop("hook_of_test", None)


def judged(*_):
    return RunSummary((("model", "NOT BLESSED"),), False, ("accuracy 0.75 is below 0.9",), FACTS)


def test_the_end_of_a_run_is_reported(config, tmp_path):
    assert local.run_local(config(judged), root="run") == 1

    def fails(*_):
        raise CheckFailed("the gate is shut")

    with pytest.raises(CheckFailed, match="the gate is shut"):
        local.run_local(config(fails), root="run")
    judged_run, failed = map(json.loads, (tmp_path / "run/finished.jsonl").read_text().splitlines())
    assert (judged_run["state"], judged_run["reasons"]) == ("not_blessed", ["accuracy 0.75 is below 0.9"])
    assert {name: judged_run[name] for name in FACTS} == FACTS
    assert (failed["state"], failed["reasons"]) == ("failed", ["the gate is shut"])
    common = {"name", "task", "state", "reasons", "seconds", "root", "config"}
    assert failed.keys() == common
    assert judged_run.keys() == {*common, *FACTS}
    assert failed["config"]["trainer"]["batch_size"] == 16
    assert Path(failed["root"]) == tmp_path / "run"


def test_a_hook_that_cannot_work_is_named(config, tmp_path, capsys):
    def never(*_):
        pytest.fail("the run has begun")

    for hook, message in (
        ("no_such_module:log", "run.on_finish: no_such_module cannot be imported (ModuleNotFoundError: "),
        ("hook_of_test:other", "run.on_finish: hook_of_test has no function 'other'"),
        ("log", "run.on_finish: 'log' is not an import path. Write package.module:function"),
    ):
        assert main(["run", config(never, hook), "--root", "run"]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"hook_of_test:fails failed \(ValueError: not_blessed\).*results .* complete"):
        local.run_local(config(judged, "hook_of_test:fails"), root="run")
    assert "not blessed: accuracy 0.75 is below 0.9" in capsys.readouterr().err
