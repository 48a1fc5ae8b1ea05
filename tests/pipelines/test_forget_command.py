"""`forget`: a dataset without a word of some images; what else knows them goes, or is named."""

import json
import os
import shutil
import sqlite3

import pytest
from descent import Months, record_months
from google.protobuf import text_format
from ingesting import ledger, run
from object_stores import forget_clients
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from shardwright.dataset.reader import ImageDataset
from shardwright.edit.delete import delete_probe_rows, files_naming
from shardwright.errors import StorageError
from shardwright.ingest import known_files
from shardwright.ingest.known_files import cache_file
from shardwright.lineage.record import write_lineage
from shardwright.pipelines.cli import main
from shardwright.staging import staged
from shardwright.staging.staging import Staging
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.locks import run_lock
from shardwright.verify import verify


@pytest.fixture(scope="module")
def source(small_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("source")
    return small_dataset(root, task="classification", counts={"train": [20], "eval": [10]})


def made(arguments, capsys):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def whole(root):
    report = verify(root, workers=1, deep=True, quiet=True)
    assert report.findings == ()


def test_what_is_forgotten_is_nowhere(source, tmp_path, capsys):
    (tmp_path / "keys").write_text("train/0013\n")
    made(["forget", source, "--keys", tmp_path / "keys", "--out", tmp_path / "rest"], capsys)
    whole(tmp_path / "rest")
    assert "train/0013" not in ledger(tmp_path / "rest")
    for file in (tmp_path / "rest").rglob("*"):
        if file.is_file():
            assert b"train/0013" not in file.read_bytes()
    (tmp_path / "keys").write_text("no/such\n")
    assert main(["forget", str(source), "--keys", str(tmp_path / "keys"), "--out", str(tmp_path / "x")]) == 2
    assert "not in the dataset: 1 of 1 key, e.g. no/such" in capsys.readouterr().err
    (tmp_path / "keys").write_text("k" * 100_000)
    assert main(["forget", str(source), "--keys", str(tmp_path / "keys"), "--out", str(tmp_path / "x")]) == 2
    assert len(capsys.readouterr().err) < 1000


def test_a_staging_place_that_cannot_be_looked_into_is_refused_before_anything_is_made(
    source, tmp_path, monkeypatch, capsys
):
    (tmp_path / "keys").write_text("train/0013\n")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    command = ["forget", str(source), "--keys", str(tmp_path / "keys"), "--out", str(tmp_path / "rest"), "--staging"]
    forget_clients()
    try:
        assert main([*command, "gs://bucket/staging"]) == 2
    finally:
        forget_clients()
    assert "gs://bucket: no valid Google credentials" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "absent")]) == 2
    assert "absent is not a folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]


def test_a_ledger_has_no_trace_of_forgotten_images(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=12)
    (tmp_path / "in/images/003.jpg").write_bytes((tmp_path / "in/images/001.jpg").read_bytes())
    (tmp_path / "in/images/005.jpg").write_bytes(b"broken")
    run({**raw, "duplicates": {"exact": "first"}}, tmp_path / "ds", workers=1)
    (tmp_path / "keys").write_text("001.jpg\n005.jpg\n")
    made(["forget", tmp_path / "ds", "--keys", tmp_path / "keys", "--out", tmp_path / "rest"], capsys)
    whole(tmp_path / "rest")
    assert ledger(tmp_path / "rest")["003.jpg"].reason == "concerns an image that was forgotten"
    command = ["forget", tmp_path / "ds", "--keys", tmp_path / "keys", "--out"]
    found = made([*command, tmp_path / "rest"], capsys)
    assert (found["other_keys"], found["held_by"], found["named_in"]) == (["003.jpg"], [str(tmp_path / "ds")], [])
    # The dropped one of two equal files: the dataset has no table of its inputs, but its ledger names the kept one.
    (tmp_path / "keys").write_text("003.jpg\n005.jpg\n")
    found = made([*command, tmp_path / "dropped"], capsys)
    assert found["other_keys"] == ["001.jpg"]
    assert found["held_by"] == [str(tmp_path / name) for name in ("dropped", "ds")]
    (tmp_path / "keys").write_text("005.jpg\n")
    found = made([*command, tmp_path / "rejected"], capsys)
    # Only the ledgers name an image that was rejected.
    assert (found["held_by"], found["models"]) == ([], [])
    assert found["named_in"] == [str(tmp_path / "ds")]
    for file in (tmp_path / "rest").rglob("*"):
        assert not file.is_file() or not {b"001.jpg", b"005.jpg"} & set(file.read_bytes().split(b'"'))
    made(["reshard", tmp_path / "ds", "--out", tmp_path / "same", "--shard-count", 1], capsys)
    assert ledger(tmp_path / "same")["005.jpg"].status == "rejected"


def test_copies_under_other_keys_are_found(image_input, tmp_path, capsys):
    """A folder that was renamed gives its images other keys, and a dataset may keep two files of the same bytes."""
    raw = image_input(tmp_path / "in", layout="label_csv", images=12)
    images, table = tmp_path / "in/images", tmp_path / "in/labels.csv"
    run(raw, tmp_path / "first", workers=1)
    (images / "001.jpg").rename(images / "renamed.jpg")
    shutil.copy(images / "renamed.jpg", images / "003.jpg")
    table.write_text(table.read_text().replace("001.jpg", "renamed.jpg"))
    run(raw, tmp_path / "second", workers=1)
    broken = shutil.copytree(tmp_path / "second", tmp_path / "broken")
    for file in broken.glob("Split-*/*"):
        file.write_bytes(b"cut")
    (tmp_path / "keys").write_text("renamed.jpg\n")
    command = ["forget", tmp_path / "second", "--keys", tmp_path / "keys", "--out", tmp_path / "rest"]
    found = made([*command, "--search", tmp_path], capsys)
    assert {str(tmp_path / name) for name in ("first", "second")} <= set(found["held_by"])
    assert found["other_keys"] == ["003.jpg"]
    assert found["unreadable"] == [str(broken)]
    assert main([*map(str, command)]) == 0
    shown = capsys.readouterr().out
    assert f"still in {tmp_path}/rest, under another key: delete that dataset, and call forget again with all" in shown


def test_measurements_and_staged_shards_are_deleted(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=8)
    raw |= {
        "images": {"verify": "full"},
        "duplicates": {"pixels": "keep"},
        "run": {"staging": str(tmp_path / "staging")},
    }
    run(raw, tmp_path / "ds", workers=1)
    cache = cache_file(str(tmp_path / "staging/probed"))

    def rows():
        with sqlite3.connect(cache) as connection:
            return connection.execute("SELECT count(*) FROM probed").fetchone()[0]

    assert rows() == 8
    Staging.open(tmp_path / "staging", "f" * 64).path("Split-train").mkdir()
    for name in ("mine", "training/mine", "tensorflow-course", f"training/{'a' * 32}", f"tensorflow-2/{'b' * 64}"):
        (tmp_path / "staging" / name).mkdir(parents=True)
    (tmp_path / "keys").write_text("001.jpg\n005.jpg\n")
    command = ["forget", tmp_path / "ds", "--keys", tmp_path / "keys", "--out", tmp_path / "rest"]
    with Staging.open(tmp_path / "staging", "f" * 64).locked():
        assert main([*map(str, command), "--staging", str(tmp_path / "staging")]) == 2
    assert "another run is active there" in capsys.readouterr().err
    found = made([*command, "--staging", tmp_path / "staging"], capsys)
    assert (found["probe_rows"], rows()) == (2, 6)
    ours = ["f" * 64, f"tensorflow-2/{'b' * 64}", f"training/{'a' * 32}"]
    assert found["staged"] == [str(tmp_path / "staging" / name) for name in ours]
    assert {path.name for path in (tmp_path / "staging").iterdir()} == {
        "mine",
        "training",
        "tensorflow-course",
        "probed",
    }
    assert (tmp_path / "staging/training/mine").is_dir()
    assert main([*map(str, command), "--staging", str(tmp_path / "none")]) == 2
    assert "is not a folder. Give the folder of run.staging" in capsys.readouterr().err
    assert main([*map(str, command[:-1]), str(tmp_path / "late"), "--search", str(tmp_path / "none")]) == 2
    assert "--search: " in capsys.readouterr().err
    assert not (tmp_path / "late").exists()
    assert found["held_by"] == [str(tmp_path / "ds")]
    again = made([*command, "--staging", tmp_path / "staging"], capsys)
    assert (again["existed"], again["probe_rows"], again["staged"]) == (True, 0, [])


def test_measurements_that_cannot_be_deleted_end_it(tmp_path, monkeypatch):
    monkeypatch.setattr(known_files, "_SECONDS_TO_WAIT", 0.01)
    contents = [b"1" * 32, b"2" * 32]
    row = known_files.ProbeRow(None, None, None, "code", "reason")
    known_files.ProbeCache.open(str(tmp_path / "probed")).keep(dict.fromkeys(contents, row))
    other = sqlite3.connect(cache_file(str(tmp_path / "probed")))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match=r"sqlite: cannot be changed, so it still contains .* run it again"):
        delete_probe_rows(str(tmp_path), contents[:1])
    other.close()
    assert delete_probe_rows(str(tmp_path), contents[:1]) == 1
    assert delete_probe_rows(str(tmp_path), contents) == 1


@pytest.mark.slow
def test_deleted_folders_do_not_come_back_after_a_power_cut(tmp_path, monkeypatch):
    (tmp_path / ("a" * 64)).mkdir()
    flushed = []
    monkeypatch.setattr(staged.durable, "flush", lambda paths: flushed.append((list(paths), os.listdir(tmp_path))))
    assert staged.clear(str(tmp_path)) == [str(tmp_path / ("a" * 64))]
    assert flushed == [([str(tmp_path)], [])]


def test_models_that_were_trained_on_them_are_named(small_dataset, tmp_path, capsys):
    months = Months(tmp_path / "run", small_dataset)
    record_months(months)
    (months.root / "staging/probed").mkdir(parents=True)
    (tmp_path / "keys").write_text("train/0002\n")
    command = ["forget", months.datasets[3], "--keys", tmp_path / "keys", "--out", tmp_path / "rest"]
    with run_lock(months.root):
        assert main(list(map(str, command))) == 2
    assert "another run is active here" in capsys.readouterr().err
    found = made(command, capsys)
    assert found["models"] == [str(months.models[month]) for month in (1, 3)]
    assert found["held_by"] == [str(months.datasets[month]) for month in (1, 2, 3)]
    assert (months.root / "staging/probed").is_dir()
    (tmp_path / "keys").write_text("train/0004\n")
    assert main([*map(str, command[:-1]), str(tmp_path / "more")]) == 0
    out = capsys.readouterr().out
    assert f"  trained on them: {months.models[3]}\n" in out
    assert str(months.models[1]) not in out


@pytest.mark.parametrize("key", ['d\'été/"1".jpg', "a\\b", "x" * 200])
def test_a_name_is_found_as_statistics_and_schemas_contain_it(small_dataset, tmp_path, key):
    dataset = ImageDataset.open(small_dataset(tmp_path, counts={"train": [1]}))
    texts = statistics_pb2.StringStatistics(top_values=[{"value": key, "frequency": 1.0}])
    (tmp_path / "FeatureStats.pb").write_bytes(texts.SerializeToString())
    schema = schema_pb2.Schema(string_domain=[schema_pb2.StringDomain(name="image/key", value=[key])])
    for name, as_utf8 in (("schema.pbtxt", False), ("my.schema.pbtxt", True)):
        (tmp_path / name).write_text(text_format.MessageToString(schema, as_utf8=as_utf8), encoding="utf-8")
    names = [os.path.basename(file) for file in files_naming(dataset, [key], [])]
    assert names == ["FeatureStats.pb", "my.schema.pbtxt", "schema.pbtxt"]
    assert not list(files_naming(dataset, [key[:-1]], [str(tmp_path)]))


def test_results_that_may_show_them_are_named(small_dataset, tmp_path, capsys):
    months = Months(tmp_path / "run", small_dataset)
    record_months(months)
    parents = {"report": {"dataset": months.digest(1)}, "gate_decision": {"dataset": months.digest(2)}}
    parents["training"] = {"dataset": fingerprint("transform 3")}
    parents["predictions"] = {"model": fingerprint("model 1"), "images": "0" * 64}
    for kind, of_it in parents.items():
        (months.root / "artifacts/X" / kind / "1").mkdir(parents=True)
        place = months.root / "artifacts/X" / kind / "1"
        write_lineage(place, kind=kind, fingerprint=fingerprint(kind), parents=of_it, recipe={})
    statistics = months.root / "artifacts/StatisticsGen/statistics/3/Split-train/FeatureStats.pb"
    schema = months.root / "artifacts/SchemaGen/schema/3/schema.pbtxt"
    for file in (statistics, schema):
        file.parent.mkdir(parents=True)
    texts = statistics_pb2.StringStatistics(top_values=[{"value": "train/0002", "frequency": 1.0}])
    statistics.write_bytes(texts.SerializeToString())
    domain = schema_pb2.StringDomain(name="image/key", value=["train/00021", "train/0002"])
    schema.write_text(text_format.MessageToString(schema_pb2.Schema(string_domain=[domain])))
    pages = {"report.html": months.digest(3), "artifacts/ImageExampleGen/examples/1.html": months.digest(1)}
    for name, digest in {**pages, "other.html": "0" * 64}.items():
        (months.root / name).write_text(f"<p>{digest}</p>")
    (tmp_path / "keys").write_text("train/0002\n")
    command = ["forget", months.datasets[3], "--keys", tmp_path / "keys", "--out", tmp_path / "rest"]
    expected = {str(months.root / "artifacts/X" / kind / "1") for kind in parents}
    expected |= {str(months.root / name) for name in pages} | {str(months.evaluation)}
    found = made(command, capsys)
    assert set(found["shown_in"]) == expected
    assert found["named_in"] == [str(schema), str(statistics)]
    # The image is only in the dataset of the third month.
    (tmp_path / "keys").write_text("train/0004\n")
    assert main([*map(str, command[:-1]), str(tmp_path / "more")]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  may show them: ")]
    third = (months.root / "artifacts/X/training/1", months.evaluation, months.root / "report.html")
    assert set(shown) == {f"  may show them: {place}" for place in third}


def test_an_earlier_dataset_keeps_what_it_knew_of_its_files_to_itself(image_input, tmp_path, capsys):
    run(image_input(tmp_path / "in", layout="label_csv", images=6), tmp_path / "ds", workers=1)
    shutil.rmtree(tmp_path / "in")
    (tmp_path / "keys").write_text("001.jpg\n")
    made(["forget", tmp_path / "ds", "--keys", tmp_path / "keys", "--out", tmp_path / "rest"], capsys)
    whole(tmp_path / "rest")
    for file in (tmp_path / "rest").rglob("*"):
        assert not file.is_file() or b"001.jpg" not in file.read_bytes()
