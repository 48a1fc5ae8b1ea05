"""`retry-rejects`: fixed images are in the new dataset, written ones are copied; a second call changes nothing."""

import json
import shutil
from pathlib import Path

import pytest
from damage import swap_records
from ingesting import run, tree
from monthly import OLD, copied_of, picture, raw_of, write_months

from shardwright.errors import UsageError
from shardwright.ingest import run_ingest as running
from shardwright.pipelines.cli import main

BROKEN = ("cat/00.jpg", "cat/02.jpg", "dog/05.jpg")


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """An input with three broken files, its configuration, and its dataset `one`."""
    monkeypatch.chdir(tmp_path)
    write_months(tmp_path / "months")
    folder = tmp_path / "months" / "first"
    for key in BROKEN:
        (folder / key).write_bytes((folder / key).read_bytes()[:200])
    raw = {**raw_of(folder), "rejects": {"max_fraction": 0.5}}
    Path("flowers.yaml").write_text(json.dumps(raw))
    run(raw, "one")
    return raw, folder


def fix(folder):
    """One file is whole again, one is gone, one stays as it is."""
    (folder / BROKEN[0]).write_bytes(picture(0))
    (folder / BROKEN[1]).unlink()


def test_what_was_rejected_is_read_again(broken, capsys):
    raw, folder = broken
    fix(folder)
    call = ["retry-rejects", "flowers.yaml", "one", "--out", "two"]
    assert main([*call, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["key"], row["status"]) for row in found["retried"]] == list(
        zip(BROKEN, ("written", "gone", "rejected"), strict=True)
    )
    assert found["retried"][2]["was"] == found["retried"][2]["code"] != ""
    assert copied_of(found["notes"]) == (OLD - 3, 2)
    run(raw, "full")
    assert tree("two") == tree("full")
    before = tree("two")
    assert main(call) == 0
    output = capsys.readouterr().out
    assert tree("two") == before
    assert "two: 1 of 3 rejected inputs are written now (gone 1, rejected 1); fingerprint" in output
    assert "still rejected: dog/05.jpg: " in output


def test_a_dataset_is_not_made_within_the_one_that_it_goes_on_from(broken, capsys):
    raw, _ = broken
    before = tree("one")
    assert main(["retry-rejects", "flowers.yaml", "one", "--out", "one/deep/below"]) == 2
    assert "one/deep/below: is inside the dataset" in capsys.readouterr().err
    splits = {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}, "keep_from": str(Path("one").absolute())}
    with pytest.raises(UsageError, match=r"is inside the dataset"):
        run({**raw, "split": splits}, "one/below")
    assert tree("one") == before


def behind_the_plan(monkeypatch, change):
    """Lets something happen when all is planned and nothing is written."""
    write_all = running.map_processes

    def changed(*given):
        change()
        return write_all(*given)

    monkeypatch.setattr(running, "map_processes", changed)


def test_a_fixed_file_that_is_replaced_before_it_is_written_makes_no_dataset(broken, capsys, monkeypatch):
    raw, folder = broken
    fix(folder)
    with monkeypatch.context() as patch:
        behind_the_plan(patch, lambda: (folder / BROKEN[0]).write_bytes(picture(99)))
        assert main(["retry-rejects", "flowers.yaml", "one", "--out", "two"]) == 1
    assert "00.jpg: the file has changed while the run was reading the input" in capsys.readouterr().err
    assert not Path("two").exists()
    assert main(["retry-rejects", "flowers.yaml", "one", "--out", "two"]) == 0
    run(raw, "full")
    assert tree("two") == tree("full")


def swap_all():
    assert sum(swap_records(shard) for shard in Path("one").glob("Split-*/*")) > 2


CHANGES = {"records that changed places": swap_all, "nothing there any more": lambda: shutil.rmtree("one")}


@pytest.mark.parametrize("change", CHANGES)
def test_what_becomes_of_the_earlier_dataset_meanwhile_changes_nothing(broken, monkeypatch, change):
    raw, folder = broken
    # With raw pixels all records have one length.
    raw["images"] = {"encoding": "raw"}
    Path("flowers.yaml").write_text(json.dumps(raw))
    shutil.rmtree("one")
    run(raw, "one")
    fix(folder)
    run(raw, "full")
    behind_the_plan(monkeypatch, CHANGES[change])
    assert main(["retry-rejects", "flowers.yaml", "one", "--out", "two"]) == 0
    assert tree("two") == tree("full")


def test_impossible_calls_are_reported(broken, capsys):
    assert main(["retry-rejects", "flowers.yaml", "nowhere", "--out", "two"]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert main(["retry-rejects", "flowers.yaml", "one", "--out", "one"]) == 0
    fix(broken[1])
    assert main(["retry-rejects", "flowers.yaml", "one", "--out", "one"]) == 2
    assert "contains another dataset" in capsys.readouterr().err


def test_the_dataset_of_the_model_in_force_may_be_meant_before_there_is_one(broken, tmp_path, capsys):
    options = {"run": {"root": str(tmp_path / "root")}, "split": {"keep_from": "blessed"}, "reuse_from": "blessed"}
    Path("flowers.yaml").write_text(json.dumps({**broken[0], **options}))
    assert main(["retry-rejects", "flowers.yaml", "one", "--out", "two"]) == 0
    assert "0 of 3 rejected inputs are written now" in capsys.readouterr().out
