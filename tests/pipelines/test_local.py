"""`run` around the pipeline: one run per root, schemas kept by content, our errors found behind Beam's."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardwright.config import parse_config
from shardwright.errors import CheckFailed, ConfigError, StorageError, UsageError
from shardwright.lineage import ancestry as places
from shardwright.lineage.blessing import Blessing
from shardwright.pipelines import graph_inputs as inputs
from shardwright.pipelines import run_local as local
from shardwright.pipelines.cli import main
from shardwright.pipelines.graph_inputs import resolve_inputs
from shardwright.pipelines.runs import logs
from shardwright.pipelines.runs.summary import RunSummary
from shardwright.storage.locks import run_lock


def test_only_one_run_in_a_root(tmp_path):
    with (
        run_lock(tmp_path),
        pytest.raises(UsageError, match="another run is active here"),
        run_lock(tmp_path),
    ):
        pass
    with run_lock(tmp_path):
        pass


def test_a_full_disk_is_reported_before_any_work(tmp_path, image_input, monkeypatch, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=6)
    (tmp_path / "full.yaml").write_text(yaml.safe_dump(raw))
    monkeypatch.chdir(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=1_000_000))
    with pytest.raises(StorageError, match=r"the run takes about 20\d MB in .*run, where 1 MB are free\. Free"):
        local.run_local("full.yaml", root="run")
    assert not (tmp_path / "run" / places.METADATA_FILE).exists()
    (tmp_path / "full.yaml").write_text(yaml.safe_dump({**raw, "run": {"space": "warn"}}))
    summary = RunSummary((("anomalies", "none"), ("model", "NOT BLESSED"), ("", "dice 0.1")), False, ("dice 0.1",))
    monkeypatch.setattr(local, "_run", lambda *arguments: summary)
    assert local.run_local("full.yaml", root="run") == 1
    assert "where 1 MB are free: too little by this estimate; the run starts" in capsys.readouterr().out
    assert main(["run", "full.yaml", "--root", "run", "--json"]) == 1
    made = json.loads(capsys.readouterr().out)
    assert (made["blessed"], made["reasons"]) == (False, ["dice 0.1"])
    assert made["summary"] == {"anomalies": ["none"], "model": ["NOT BLESSED", "dice 0.1"]}
    assert made["root"] == str(tmp_path / "run")

    def shut(*arguments: Any) -> RunSummary:
        raise CheckFailed("The data gate is shut: 1 anomaly.")

    monkeypatch.setattr(local, "_run", shut)
    assert main(["run", "full.yaml", "--root", "run", "--json"]) == 1
    made = json.loads(capsys.readouterr().out)
    assert (made["blessed"], made["reasons"]) == (False, ["The data gate is shut: 1 anomaly."])


def test_the_blessed_dataset_is_looked_up_and_the_root_checked_when_a_run_starts(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in", layout="label_csv", images=4)
    config = parse_config({**raw, "split": {"keep_from": "blessed"}}, base=str(tmp_path))
    # In a compiled pipeline, InputResolver does this.
    compiled = resolve_inputs(config, tmp_path / "x.yaml", hashed=False)
    assert (compiled.config.split.keep_from, compiled.fingerprint) == (None, "")
    assert not any("split.keep_from" in note for note in compiled.notes)
    prepared = resolve_inputs(config, tmp_path / "x.yaml")
    assert prepared.config.split.keep_from is None
    assert "split.keep_from: no dataset yet, since no model was ever blessed" in prepared.notes
    warm = replace(config, trainer=replace(config.trainer, warm_start="blessed"))
    assert (
        "trainer.warm_start: no model yet, since none was ever blessed"
        in resolve_inputs(warm, tmp_path / "x.yaml").notes
    )
    monkeypatch.setattr(inputs, "read_blessing", lambda folder: Blessing("1", "digest"))
    (begun,) = (note for note in resolve_inputs(warm, tmp_path / "x.yaml").notes if note.startswith("trainer."))
    assert begun.endswith("/pushed/1; other first weights are a new training, also for the same images")
    again = resolve_inputs(config, tmp_path / "x.yaml").notes
    # The files of a run below the images would be images of the next one, unless names with a dot hide them.
    images = Path(config.resolve(config.input.images))
    for root in (images, images / "runs" / "x"):
        placed = replace(config, run=replace(config.run, root=str(root)))
        with pytest.raises(ConfigError, match=r"^run\.root: .* is inside the input folder .* would become input"):
            resolve_inputs(placed, tmp_path / "x.yaml")
    hidden = replace(config, run=replace(config.run, root=str(images / ".runs")))
    assert resolve_inputs(hidden, tmp_path / "x.yaml").fingerprint == prepared.fingerprint
    assert "split.keep_from: none: the same input as the blessed model's, which makes the same dataset again" in again


def test_schemas_are_kept_under_their_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = local._write_schema("a"), local._write_schema("b")
    assert first != second
    assert first == local._write_schema("a")
    assert Path(first).read_text() == "a"
    assert not Path(first).is_absolute()


def test_an_error_of_ours_is_found_behind_another():
    ours = CheckFailed("3 of 10 images were rejected")
    wrapped = RuntimeError("Traceback ...\nCheckFailed: 3 of 10\n[while running 'Map']")
    wrapped.__cause__ = ours
    assert logs.shardwright_error(wrapped) is ours
    assert logs.last_line(wrapped) == "CheckFailed: 3 of 10"
    assert logs.shardwright_error(ValueError("other")) is None
    assert logs.last_line(ValueError()) == "(no message)"
