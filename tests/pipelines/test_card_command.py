"""`card`: the figures of a dataset and the sources of a model in Markdown, and Croissant's JSON-LD."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from descent import Months
from evaluations import evaluated
from ingesting import run
from power_cuts import LOST, simulated_disk
from recording import reading, record, write_records

from shardwright.components.runtime.artifacts import write_record
from shardwright.dataset.reader import ImageDataset
from shardwright.lineage.ancestry import read_artifact
from shardwright.pipelines.cards import code_span, escaped
from shardwright.pipelines.cli import main
from shardwright.tfrecords.encode import encode_example

CLASSES = ["<b>cat|", "dog"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    root = tmp_path_factory.mktemp("card")
    texts = [CLASSES[i % 2].encode() for i in range(8)]
    payloads = [record(i, **{"image/key": b"%d.jpg" % i, "image/class/text": text}) for i, text in enumerate(texts)]
    broken = {"image/encoded": b"no image", "image/key": b"9.jpg", "image/class/text": b"dog"}
    write_records(root / "records/a.tfrecord", [*payloads, encode_example(broken)])
    run(reading(root / "records", classes=CLASSES), root / "ds", workers=1)
    return ImageDataset.open(root / "ds")


def rows(card, title):
    """The cells of the table below a heading."""
    table = card.partition(f"## {title}\n\n")[2].partition("\n\n")[0]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()[2:]]


def test_a_card_is_on_the_disk_when_the_command_ends(dataset, tmp_path):
    with simulated_disk(tmp_path) as disk:
        assert main(["card", dataset.root, "--out", str(tmp_path / "card.md")]) == 0
        assert disk.after_cut(LOST) == {"card.md": (tmp_path / "card.md").read_bytes()}


def test_the_card_of_a_dataset(dataset, tmp_path, capsys):
    file = tmp_path / "CARD.md"
    assert main(["card", dataset.root, "--out", str(file), "--name", "Cats # and dogs"]) == 0
    card = file.read_text()
    assert card.startswith("# Cats \\# and dogs\n\n8 images for classification. Kind of annotations: single.\n")
    splits = {cells[0].strip(): [int(cell) for cell in cells[1:]] for cells in rows(card, "Splits")}
    for split in dataset.splits:
        shards = dataset.shards(split)
        assert splits[split] == [dataset.num_records(split), len(shards), sum(shard.bytes for shard in shards)]
    classes = {cells[1].strip(): sum(int(cell) for cell in cells[2:]) for cells in rows(card, "Classes")}
    assert classes == {"\\<b\\>cat\\|": 4, "dog": 4}
    assert {cells[0].strip(" `") for cells in rows(card, "Features")} == set(dataset.manifest.features)
    assert dataset.manifest.digest in card
    assert "9 inputs, of which 1 rejected." in card
    assert main(["card", dataset.root, "--out", str(file)]) == 2
    assert "replace it with --force" in capsys.readouterr().err
    capsys.readouterr()
    assert main(["card", dataset.root, "--out", str(file), "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"card": str(file), "bytes": file.stat().st_size}
    assert main(["card", dataset.root, "--name", "Cats # and dogs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == card


def test_croissant(dataset, capsys):
    assert main(["card", dataset.root, "--croissant", "--license", "https://example.org/l", "--cite", "Me"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["license"], found["citeAs"], found["name"]) == ("https://example.org/l", "Me", "ds")
    files = {one["contentUrl"]: one for one in found["distribution"]}
    shards = [shard for split in dataset.splits for shard in dataset.shards(split)]
    assert len(files) == 2 * len(shards)
    for name, one in files.items():
        data = Path(dataset.root, name).read_bytes()
        assert (one["sha256"], one["contentSize"]) == (hashlib.sha256(data).hexdigest(), f"{len(data)} B")
    splits, classes = found["recordSet"]
    counts = {row["splits/name"]: row["splits/images"] for row in splits["data"]}
    assert counts == {split: dataset.num_records(split) for split in dataset.splits}
    assert [row["classes/name"] for row in classes["data"]] == CLASSES


def test_croissant_is_read_by_its_library(dataset, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    file = tmp_path / "croissant.json"
    assert main(["card", dataset.root, "--croissant", "--out", str(file)]) == 0
    read = mlcroissant.Dataset(jsonld=str(file))
    assert [row["classes/name"] for row in read.records("classes")] == CLASSES


def test_the_card_of_a_model(small_dataset, tmp_path, capsys):
    made = Months(tmp_path / "run", small_dataset)
    write_record(made.evaluation / "summary.json", evaluated({"accuracy": 0.8125}))
    call = ["card", str(made.root), "--search", str(made.root / "artifacts")]
    assert main(call) == 0
    card = capsys.readouterr().out
    assert [[cell.strip() for cell in row] for row in rows(card, "Evaluation")] == [["accuracy", "0.8125"]]
    assert "Measured on 60 images of test, 24x40 pixels, threshold 0.40 to 0.60" in card
    assert read_artifact(str(made.models[3])).fingerprint in card
    digests = {row[1].strip(" `") for row in rows(card, "Made of")}
    assert ImageDataset.open(made.datasets[3]).manifest.digest[:12] in digests
    assert "- epochs: 3" in card
    assert main([*call, "--croissant"]) == 2
    assert "is not a dataset" in capsys.readouterr().err
    assert main([*call, "--license", "x"]) == 2
    assert "Give --croissant" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "in_table", "span"),
    [
        ("image/key", True, "`image/key`"),
        ("x` <img src=x onerror=alert(1)>", False, "``x` <img src=x onerror=alert(1)>``"),
        ("``a`", False, "``` ``a` ```"),
        ("a`|<b>", True, "``a`\\|<b>``"),
    ],
)
def test_nothing_gets_out_of_a_code_span(text, in_table, span):
    assert code_span(text, in_table=in_table) == span


def test_an_entity_is_shown_as_it_is():
    assert escaped("&lt;b&gt; <i>") == "\\&lt;b\\&gt; \\<i\\>"
