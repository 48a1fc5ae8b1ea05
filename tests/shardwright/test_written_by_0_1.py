"""What version 0.1 wrote is read by this one: docs/deploy/operations.md promises it. Its files are never renewed."""

import csv
from pathlib import Path

import numpy as np
import pytest

import shardwright
from shardwright.dataset.reader import ImageDataset
from shardwright.ingest import ingest_recipe
from shardwright.masks.rle import draw, parse_pairs
from shardwright.pipelines.cli import main
from shardwright.verify import verify

WRITTEN = Path(__file__).parents[1] / "fixtures" / "written-by-0.1"
DATASET = WRITTEN / "dataset"


def masks_of_the_table() -> dict[tuple[str, str], np.ndarray]:
    with (WRITTEN / "train.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["ImageId"], row["ClassId"]): draw(parse_pairs(row["EncodedPixels"], height=24, width=30), 24, 30)
        for row in rows
    }


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """The images of the dataset as files again, with the table and the configuration beside them."""
    (tmp_path / "photos").mkdir()
    dataset = ImageDataset.open(DATASET)
    for split in dataset.splits:
        for key in dataset.keys(split):
            (tmp_path / "photos" / key).write_bytes(dataset.example(key).encoded)
    for name in ("train.csv", "written.yaml"):
        (tmp_path / name).write_bytes((WRITTEN / name).read_bytes())
    return tmp_path


def test_its_dataset_is_whole_and_says_what_the_table_says() -> None:
    assert not verify(DATASET).findings
    dataset = ImageDataset.open(DATASET)
    assert {split: dataset.num_records(split) for split in dataset.splits} == {"train": 8, "eval": 1, "test": 3}
    expected = masks_of_the_table()
    assert len(expected) == 16
    for split in dataset.splits:
        for example in dataset.examples(split, count=100):
            for number, name in enumerate(dataset.manifest.classes):
                mask = expected.get((example.key, name), np.zeros((24, 30), np.uint8))
                np.testing.assert_array_equal(example.masks[..., number], mask)


def test_its_configuration_is_the_same_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(WRITTEN)
    config = shardwright.load_config("written.yaml")
    assert ingest_recipe(config, config.input.classes)
    assert config.split.salt == "june"
    assert config.transform.size == (24, 32)


def test_its_splits_are_kept_and_its_records_are_reused(photographs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(photographs)
    text = Path("written.yaml").read_text().replace("salt: june", f"salt: july, keep_from: '{DATASET}'")
    Path("kept.yaml").write_text(f"{text}reuse_from: '{DATASET}'\n")
    assert main(["ingest", "kept.yaml", "--out", "kept", "--workers", "1"]) == 0
    before, after = ImageDataset.open(DATASET), ImageDataset.open("kept")
    kept, first = ({name: set(one.keys(name)) for name in one.splits} for one in (after, before))
    assert kept == first
    assert main(["verify", "kept"]) == 0


@pytest.mark.parametrize("command", [["reshard", "--shard-count", "1"], ["subset", "--count", "2"]], ids=lambda c: c[0])
def test_commands_that_copy_records_take_it(command: list[str], tmp_path: Path) -> None:
    name, *options = command
    assert main([name, str(DATASET), "--out", str(tmp_path / "out"), *options]) == 0
    assert not verify(tmp_path / "out").findings
