"""ImageExampleGen between buckets: input, staging and artifact on an object store, Beam's workers in processes."""

import pytest
from example_gen import execute, input_on, parameters
from object_stores import running_stores

from shardwright.config import parse_config
from shardwright.ingest import ingest

FREE = ("build.json", "lineage.json", "inputs.jsonl", "origins/inputs.jsonl")
OPTIONS = ["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]


@pytest.mark.slow
def test_an_artifact_on_a_bucket_is_the_dataset_of_the_command_line(tmp_path, image_input, monkeypatch):
    raw = image_input(tmp_path / "in")
    ingest(parse_config(raw, base="/"), tmp_path / "cli", quiet=True)
    with running_stores() as stores:
        bucket = stores.bucket("gs")
        config = input_on(bucket, stores, tmp_path / "in", raw)
        properties = parameters(config, monkeypatch, f"{bucket}/staging")
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        artifact = execute(f"{bucket}/examples/1", properties, OPTIONS)
        assert artifact.split_names == '["eval", "test", "train"]'
        files = (p for p in (tmp_path / "cli").rglob("*") if p.is_file() and p.name not in FREE)
        found = {name: data for name, data in stores.tree(artifact.uri).items() if name not in FREE}
        assert found == {str(p.relative_to(tmp_path / "cli")): p.read_bytes() for p in files}
        assert not stores.tree(f"{bucket}/staging")
