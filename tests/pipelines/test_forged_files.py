"""Forged rows of an index and a ledger, lineages and blessings: a message, never a traceback."""

import json
import shutil

import pytest
from evaluations import evaluated, trained

from shardwright.components.evaluator.result_files import read_details, read_evaluation
from shardwright.components.image_trainer.training.history import read_history
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.lineage.ancestry import artifact_at, read_artifact
from shardwright.lineage.blessing import BLESSING_FILE, Blessing, read_blessing, write_blessing
from shardwright.lineage.record import LINEAGE_FILE, read_lineage, write_lineage
from shardwright.loader import dataset_statistics
from shardwright.pipelines.cli import main
from shardwright.report.anomaly_chapter import read_verdict
from shardwright.storage.checksum import checksum_of
from shardwright.storage.fingerprint import checksummed_json, fingerprint

HOSTILE = [
    None, True, -1, 1.5, 10**15, 10**40, "", "..", "../../evil", "/tmp/evil", "a\0b", "\x1b[2J", "\ud800",
    [], ["../evil"], {}, {"../evil": "../evil"}, {"a": 1}, float("nan"),
]  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory, small_dataset):
    return small_dataset(tmp_path_factory.mktemp("source"), counts={"train": [2], "eval": [1]})


@pytest.fixture
def dataset(tmp_path, source, monkeypatch):
    shutil.copytree(source, tmp_path / "forged")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "forged"


def forge_row(dataset, part, name, value):
    """Changes a value of the first row of a part, whose hash the manifest then has."""
    file = dataset / part
    lines = file.read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), name: value})
    file.write_text("".join(f"{line}\n" for line in lines))
    manifest = json.loads((dataset / "manifest.json").read_text())
    manifest["parts"][part] = checksum_of(file.read_bytes())
    # So that the ledger is read.
    manifest["totals"]["inputs"] += 1
    manifest["digest"] = fingerprint({name: value for name, value in manifest.items() if name != "digest"})
    (dataset / "manifest.json").write_text(json.dumps(manifest))


def output_of(capsys, *command):
    code = main(list(command))
    output = capsys.readouterr().err
    assert code in (0, 1, 2)
    assert "Traceback" not in output
    return output


@pytest.mark.parametrize("name", ["key", "offset", "length"])
def test_a_forged_index_is_refused_or_read(dataset, capsys, name):
    part = "index/Split-train/data-00000-of-00001.jsonl"
    whole = (dataset / part).read_bytes()
    for value in HOSTILE:
        forge_row(dataset, part, name, value)
        opened = ImageDataset.open(dataset)
        if type(value) is str and name == "key" and value != "\ud800":
            assert opened.keys("train")[0] == value
        else:
            with pytest.raises(DatasetError, match="not a readable index"):
                opened.keys("train")
        if value in (None, -1, 10**40):
            assert "not a readable index" in output_of(capsys, "reshard", "forged", "--out", "out")
            assert not (dataset.parent / "out").exists()
            for command in (["get", "forged", "train/0001"], ["verify", "forged"], ["inspect", "forged"]):
                output_of(capsys, *command)
        (dataset / part).write_bytes(whole)


@pytest.mark.parametrize("name", ["key", "status", "code", "reason", "split", "shard", "index"])
def test_a_forged_ledger_is_refused_or_read(dataset, name):
    part = "ledger/part-00000-of-00001.jsonl"
    whole = (dataset / part).read_bytes()
    refused = 0
    for value in HOSTILE:
        forge_row(dataset, part, name, value)
        try:
            rows = list(ImageDataset.open(dataset).ledger())
        except DatasetError as error:
            refused += "not a readable ledger" in str(error)
        else:
            assert all(isinstance(row.key, str) for row in rows)
            assert not any(".." in row.split or "/" in row.split for row in rows)
        (dataset / part).write_bytes(whole)
    assert refused >= 10


@pytest.mark.parametrize("name", ["kind", "fingerprint", "parents", "recipe", "versions", "image", "files"])
def test_a_forged_lineage_is_a_problem_and_no_traceback(tmp_path, capsys, name):
    write_lineage(tmp_path, kind="model", fingerprint="f" * 64, parents={"dataset": "d"}, recipe={"a": 1})
    row = json.loads((tmp_path / LINEAGE_FILE).read_text())
    del row["digest"]
    refused = 0
    for value in HOSTILE:
        try:
            text = checksummed_json({**row, name: value})
        except ValueError:
            text = json.dumps({**row, name: value})
        (tmp_path / LINEAGE_FILE).write_text(text, encoding="utf-8", errors="surrogatepass")
        for read in (read_lineage, read_artifact):
            try:
                read(str(tmp_path))
            except DatasetError:
                refused += 1
        output_of(capsys, "lineage", str(tmp_path))
    assert refused >= 20


@pytest.mark.parametrize("name", ["model", "digest", "metrics", "fingerprints", "examples"])
def test_a_forged_blessing_names_no_model_elsewhere(tmp_path, name):
    push = tmp_path / "push"
    (push / "1").mkdir(parents=True)
    write_lineage(tmp_path, kind="model", fingerprint="f", parents={}, recipe={})
    write_blessing(push, Blessing("1", "digest"))
    row = json.loads((push / BLESSING_FILE).read_text())
    refused = 0
    for value in [*HOSTILE, "../push", "1/..", "."]:
        (push / BLESSING_FILE).write_text(json.dumps({**row, name: value}))
        try:
            found = read_blessing(push)
            assert found.model == "1"
        except DatasetError:
            refused += 1
        with pytest.raises(DatasetError):
            artifact_at(str(push))
    assert refused >= 8


RECORDS = {
    "summary.json": (read_evaluation, vars(evaluated({"dice": 0.5}, reasons=["a"], keys=["evaluator.split"]))),
    "evaluation.json": (
        read_details,
        {"pictures": [{"file": "a.png", "kind": "best"}], "slices": [], "classes": ["a"], "confusion": None},
    ),
    "history.json": (read_history, vars(trained([0.5], [{"dice": 0.5}]))),
    "verdict.json": (read_verdict, [{"kind": "DRIFT", "where": "a", "what": "b", "keys": ["c"]}]),
    "statistics.json": (dataset_statistics, {"mean": [1, 2, 3], "std": [1, 2, 3], "size": [2, 2]}),
}


@pytest.mark.parametrize("name", RECORDS)
def test_forged_records_of_a_model_are_refused_or_read(tmp_path, name):
    read, sound = RECORDS[name]
    (tmp_path / name).write_text(json.dumps(sound))
    assert read(tmp_path)
    refused = 0
    for value in HOSTILE:
        row = sound[0] if isinstance(sound, list) else sound
        for forged in [value, *({**row, one: value} for one in row), {**row, "more": value}]:
            (tmp_path / name).write_text(json.dumps([forged] if isinstance(sound, list) else forged))
            try:
                read(tmp_path)
            except DatasetError as error:
                refused += str(error).isprintable()
    assert refused > 2 * len(HOSTILE)
