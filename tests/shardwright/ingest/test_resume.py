"""Ingest: what is finished is not done again, what other runs left goes, what lives is let alone."""

from pathlib import Path

import pytest
from ingesting import run, tree

from shardwright.errors import UsageError
from shardwright.ingest.plan import PreparedIngest
from shardwright.staging import commit, staging
from shardwright.staging.staging import Staging


def test_a_resumed_ingest_reads_no_finished_shard_again(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    from shardwright.ingest import run_ingest as ingest_run
    from shardwright.ingest import write_shards as write

    def stop_after_two(*arguments):
        done = write_all(*arguments)
        yield next(done)
        yield next(done)
        raise KeyboardInterrupt

    write_all = ingest_run.map_processes
    monkeypatch.setattr(ingest_run, "map_processes", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(ingest_run, "map_processes", write_all)
    written = []
    write_shard = write.write_range
    monkeypatch.setattr(
        ingest_run, "write_range", lambda number, **given: written.append(number) or write_shard(number, **given)
    )
    resumed = run(raw, tmp_path / "out")
    assert len(written) == len(resumed.shards) - 2
    assert resumed == run(raw, tmp_path / "whole")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out", "whole"}


def test_a_kill_while_staging_is_deleted_leaves_no_part_of_it_to_an_attempt_with_another_output(
    tmp_path, image_input, monkeypatch
):
    """As on Vertex AI, where each attempt of a task has an output of its own, and all have one staging folder."""
    raw = {**image_input(tmp_path / "in"), "run": {"staging": str(tmp_path / "staging")}}
    delete, stage = staging.remove_tree, PreparedIngest.stage
    # Tasks in files, as for writers on other machines.
    monkeypatch.setattr(PreparedIngest, "stage", lambda prepared, staging, inherited: stage(prepared, staging))

    def deletes_a_part(folder):
        labels = sorted(Path(folder).glob("tasks-*/*.000000000.jsonl"))
        if not labels:
            delete(folder)
            return
        labels[0].unlink()
        delete(Path(folder, "done"))
        raise KeyboardInterrupt

    monkeypatch.setattr(staging, "remove_tree", deletes_a_part)
    with pytest.raises(KeyboardInterrupt):
        run(raw, tmp_path / "first")
    monkeypatch.setattr(staging, "remove_tree", delete)
    assert list((tmp_path / "staging").iterdir())
    run(raw, tmp_path / "second")
    assert tree(tmp_path / "second") == tree(tmp_path / "first")
    assert not (tmp_path / "staging").exists()


def test_what_was_left_before_the_last_step_goes_when_the_dataset_is_found(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    manifest = run(raw, tmp_path / "out")
    Staging.open(tmp_path / ".out.staging", manifest.fingerprint)
    (tmp_path / f".partial-{manifest.fingerprint[:16]}").mkdir()
    assert run(raw, tmp_path / "out") == manifest
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out"}


def test_what_a_run_of_another_configuration_left_next_to_the_output_goes(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    other = Staging.open(tmp_path / ".out.staging", "f" * 64)
    (tmp_path / f".partial-{'f' * 16}").mkdir()
    run(raw, tmp_path / "out")
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out"}
    other = Staging.open(tmp_path / ".out.staging", "f" * 64)
    with other.locked():
        run(raw, tmp_path / "out")
        assert Path(other.root).is_dir()


def test_a_staging_folder_that_others_use_keeps_what_is_theirs(tmp_path, image_input):
    raw = {**image_input(tmp_path / "in"), "run": {"staging": str(tmp_path / "staging")}}
    other = Staging.open(tmp_path / "staging", "f" * 64)
    run(raw, tmp_path / "out")
    assert [p.name for p in (tmp_path / "staging").iterdir()] == [other.fingerprint]


def test_the_loser_of_a_race_for_an_output_leaves_no_staging_folder(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    run({**raw, "split": {"salt": "other"}}, tmp_path / "other")
    publish = commit._publish

    def late(staging, plan, out, build):
        (tmp_path / "other").rename(out)
        return publish(staging, plan, out, build)

    monkeypatch.setattr(commit, "_publish", late)
    with pytest.raises(UsageError, match=r"out: contains another dataset"):
        run(raw, tmp_path / "out")
    assert {place.name for place in tmp_path.iterdir()} == {"in", "out"}
