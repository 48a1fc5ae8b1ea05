"""Ingest: killed at any moment it shows nothing or all, and resumes to the same bytes."""

import subprocess
import sys

import pytest
from ingesting import run, tree
from killing import KILL_AT_STEP

from shardwright.dataset import Dataset
from shardwright.errors import DatasetError

KILLED = (
    KILL_AT_STEP
    + """
import json
from shardwright import staging
from shardwright.config import parse_config
from shardwright.ingest import ingest
staging.RecordWriter.write = counted(staging.RecordWriter.write)
ingest(parse_config(json.loads(sys.argv[1]), base="/"), sys.argv[2], quiet=True)
print("done")
"""
)


@pytest.mark.slow
def test_a_killed_ingest_shows_nothing_and_resumes_to_the_same_bytes(tmp_path, image_input):
    import json

    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "whole")
    whole = tree(tmp_path / "whole")
    survived = False
    for moment in range(1, 400, 16):
        out = tmp_path / f"at-{moment}" / "out"
        out.parent.mkdir()
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, json.dumps(raw), str(out), str(moment)], capture_output=True, text=True
        )
        survived = "done" in killed.stdout
        assert survived or killed.returncode == -9, killed.stderr
        if not out.exists():
            with pytest.raises(DatasetError):
                Dataset.open(out)
        run(raw, out)
        assert tree(out) == whole
        left = {p.name for p in out.parent.iterdir()} - {"out"}
        assert left <= {".out.staging"}
        if survived:
            break
    assert survived
    assert moment > 100


def test_a_resumed_ingest_reads_no_finished_shard_again(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    from shardwright.ingest import run as module

    def stop_after_two(plan, staging, workers):
        done = write_all(plan, staging, workers)
        yield next(done)
        yield next(done)
        raise KeyboardInterrupt

    write_all = module._write_all
    monkeypatch.setattr(module, "_write_all", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(module, "_write_all", write_all)
    written = []
    write_shard = module.write_shard
    monkeypatch.setattr(module, "write_shard", lambda *args: written.append(args[0]) or write_shard(*args))
    resumed = run(raw, tmp_path / "out")
    assert len(written) == len(resumed.shards) - 2
    assert resumed == run(raw, tmp_path / "whole")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out", "whole"}
