"""ImageExampleGen: the command line's bytes through Beam, an artifact that TFX reads, retries that reuse shards."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from example_gen import execute, parameters
from recording import mask_png, reading, record, write_records
from tfx.components.statistics_gen import executor as statistics_executor
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils, standard_artifacts

from shardwright.components.image_example_gen.component import ImageExampleGen
from shardwright.config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, UsageError
from shardwright.ingest import example, ingest, ingest_recipe, input_fingerprint, locate
from shardwright.ingest import write_shards as write
from shardwright.ingest.identify import IngestSource
from shardwright.lineage.record import read_lineage


def tree(root):
    free = ("build.json", "lineage.json", "inputs.jsonl")
    files = [p for p in Path(root).rglob("*") if p.is_file() and p.name not in free]
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.fixture
def prepared(tmp_path, image_input, monkeypatch):
    """A configuration, ImageExampleGen's parameters for it, and the environment that a run sets."""
    config = parse_config(image_input(tmp_path / "in"), base="/")
    return config, parameters(config, monkeypatch, tmp_path / "staging")


def test_the_artifact_is_the_dataset_of_the_command_line(tmp_path, prepared):
    config, properties = prepared
    manifest = ingest(config, tmp_path / "cli", quiet=True)
    artifact = execute(tmp_path / "examples" / "1", properties)
    assert tree(artifact.uri) == tree(tmp_path / "cli")
    assert artifact.split_names == '["eval", "test", "train"]'
    assert artifact.get_string_custom_property("payload_format") == "FORMAT_TF_EXAMPLE"
    assert not artifact.has_custom_property("file_format")
    assert artifact.get_string_custom_property("dataset_fingerprint") == manifest.fingerprint
    lineage = read_lineage(artifact.uri)
    assert lineage["kind"] == "ingest"
    assert lineage["parents"] == {"input": properties["input_fingerprint"]}
    assert not list((tmp_path / "staging").iterdir())


def test_records_of_an_earlier_dataset_are_copied_without_a_parameter(tmp_path, prepared, monkeypatch, capsys):
    config, properties = prepared
    ingest(config, tmp_path / "earlier", quiet=True)
    with_it = replace(config, reuse_from=str(tmp_path / "earlier"))
    assert ingest_recipe(with_it, ("Fish",)) == ingest_recipe(config, ("Fish",))
    assert input_fingerprint(with_it, locate(with_it)) == properties["input_fingerprint"]
    monkeypatch.setenv("SHARDWRIGHT_INPUT", json.dumps(vars(locate(with_it))))
    monkeypatch.setattr("shardwright.ingest.copying.read_each", lambda *arguments: iter(()))
    artifact = execute(tmp_path / "examples" / "1", properties)
    assert tree(artifact.uri) == tree(tmp_path / "earlier")
    count = sum(shard.records for shard in ImageDataset.open(artifact.uri).manifest.shards)
    note = f"{count} of {count} images copied from {tmp_path / 'earlier'}, 0 read"
    assert note in capsys.readouterr().out
    # What is published has no folder of this machine.
    public = f"{count} of {count} images copied from …/earlier, 0 read"
    assert public in json.loads(Path(artifact.uri, "build.json").read_text())["notes"]


@pytest.mark.slow
def test_processes_write_the_same_bytes(tmp_path, prepared):
    config, properties = prepared
    ingest(config, tmp_path / "cli", quiet=True)
    options = ["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    artifact = execute(tmp_path / "examples" / "1", properties, options)
    assert tree(artifact.uri) == tree(tmp_path / "cli")


def test_the_location_may_be_a_parameter(tmp_path, prepared, monkeypatch):
    config, properties = prepared
    shutil.copytree(tmp_path / "in", tmp_path / "moved")
    monkeypatch.delenv("SHARDWRIGHT_INPUT")
    with pytest.raises(UsageError, match="neither input_location nor SHARDWRIGHT_INPUT"):
        execute(tmp_path / "1", properties)
    with pytest.raises(UsageError, match="'/data', not JSON"):
        execute(tmp_path / "2", {**properties, "input_location": "/data"})
    location = {"images": str(tmp_path / "moved/images"), "labels": str(tmp_path / "moved/labels.csv")}
    artifact = execute(tmp_path / "3", {**properties, "input_location": json.dumps(location)})
    ingest(config, tmp_path / "cli", quiet=True)
    assert tree(artifact.uri) == tree(tmp_path / "cli")


def test_without_a_staging_folder_the_components_own_is_used(tmp_path, prepared, monkeypatch):
    config, properties = prepared
    monkeypatch.delenv("SHARDWRIGHT_STAGING")
    artifact = execute(tmp_path / "1", properties)
    ingest(config, tmp_path / "cli", quiet=True)
    assert tree(artifact.uri) == tree(tmp_path / "cli")


def test_input_with_other_content_is_refused(tmp_path, prepared):
    _, properties = prepared
    table = tmp_path / "in" / "labels.csv"
    table.write_text(table.read_text() + "\n")
    with pytest.raises(CheckFailed, match="the input has changed since the run began"):
        execute(tmp_path / "1", properties)
    assert list((tmp_path / "1").iterdir()) == []


def test_a_retry_reuses_what_a_failed_attempt_staged(tmp_path, prepared, monkeypatch):
    config, properties = prepared
    whole = ingest(config, tmp_path / "cli", quiet=True)
    example_values = example.example_values
    encoded = []

    def failing(spec, job):
        if len(encoded) == 15:
            raise RuntimeError("machine gone")
        return watching(spec, job)

    def watching(spec, job):
        encoded.append(job.file.key)
        return example_values(spec, job)

    monkeypatch.setattr(write, "example_values", failing)
    with pytest.raises(RuntimeError, match="machine gone"):
        execute(tmp_path / "1", properties)
    assert list((tmp_path / "1").iterdir()) == []
    finished = []
    for file in (tmp_path / "staging").glob("*/done/*.json"):
        shard = json.loads(file.read_text())["info"]["path"]
        index = file.parents[1] / "index" / Path(shard).with_suffix(".jsonl")
        finished += [json.loads(line)["key"] for line in index.read_text().splitlines()]
    assert 0 < len(finished) <= 15

    encoded.clear()
    monkeypatch.setattr(write, "example_values", watching)
    artifact = execute(tmp_path / "2", properties)
    assert sorted([*encoded, *finished]) == [f"{number:03d}.jpg" for number in range(24)]
    assert ImageDataset.open(artifact.uri).manifest == whole
    assert tree(artifact.uri) == tree(tmp_path / "cli")


def test_too_many_rejects_leave_the_artifact_empty(tmp_path, prepared):
    config, properties = prepared
    for number in range(11):
        (tmp_path / "in" / "images" / f"{number:03d}.jpg").write_bytes(b"BM")
    properties["input_fingerprint"] = input_fingerprint(config, locate(config))
    with pytest.raises(CheckFailed, match="11 of 24 inputs were rejected"):
        execute(tmp_path / "1", properties)
    assert list((tmp_path / "1").iterdir()) == []


@pytest.mark.slow
def test_statistics_gen_reads_the_artifact(tmp_path, prepared):
    from tensorflow_data_validation.utils.stats_util import load_stats_binary

    _, properties = prepared
    examples = execute(tmp_path / "1", properties)
    statistics = standard_artifacts.ExampleStatistics()
    statistics.uri = str(tmp_path / "statistics")
    context = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path / "tmp"), unique_id="1")
    statistics_executor.Executor(context).Do(
        {"examples": [examples]}, {"statistics": [statistics]}, {"exclude_splits": "[]"}
    )
    dataset = ImageDataset.open(examples.uri)
    for split in artifact_utils.decode_split_names(examples.split_names):
        read = load_stats_binary(str(tmp_path / "statistics" / f"Split-{split}" / "FeatureStats.pb")).datasets[0]
        assert read.num_examples == dataset.num_records(split)
        assert {".".join(f.path.step) for f in read.features} == set(dataset.manifest.features)


def test_the_cache_key_holds_no_path(tmp_path, prepared):
    _, properties = prepared
    component = ImageExampleGen.of_source(IngestSource(properties["input_fingerprint"], properties["recipe"]))
    assert component.exec_properties == properties
    assert str(tmp_path) not in json.dumps(component.exec_properties)
    assert component.outputs["examples"].type is standard_artifacts.Examples


@pytest.mark.slow
def test_compressed_records_are_unpacked_for_processes_of_beam(tmp_path, monkeypatch):
    values = [[0, 1, 1, 2], [0, 0, 2, 2], [1, 1, 1, 1]]
    masks = [mask_png([[values[i % 3][column // 3] for column in range(12)]] * 10) for i in range(20)]
    payloads = [record(i, key=b"%d" % i, mask=mask) for i, mask in enumerate(masks)]
    write_records(tmp_path / "in/a.tfrecord.gz", payloads[:12], "gzip")
    write_records(tmp_path / "in/b.tfrecord", payloads[12:])
    config = parse_config(reading(tmp_path / "in", "segmentation"), base="/")
    manifest = ingest(config, tmp_path / "cli", quiet=True)
    assert manifest.classes == ("1", "2")
    monkeypatch.setenv("SHARDWRIGHT_INPUT", json.dumps(vars(locate(config))))
    monkeypatch.setenv("SHARDWRIGHT_STAGING", str(tmp_path / "staging"))
    properties = {
        "input_fingerprint": input_fingerprint(config, locate(config)),
        "recipe": ingest_recipe(config, manifest.classes),
        "input_location": "",
    }
    options = ["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    artifact = execute(tmp_path / "examples" / "1", properties, options)
    assert tree(artifact.uri) == tree(tmp_path / "cli")
