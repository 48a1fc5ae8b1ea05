"""Reading a dataset: what is missing or damaged is refused with a name."""

import dataclasses
import json
import shutil

import pytest

from shardwright.config.images import ImagesConfig
from shardwright.config.shards import FeaturesConfig
from shardwright.config.transform import TextConfig, TransformConfig
from shardwright.dataset import manifest
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, ShardwrightError
from shardwright.staging.commit import DatasetPlan, commit
from shardwright.staging.staging import PlannedShard, RecordResult, Staging
from shardwright.verify import verify


def test_the_folder_above_datasets_names_the_newest(folder):
    (folder.parent / "examples").mkdir()
    shutil.copytree(folder, folder.parent / "examples" / "9")
    shutil.copytree(folder, folder.parent / "examples" / "10")
    with pytest.raises(DatasetError, match=r"Did you mean .*/examples/10\?"):
        ImageDataset.open(folder.parent / "examples")


def test_the_folder_of_a_transform_names_the_dataset_in_it(folder):
    folder.rename(folder.parent / "transformed_examples")
    for opens in (ImageDataset.open, verify):
        with pytest.raises(ShardwrightError, match=r"Did you mean .*/transformed_examples\?"):
            opens(folder.parent)


@pytest.fixture
def folder(tmp_path):
    shards = (PlannedShard("test", 0, 1), PlannedShard("train", 0, 2), PlannedShard("train", 1, 2))
    plan = DatasetPlan("ingest", "classification", ("a",), {}, "p", {"image/key": "bytes"}, 4, shards)
    staging = Staging.open(tmp_path / "s", plan.fingerprint)
    staging.write_shard(shards[0], [])
    for shard in shards[1:]:
        staging.write_shard(shard, [RecordResult(f"{shard.number}é{i}", bytes([i]) * 9) for i in range(2)])
    commit(staging, plan, tmp_path / "out", {})
    return tmp_path / "out"


def test_shards_and_records_come_in_order(folder):
    dataset = ImageDataset.open(folder)
    assert [(s.path, s.records, s.first_key, s.last_key) for s in dataset.shards("train")] == [
        ("Split-train/data-00000-of-00002.tfrecord", 2, "0é0", "0é1"),
        ("Split-train/data-00001-of-00002.tfrecord", 2, "1é0", "1é1"),
    ]
    assert [key for key, _ in dataset.records("train")] == ["0é0", "0é1", "1é0", "1é1"]


def test_an_open_dataset_does_not_read_its_manifest_again(folder):
    dataset = ImageDataset.open(folder)
    (folder / "manifest.json").unlink()
    found = dataset.fetch("1é1")
    assert (found.split, found.shard, found.record) == ("train", "Split-train/data-00001-of-00002.tfrecord", 1)


def test_a_shard_without_records_is_a_shard(folder):
    dataset = ImageDataset.open(folder)
    assert dataset.num_records("test") == 0
    assert list(dataset.records("test")) == []
    assert dataset.shards("test")[0].first_key is None


def test_an_unknown_split_names_the_known_ones(folder):
    with pytest.raises(DatasetError, match=r"no split 'eval'. It has: test, train"):
        ImageDataset.open(folder).shards("eval")


def test_a_folder_without_a_manifest_is_no_dataset(folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(DatasetError, match="not a finished dataset"):
        ImageDataset.open(folder)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "nonsense", '{"format_version": 1}', '{"format_version":1,"shards":[1]}', "[" * 100_000,
     '{"a":' * 100_000, '{"format_version": ' + "9" * 5000 + "}"],
    ids=range(9),
)  # fmt: skip
def test_a_manifest_that_is_none_is_refused(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(DatasetError, match="not a readable manifest"):
        ImageDataset.open(folder)


@pytest.mark.parametrize("part", ["index/Split-train", "ledger"])
def test_lists_within_lists_are_no_rows(folder, part):
    file = min((folder / part).iterdir())
    file.write_text("[" * 100_000 + "\n")
    dataset = ImageDataset.open(folder)
    with pytest.raises(DatasetError, match="not a readable (index|ledger)"):
        list(dataset.ledger() if part == "ledger" else dataset.records("train"))


def test_a_changed_manifest_is_refused(folder):
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"task":"classification"', '"task":"segmentation"'))
    with pytest.raises(DatasetError, match="digest does not match"):
        ImageDataset.open(folder)


def test_another_layout_version_is_refused(folder):
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"format_version":1', '"format_version":2'))
    with pytest.raises(DatasetError, match="layout version 2"):
        ImageDataset.open(folder)


def test_missing_and_short_shards_are_named(folder):
    shard = folder / "Split-train" / "data-00001-of-00002.tfrecord"
    data = shard.read_bytes()
    shard.write_bytes(data[:-1])
    with pytest.raises(DatasetError, match=r"data-00001-of-00002.tfrecord: .* bytes instead of the manifest's"):
        ImageDataset.open(folder)
    shard.unlink()
    with pytest.raises(DatasetError, match=r"data-00001-of-00002.tfrecord: named by the manifest"):
        ImageDataset.open(folder)


def test_a_flipped_bit_in_a_record_is_found_on_reading(folder):
    shard = folder / "Split-train" / "data-00000-of-00002.tfrecord"
    data = bytearray(shard.read_bytes())
    data[14] ^= 1
    shard.write_bytes(data)
    with pytest.raises(DatasetError, match=r"data-00000-of-00002.*shardwright verify"):
        list(ImageDataset.open(folder).records("train"))


@pytest.mark.parametrize("text", ["", '{"key":"x","offset":0,"length":25}\n' * 3, '{"key":"x"}\n', "nonsense\n"])
def test_an_index_that_does_not_fit_is_refused(folder, text):
    (folder / "index" / "Split-train" / "data-00000-of-00002.jsonl").write_text(text)
    with pytest.raises(DatasetError, match=r"data-00000-of-00002.jsonl"):
        list(ImageDataset.open(folder).records("train"))


def test_a_missing_ledger_is_named(folder):
    (folder / "ledger" / "part-00000-of-00001.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"part-00000-of-00001.jsonl: not a readable ledger"):
        list(ImageDataset.open(folder).ledger())


def test_the_manifest_is_canonical(folder):
    text = (folder / "manifest.json").read_text(encoding="utf-8")
    manifest = Manifest.from_json(text)
    assert manifest.to_json() == text
    assert manifest.with_digest() == manifest


def test_the_check_of_a_recipe_takes_what_every_option_can_be():
    """A check with another type than the option's refuses datasets that we wrote."""
    text = TextConfig(vocabulary=7, output="ids", length=3)
    sections = {
        "images": dataclasses.asdict(ImagesConfig(resize="stretch", size=(3, 4))),
        "features": dataclasses.asdict(FeaturesConfig(map={"image/encoded": "picture"})),
        **dataclasses.asdict(TransformConfig(size=(8, 16), text={"caption": text})),
    }
    recipe = json.loads(json.dumps(sections))
    assert manifest._RECIPE(recipe, "recipe") == recipe
    with pytest.raises(ValueError, match=r"recipe\.text\.'caption'\.vocabulary: 'many' is not a whole number"):
        manifest._RECIPE({"text": {"caption": {"vocabulary": "many"}}}, "recipe")
