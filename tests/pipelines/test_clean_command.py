"""`clean`: what goes are old runs; what a blessed model descends from, and what is in use, stays."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from descent import Months, record_months

from shardwright.errors import DatasetError
from shardwright.pipelines.cli import main
from shardwright.pipelines.runs import clean_folder as clean
from shardwright.pipelines.runs import metadata_store
from shardwright.pipelines.runs.metadata_store import last_model, past_runs, steps_to
from shardwright.staging.staging import Staging
from shardwright.storage.locks import run_lock

STAGED = f"staging/tensorflow-1/{'a' * 64}/data"


@pytest.fixture(scope="module")
def made(small_dataset, tmp_path_factory):
    months = Months(tmp_path_factory.mktemp("months") / "run", small_dataset)
    record_months(months)
    Staging.open(months.root / STAGED.rpartition("/")[0].rpartition("/")[0], "a" * 64)
    for name in ("logs/1.log", "logs/2.log", STAGED, "staging/probed/probe-3.sqlite"):
        (months.root / name).parent.mkdir(parents=True, exist_ok=True)
        (months.root / name).write_text("x" * 10)
    return months.root


@pytest.fixture
def root(made, tmp_path):
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name != ".lock"}


def cleaned(capsys, *arguments, code=0):
    assert main(["clean", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_what_the_gate_stopped_goes_and_all_that_a_blessed_model_descends_from_stays(root, capsys):
    before = files(root)
    found = cleaned(capsys, root, "--keep", 1)
    old = ("/2/", "staging/tensorflow", "logs/1.log", "statistics/1/")
    gone = {name for name in before if any(part in name for part in old)}
    assert {name for name in gone if name.startswith("artifacts")}
    assert files(root) == before - gone
    assert found["runs"] == 4
    assert found["kept"] == 1
    assert "artifacts/ImageExampleGen/examples/1" in found["protected"]
    assert {Path(one["place"]).parts[0] for one in found["old"]} == {"artifacts", "staging", "logs"}
    assert found["bytes"] == sum(one["bytes"] for one in found["old"]) > 1000
    assert main(["lineage", str(root)]) == 0
    assert "was not found" not in capsys.readouterr().out
    again = cleaned(capsys, root, "--keep", 1)
    assert again["old"] == []


@pytest.mark.parametrize("recorded", ["here", "before it was moved"])
def test_the_addresses_that_a_run_with_workers_elsewhere_records_are_absolute(root, made, capsys, recorded):
    before, steps = files(root), steps_to(str(root), str(root / "pushed/3"))
    with contextlib.closing(sqlite3.connect(root / "metadata.sqlite")) as store, store:
        store.execute("UPDATE Artifact SET uri = ? || uri", (f"{root if recorded == 'here' else made}/",))
    cleaned(capsys, root, "--keep", 1)
    assert {name for name in before - files(root) if "/3/" in name or "/1/" in name} == {
        "artifacts/StatisticsGen/statistics/1/data"
    }
    assert steps_to(str(root), str(root / "pushed/3")) == steps
    assert last_model(str(root)) == str(root / "artifacts/Trainer/model/3")


def test_a_dry_run_only_lists(root, capsys):
    before = files(root)
    found = cleaned(capsys, root, "--keep", 1, "--dry-run")
    assert files(root) == before
    assert main(["clean", str(root), "--keep", "1", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert all(one["place"] in out for one in found["old"])
    assert f"1 of 4 runs kept; {len(found['old'])} places, " in out
    assert "would be removed" in out
    assert cleaned(capsys, root, "--keep", 1)["old"] == found["old"]


def test_all_runs_are_kept_where_there_are_no_more(root, capsys):
    before = files(root)
    cleaned(capsys, root, "--keep", 9)
    assert before - files(root) == {STAGED}


def test_a_superseded_model_goes_only_when_asked_for(root, capsys):
    (root / "pushed/3/lineage.json").unlink()
    shutil.copy(root / "pushed/1/lineage.json", root / "pushed/3/lineage.json")
    # The baseline model descends from dataset 1 alone now, and model 1 is not one of its ancestors.
    found = cleaned(capsys, root, "--keep", 1)
    assert (root / "pushed/1").is_dir()
    assert "pushed/1" in found["protected"]
    assert "pushed/1" in {one["place"] for one in cleaned(capsys, root, "--keep", 1, "--superseded")["old"]}
    assert not (root / "pushed/1").exists()
    assert (root / "pushed/3").is_dir()
    assert (root / "artifacts/ImageExampleGen/examples/1").is_dir()


@pytest.mark.slow
def test_staging_stays_where_the_last_run_would_go_on(small_dataset, tmp_path, capsys):
    months = Months(tmp_path / "run", small_dataset)
    record_months(months, ended="FAILED")
    step = months.root / "staging/training" / ("a" * 32) / "step"
    step.parent.mkdir(parents=True)
    step.write_text("x")
    cleaned(capsys, months.root, "--keep", 1)
    assert step.exists()
    assert not months.datasets[2].exists()


def test_staging_that_another_process_writes_stays(root, capsys):
    staging = Staging.open(root / "staging", "f" * 64)
    with staging.locked():
        assert f"staging/{'f' * 64}" not in {one["place"] for one in cleaned(capsys, root, "--keep", 1)["old"]}
    assert f"staging/{'f' * 64}" in {one["place"] for one in cleaned(capsys, root, "--keep", 1)["old"]}


def test_not_while_a_run_is_at_work(root, capsys):
    before = files(root)
    with run_lock(root):
        assert main(["clean", str(root), "--keep", "1"]) == 2
    assert "another run is active here" in capsys.readouterr().err
    assert files(root) == before


def test_a_kill_leaves_no_folder_by_half(root, capsys, monkeypatch):
    def killed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(clean, "remove_tree", killed)
    assert main(["clean", str(root), "--keep", "1"]) == 130
    monkeypatch.undo()
    going = list((root / "artifacts").rglob(".deleted-*"))
    assert len(going) > 1, "all new names come first, so that one flush is enough"
    cleaned(capsys, root, "--keep", 1)
    assert not list(root.rglob(".deleted-*"))


def test_names_are_on_the_disk_before_anything_is_deleted_and_after_it(root, capsys, monkeypatch):
    calls = []
    remove = clean.remove_tree
    monkeypatch.setattr(clean, "remove_tree", lambda folder: calls.append("delete") or remove(folder))
    monkeypatch.setattr(clean.durable, "flush", lambda paths: calls.append(set(paths)))
    old = [Path(one["place"]) for one in cleaned(capsys, root, "--keep", 1)["old"]]
    folders = {root / place.parent for place in old}
    assert calls == [folders, *["delete"] * (len(calls) - 2), folders]
    assert len(calls) > 3


def test_links_are_not_followed(root, tmp_path, capsys):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_text("x")
    (root / "artifacts/Trainer/model/77").symlink_to(tmp_path / "elsewhere")
    (root / "staging/link").symlink_to(tmp_path / "elsewhere")
    cleaned(capsys, root, "--keep", 1)
    assert (tmp_path / "elsewhere/file").exists()


def test_what_is_not_ours_stays(root, capsys):
    (root / "staging/notes.txt").write_text("mine")
    for name in ("photos", "training/photos", "tensorflow-course"):
        (root / "staging" / name).mkdir(parents=True)
    (root / "staging" / f".deleted-{'b' * 64}").mkdir()
    (root / "artifacts/Trainer/model/mine").mkdir()
    cleaned(capsys, root, "--keep", 1)
    assert (root / "staging/notes.txt").exists()
    for name in ("photos", "training/photos", "tensorflow-course"):
        assert (root / "staging" / name).is_dir()
    assert not (root / "staging" / f".deleted-{'b' * 64}").exists()
    assert (root / "artifacts/Trainer/model/mine").is_dir()


def test_what_is_no_folder_of_a_run(tmp_path, capsys):
    assert main(["clean", str(tmp_path), "--keep", "1"]) == 1
    assert "has no metadata.sqlite, so it is not the folder of a run" in capsys.readouterr().err
    (tmp_path / "metadata.sqlite").write_text("no database at all")
    assert main(["clean", str(tmp_path), "--keep", "1"]) == 1
    assert "no readable metadata store" in capsys.readouterr().err
    (tmp_path / "metadata.sqlite").write_bytes(b"")
    assert main(["clean", str(tmp_path), "--keep", "1"]) == 1
    assert "contains no run: the first one stopped at its start" in capsys.readouterr().err


def test_a_configuration_names_the_folder(root, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text("input: {images: x}\nrun: {root: run}\n")
    assert cleaned(capsys, "small.yaml", "--keep", 2, "--dry-run")["kept"] == 2
    assert main(["clean", str(root), "--keep", "0"]) == 2
    assert "--keep: 0 is too few" in capsys.readouterr().err


def test_the_store_has_runs_and_steps(made):
    runs = past_runs(str(made))
    assert [len(run.steps) for run in runs] == [5, 3, 5, 5]
    assert runs[1].steps[-1].component == "DataGate"
    steps = steps_to(str(made), str(made / "pushed/3"))
    assert [step.component for step in steps] == ["ImageExampleGen", "ImageTransform", "Trainer", "Pusher"]
    assert {step.state for step in steps} == {"COMPLETE"}
    assert steps_to(str(made), str(made / "pushed/9")) == []


@pytest.mark.parametrize(("model", "text"), [("3", ""), ("3", "{}"), ("3", None), ("1", None)])
def test_nothing_is_removed_if_the_lineage_of_a_pushed_model_is_missing(root, capsys, model, text):
    file = root / "pushed" / model / "lineage.json"
    file.unlink() if text is None else file.write_text(text)
    before = files(root)
    assert main(["clean", str(root), "--keep", "1", "--superseded"]) == 1
    assert f"pushed/{model}: the lineage of this model is missing" in capsys.readouterr().err
    assert files(root) == before


def test_nothing_goes_where_a_damaged_artifact_may_be_an_ancestor(root, capsys):
    (root / "artifacts/ImageTransform/transformed_examples/1/lineage.json").write_text("{}")
    before = files(root)
    assert main(["clean", str(root), "--keep", "1"]) == 1
    assert "transformed_examples/1: is damaged" in capsys.readouterr().err
    assert files(root) == before


def test_what_a_kill_left_hides_no_lineage(root, capsys):
    going = root / "artifacts/ImageExampleGen/examples/.deleted-2"
    (root / "artifacts/ImageExampleGen/examples/2").rename(going)
    (going / "manifest.json").unlink()
    shutil.rmtree(root / "artifacts/ImageTransform/transformed_examples/1")
    cleaned(capsys, root, "--keep", 1)
    assert not going.exists()


def test_folders_and_logs_of_a_user_stay(root, capsys):
    mine = ["pushed/notes/a.txt", "logs/notes.txt", "artifacts/ImageExampleGen/examples/.deleted-x/a"]
    for name in mine:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("mine")
    (root / "logs/0.log").symlink_to(root / "logs/notes.txt")
    cleaned(capsys, root, "--keep", 1, "--superseded")
    assert set(mine) <= files(root)
    assert (root / "logs/0.log").is_symlink()


def test_without_a_model_in_force_none_is_superseded(root, capsys):
    (root / "pushed/BLESSED.json").unlink()
    cleaned(capsys, root, "--keep", 1, "--superseded")
    assert (root / "pushed/1").is_dir()
    assert (root / "pushed/3").is_dir()


def test_what_the_last_runs_kept_their_splits_from_stays(root, capsys):
    # Without a pushed model, only the dataset of the last run names the first.
    shutil.rmtree(root / "pushed")
    cleaned(capsys, root, "--keep", 1)
    assert (root / "artifacts/ImageExampleGen/examples/1").is_dir()
    assert not (root / "artifacts/ImageExampleGen/examples/2").exists()


def test_a_store_after_a_power_cut_is_that_before_the_interrupted_transaction(made, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(metadata_store, "_LOCK_SECONDS", 0.05)
    runs = past_runs(str(made))
    live = shutil.copytree(made, tmp_path / "live")
    writer = sqlite3.connect(live / "metadata.sqlite", isolation_level=None)
    # The file changes before the transaction ends, as it does when there is more than fits into memory.
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    writer.execute("CREATE TABLE more AS SELECT a.*, zeroblob(5000) FROM Execution a, Execution b")
    writer.execute("UPDATE Execution SET last_known_state = 4")
    cut = shutil.copytree(live, tmp_path / "cut")
    assert (cut / "metadata.sqlite-journal").stat().st_size
    assert past_runs(str(cut)) == runs
    assert main(["lineage", str(cut)]) == 0, capsys.readouterr().err
    # The transaction of a run that is alive is not touched.
    with pytest.raises(DatasetError, match="locked by a run"):
        past_runs(str(live))
    writer.execute("ROLLBACK")
    assert past_runs(str(live)) == runs
