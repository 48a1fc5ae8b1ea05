"""`shardwright validate`: every error at once, the values that are in force, and what the data is."""

import dataclasses
import json
from pathlib import Path

import pytest
import yaml

from shardwright.config import load_config, parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines.cli import main

CONFIGS = sorted((Path(__file__).parents[2] / "pipelines" / "configs").glob("*.yaml"))
WRONG = """
task: segmentation
input:
  images: data
  labels: {path: train.csv, rle: {encoding: sideways}}
  unlisted_images: perhaps
shards: {cuont: 2, records: 0}
split: {ratios: {train: 0.5, eval: 0.2}}
trainer: {epochs: none}
nonsense: {a: 1}
"""


def validated(capsys, *arguments):
    code = main(["validate", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_every_error_is_printed_at_once(tmp_path, capsys):
    file = tmp_path / "c.yaml"
    file.write_text(WRONG)
    code, out = validated(capsys, file, "--json")
    assert code == 2
    errors = json.loads(out)
    assert {error["key"] for error in errors} >= {
        "input.labels.rle.encoding",
        "input.unlisted_images",
        "shards.cuont",
        "shards.records",
        "split.ratios",
        "trainer.epochs",
        "nonsense",
    }
    assert all(error["problem"] and error["fix"] for error in errors)
    code, out = validated(capsys, file)
    assert code == 2
    assert [line.partition(":")[0] for line in out.splitlines()] == [error["key"] for error in errors]


def test_missing_images_hide_nothing(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text("shards: {count: x}\ntrainer: {epochs: 0}\nsplit: {ratios: {train: 2}}\n")
    _, out = validated(capsys, tmp_path / "c.yaml", "--json")
    found = [error["key"] for error in json.loads(out)]
    assert found[0] == "input.images"
    assert {*found} == {"input.images", "split.ratios.train", "shards.count", "trainer.epochs"}


def test_an_error_in_a_list_hides_nothing(tmp_path, capsys):
    lists = "{volumes: [{claim: A, path: /x}]}\nevaluator: {flips: [sideways]}\ngate: {allow_anomalies: [x]}"
    (tmp_path / "c.yaml").write_text(f"input: {{images: x}}\nkubeflow: {lists}\ntrainer: {{epochs: 0}}\n")
    _, out = validated(capsys, tmp_path / "c.yaml", "--json")
    keys = {error["key"] for error in json.loads(out)}
    assert keys == {"kubeflow.volumes[0].claim", "evaluator.flips[0]", "gate.allow_anomalies[0]", "trainer.epochs"}


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_the_other_names_of_eval_are_noted(tmp_path, capsys, name):
    (tmp_path / "c.yaml").write_text(f"input: {{images: x}}\nsplit: {{ratios: {{train: 0.9, {name}: 0.1}}}}\n")
    assert f"  the split {name} is understood as eval\n" in validated(capsys, tmp_path / "c.yaml")[1]
    shown = validated(capsys, tmp_path / "c.yaml", "--show")[1]
    assert shown.startswith(f"# the split {name} is understood as eval\n")
    assert yaml.safe_load(shown)["split"]["ratios"] == {"train": 0.9, "eval": 0.1}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("split: {method: kfoldd, num_folds: 5, fold_index: 0}", ["split.method"]),
        ("split: {ratios: {train: 0.8, eval: x, test: 0.1}}", ["split.ratios.eval"]),
        ("task: classif\ntrainer: {model: cnn, epochs: 0}", ["trainer.epochs", "task"]),
        ("trainer: {model: unett, encoder: resnet50}", ["trainer.model", "trainer.encoder"]),
        ("shards: 3", ["shards"]),
        ("1: 2\nnull: 3\n2024-01-01: null\nshards: 3", ["1", "None", "2024-01-01", "shards"]),
    ],
)
def test_an_error_that_follows_from_another_is_not_printed(tmp_path, capsys, text, keys):
    """Without `split.method` its default is `hash`, which has no folds: that is not the user's mistake."""
    (tmp_path / "c.yaml").write_text(f"input: {{images: x, labels: {{path: a.csv}}}}\n{text}\n")
    _, out = validated(capsys, tmp_path / "c.yaml", "--json")
    assert [error["key"] for error in json.loads(out)] == keys


@pytest.mark.parametrize(
    "text", ["input: 3", "input: {images: 3}", "input: {images: x, labels: [1]}", "split: 3\ninput: {images: x}"]
)
def test_values_of_a_wrong_type_end_in_errors(tmp_path, capsys, text):
    (tmp_path / "c.yaml").write_text(text)
    code, out = validated(capsys, tmp_path / "c.yaml")
    assert code == 2
    assert out.strip()


def test_a_file_that_is_not_a_configuration_is_one_message(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text("[1, 2")
    assert main(["validate", str(tmp_path / "c.yaml")]) == 2
    assert "not valid YAML" in capsys.readouterr().err
    (tmp_path / "c.yaml").write_text("a: 1\n---\nb: 1\n")
    assert main(["validate", str(tmp_path / "c.yaml")]) == 2
    assert "expected a single document in the stream but found another document (line 2" in capsys.readouterr().err
    assert main(["validate", str(tmp_path / "none.yaml")]) == 2


@pytest.mark.parametrize("file", [*CONFIGS, "", "test: 0", "test: 0.2, other: 0.1"], ids=lambda file: Path(file).stem)
def test_what_is_shown_is_the_configuration(tmp_path, file, capsys):
    if isinstance(file, str):
        split = {"method": "kfold", "num_folds": 5, "fold_index": 1, "ratios": yaml.safe_load(f"{{{file}}}")}
        text = yaml.safe_dump({"input": {"images": "x"}, "split": split})
        file = tmp_path / "kfold.yaml"
        file.write_text(text)
    code, out = validated(capsys, file, "--show")
    assert code == 0
    shown = yaml.safe_load(out)
    config = load_config(file)
    assert dataclasses.replace(parse_config(shown, base=config.base), notes=config.notes) == config
    assert json.loads(validated(capsys, file, "--show", "--json")[1]) == shown


def test_the_data_are_listed_and_read(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=12)
    (tmp_path / "c.yaml").write_text(json.dumps(raw))
    code, out = validated(capsys, tmp_path / "c.yaml", "--data")
    assert code == 0
    assert out.startswith("images       12, ")
    data = json.loads(validated(capsys, tmp_path / "c.yaml", "--data", "--json")[1])
    values = json.loads(validated(capsys, tmp_path / "c.yaml", "--show", "--json")[1])
    both = json.loads(validated(capsys, tmp_path / "c.yaml", "--data", "--show", "--json")[1])
    assert both == {**data, "configuration": values}
    for reference, count in (("blessed", 0), (str(tmp_path / "in"), 1)):
        (tmp_path / "c.yaml").write_text(json.dumps({**raw, "gate": {"drift": {"reference": reference}}}))
        code, out = validated(capsys, tmp_path / "c.yaml", "--data")
        assert (code, out.count(f"gate.drift.reference: {reference}: has no manifest.json")) == (0, count)
    Path(raw["input"]["labels"]["path"]).unlink()
    assert main(["validate", str(tmp_path / "c.yaml"), "--data"]) == 2


def test_codes_that_an_ingest_would_reject_are_found_before(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", images=12)
    table = Path(raw["input"]["labels"]["path"])
    head, *rows = table.read_text().splitlines()
    image = [row.split(",")[0] for row in rows]
    damaged = [f"{name},1 2 x" for name in image]
    (tmp_path / "c.yaml").write_text(json.dumps(raw))
    assert validated(capsys, tmp_path / "c.yaml", "--data")[0] == 0
    table.write_text("\n".join([head, damaged[0], *rows[1:]]))
    code, out = validated(capsys, tmp_path / "c.yaml", "--data")
    assert code == 1
    assert "tried        12 images, of which 1 would be rejected" in out
    assert "bad_rle: " in out
    table.write_text("\n".join([head, *damaged]))
    code, out = validated(capsys, tmp_path / "c.yaml", "--data")
    assert code == 1
    assert "An ingest would end with too many rejects: rejects.max_fraction is 0.01." in out
    code, out = validated(capsys, tmp_path / "c.yaml", "--data", "--json")
    assert code == 1
    found = json.loads(out)
    assert {row["code"] for row in found["rejected"]} == {"bad_rle"}
    assert main(["ingest", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out")]) == 1
    ended = capsys.readouterr().err
    assert all(row["reason"] in ended for row in found["rejected"][:1])


@pytest.mark.parametrize("verify", ["header", "full"])
def test_a_trial_rejects_what_an_ingest_rejects(image_input, tmp_path, capsys, verify):
    raw = {**image_input(tmp_path / "in", layout="label_csv", images=12), "images": {"verify": verify}}
    raw["rejects"] = {"max_fraction": 0.1}
    file = sorted(Path(raw["input"]["images"]).iterdir())[3]
    file.write_bytes(file.read_bytes()[:-40])
    (tmp_path / "c.yaml").write_text(json.dumps(raw))
    tried = json.loads(validated(capsys, tmp_path / "c.yaml", "--data", "--json")[1])
    assert main(["ingest", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out")]) == 0
    (row,) = (row for row in ImageDataset.open(tmp_path / "out").ledger() if row.status == "rejected")
    assert tried["rejected"] == [{"key": row.key, "code": row.code, "reason": row.reason}]
    printed = capsys.readouterr().out
    assert f"  rejected {row.key}: {row.code}: {row.reason}" in printed


def test_an_editor_finds_the_schema_next_to_the_file(tmp_path, capsys):
    file = tmp_path / "c.yaml"
    file.write_text("# yaml-language-server: $schema=/home/ann/old.json\n# A comment.\ninput: {images: data}\n")
    for _ in range(2):  # It is named once.
        code, _ = validated(capsys, file, "--editor")
        assert code == 0
        lines = file.read_text().splitlines()
        assert lines[1:] == ["# A comment.", "input: {images: data}"]
        schema = tmp_path / lines[0].partition("$schema=")[2]
        assert json.loads(schema.read_text())["required"] == ["input"]
    assert validated(capsys, tmp_path / "none.yaml", "--editor")[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.yaml", "shardwright.schema.json"]
