"""The look at the pixels before the plan runs on Beam's workers when a runner is given, and a retry goes on with it."""

import json

import pytest
from example_gen import execute, input_on, parameters
from ingesting import config, run, tree
from object_stores import running_stores

from shardwright.components.image_example_gen import executor
from shardwright.ingest import probe
from shardwright.ingest import probe as shared_parts
from shardwright.staging.staging import Staging

THREADS = ["--runner=DirectRunner", "--direct_running_mode=multi_threading", "--direct_num_workers=2"]
PROCESSES = ["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]


@pytest.fixture
def raw(tmp_path, image_input, monkeypatch):
    """Images, two of them the same picture in other files; a part has at most four of them."""
    monkeypatch.setattr(probe, "_FEWEST_AT_ONCE", 4)
    monkeypatch.setattr(probe, "readers", lambda root: 4)
    raw = image_input(tmp_path / "in", images=14)
    images = tmp_path / "in" / "images"
    (images / "013.jpg").write_bytes((images / "002.jpg").read_bytes() + b"more")
    (images / "005.jpg").write_bytes(b"\xff\xd8 no picture")
    duplicates = {"exact": "first", "pixels": "first", "near": {"max_distance": 2}}
    return {**raw, "images": {"verify": "full"}, "duplicates": duplicates, "rejects": {"max_fraction": 0.2}}


def counted(monkeypatch):
    """The parts that were looked at in this process."""
    seen = []

    def look(self, part):
        seen.append(part.begin)
        return original(self, part)

    original = probe.Look.__call__
    monkeypatch.setattr(probe.Look, "__call__", look)
    return seen


def test_workers_look_and_the_bytes_are_those_of_the_command_line(tmp_path, raw, monkeypatch):
    run(raw, tmp_path / "cli")
    properties = parameters(config(raw), monkeypatch, tmp_path / "staging")
    seen = counted(monkeypatch)
    monkeypatch.setattr(probe, "_spread", lambda *_: pytest.fail("looked without Beam"))
    artifact = execute(tmp_path / "examples" / "1", properties, THREADS)
    assert tree(artifact.uri) == tree(tmp_path / "cli")
    assert sorted(seen) == [0, 4, 8, 12]
    assert [place.name for place in (tmp_path / "staging").iterdir()] == ["probed"]
    assert json.loads((tmp_path / "cli/manifest.json").read_text())["totals"]["duplicate"] == 1


def test_a_retry_looks_only_at_what_is_missing(tmp_path, raw, monkeypatch):
    run(raw, tmp_path / "cli")
    properties = parameters(config(raw), monkeypatch, tmp_path / "staging")

    def dies(number, look, staging):
        if number == 2:
            raise RuntimeError("machine gone")
        shared_parts.look_at_part(number, look, staging)

    monkeypatch.setattr(executor, "look_at_part", dies)
    with pytest.raises(RuntimeError, match="machine gone"):
        execute(tmp_path / "examples" / "1", properties, THREADS)
    (place,) = (tmp_path / "staging").glob("*/look")
    there = sorted(place.glob("*.jsonl"))
    assert 0 < len(there) < 4
    there[0].write_text("damaged\n")
    monkeypatch.setattr(executor, "look_at_part", shared_parts.look_at_part)
    seen = counted(monkeypatch)
    artifact = execute(tmp_path / "examples" / "2", properties, THREADS)
    assert len(seen) == 4 - len(there) + 1, "the missing ones, and the damaged one"
    assert tree(artifact.uri) == tree(tmp_path / "cli")
    assert [place.name for place in (tmp_path / "staging").iterdir()] == ["probed"]


def test_results_that_no_worker_has_written_are_named(tmp_path, raw, monkeypatch):
    properties = parameters(config(raw), monkeypatch, tmp_path / "staging")
    monkeypatch.setattr(executor, "look_at_part", lambda number, look, staging: None)
    with pytest.raises(Exception, match="Beam's workers have not written it") as found:
        execute(tmp_path / "examples" / "1", properties, THREADS)
    assert type(found.value).__name__ == "CheckFailed"


def test_files_of_other_content_or_options_have_other_results(tmp_path):
    listing = probe.Listing("/in", ["a", "b"], ["a", "b"], [1, 2], [])
    parts, look = [probe.Part(0, listing, [True, True])], probe.Look(probe.ProbeCache(None), probe.ProbeOptions(100))
    names = {
        shared_parts.look_fingerprint("c", look, parts),
        shared_parts.look_fingerprint("d", look, parts),
        shared_parts.look_fingerprint("c", look, [probe.Part(0, listing, [True, False])]),
        shared_parts.look_fingerprint("c", probe.Look(look.cache, probe.ProbeOptions(101)), parts),
    }
    assert len(names) == 4
    assert probe.Part.from_text(parts[0].to_text()).to_text() == parts[0].to_text()
    staging = Staging.open(tmp_path, names.pop())
    assert shared_parts.share_parts(staging, parts) == [0]


@pytest.mark.slow
def test_workers_in_processes_look_on_a_bucket(tmp_path, raw, monkeypatch):
    run(raw, tmp_path / "cli")
    free = ("build.json", "lineage.json", "inputs.jsonl", "origins/inputs.jsonl")
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        properties = parameters(input_on(bucket, stores, tmp_path / "in", raw), monkeypatch, f"{bucket}/staging")
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        seen = counted(monkeypatch)
        artifact = execute(f"{bucket}/examples/1", properties, PROCESSES)
        assert seen == []
        files = (p for p in (tmp_path / "cli").rglob("*") if p.is_file() and p.name not in free)
        found = {name: data for name, data in stores.tree(artifact.uri).items() if name not in free}
        assert found == {str(p.relative_to(tmp_path / "cli")): p.read_bytes() for p in files}
        assert not stores.tree(f"{bucket}/staging")
