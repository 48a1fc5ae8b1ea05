"""Subsets: who is chosen, how much is read for it, and that nothing that is not the manifest's comes in."""

import dataclasses
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from damage import swap_records
from ingesting import examples, tree

from shardwright.config.shards import ShardsConfig
from shardwright.dataset.example_view import sampling_hash
from shardwright.dataset.reader import ImageDataset
from shardwright.edit import derive as edit_derive
from shardwright.edit.derive import Derived, derive
from shardwright.edit.subset import stratified
from shardwright.errors import DatasetError
from shardwright.staging import ranges
from shardwright.staging.staging import RecordResult
from shardwright.storage.fingerprint import text_number

# Uncompressed, so that many records have the same length.
KIND = {"task": "classification", "counts": {"train": [30, 25, 20], "eval": [25]}, "image_format": "bmp"}


@pytest.fixture(scope="module")
def source(small_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("subsets")
    return ImageDataset.open(small_dataset(root, **KIND))


@pytest.fixture
def copied(source, tmp_path):
    return ImageDataset.open(shutil.copytree(source.root, tmp_path / "ds"))


@pytest.fixture
def settled(monkeypatch):
    """The files of these tests were written a moment ago; here they count as older than any clock's tick."""
    monkeypatch.setattr(edit_derive, "is_settled", lambda file, now: True)


@pytest.fixture
def hashed(monkeypatch):
    """The files that are compared with their hashes while their records are carried."""
    files = []
    check = edit_derive._check_hash
    monkeypatch.setattr(edit_derive, "_check_hash", lambda shard: files.append(shard.file) or check(shard))
    return files


def how(chosen, proven=None):
    return Derived(
        "subset",
        {},
        lambda key: text_number(key) in chosen.numbers,
        proven=chosen.proven if proven is None else proven,
    )


def shard_files(dataset):
    return [shard.file for split in dataset.splits for shard in dataset.shards(split)]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.34, 0.9, 1.0])
def test_every_stratum_gives_its_share_with_the_lowest_lots(source, share):
    strata = defaultdict(list)
    for key, example in examples(source.root).items():
        strata[key.split("/")[0], tuple(example["image/class/label"])].append(key)
    expected = set()
    for keys in strata.values():
        keys.sort(key=lambda key: sampling_hash(key, 3))
        expected |= {text_number(key) for key in keys[: max(1, round(share * len(keys)))]}
    assert stratified(source, share, seed=3).numbers == expected


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({"share": 0.05}, True),
        ({"count": 5}, True),
        ({"share": 0.1, "classes": ["Fish"]}, True),
        ({"share": 0.5, "classes": ["Fish", "Sugar"]}, True),
        ({"splits": ["eval"]}, False),
    ],
)
def test_shards_that_were_read_to_choose_are_not_read_whole_again(source, tmp_path, settled, hashed, options, known):
    chosen = stratified(source, **options)
    derive([source], tmp_path / "new", how(chosen), quiet=True)
    assert bool(hashed) != known
    derive([source], tmp_path / "other", how(chosen, {}), quiet=True)
    assert hashed
    assert tree(tmp_path / "new") == tree(tmp_path / "other")
    assert {text_number(key) for key in examples(tmp_path / "new")} == chosen.numbers


def test_a_shard_that_has_just_been_written_is_read_whole_again(source, tmp_path, hashed):
    chosen = stratified(source, 0.5)
    assert set(chosen.proven.values()) <= {"", *map(edit_derive.file_state, shard_files(source))}
    derive([source], tmp_path / "new", how(chosen, dict.fromkeys(chosen.proven, "")), quiet=True)
    assert sorted(hashed) == sorted(shard_files(source))


def test_a_shard_that_changes_while_its_records_are_carried_is_in_no_dataset(copied, tmp_path):
    file = shard_files(copied)[0]

    def outcome(key, payload):
        os.utime(file, ns=(0, 0))
        return RecordResult(key, payload)

    with pytest.raises(DatasetError, match=f"{file}: does not match its hash in the manifest"):
        derive([copied], tmp_path / "new", Derived("any", {}, outcome=outcome), quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["ds"]


def test_records_are_not_read_to_choose_all(source, monkeypatch):
    monkeypatch.delattr(ImageDataset, "placed_records")
    keys = {split: {text_number(key) for key in source.keys(split)} for split in source.splits}
    assert stratified(source).numbers == keys["train"] | keys["eval"]
    assert stratified(source, count=1000, splits=["eval"]).numbers == keys["eval"]


def test_images_without_classes_are_chosen_by_their_keys(small_dataset, tmp_path, monkeypatch):
    made = ImageDataset.open(small_dataset(tmp_path, task="classification", counts={"train": [40], "eval": [10]}))
    bare = dataclasses.replace(made, manifest=dataclasses.replace(made.manifest, labels="none"))
    monkeypatch.delattr(ImageDataset, "placed_records")
    chosen = stratified(bare, 0.1)
    assert not chosen.proven
    of_split = {s: sum(text_number(key) in chosen.numbers for key in bare.keys(s)) for s in bare.splits}
    assert of_split == {"train": 4, "eval": 1}


def test_another_shard_of_sound_records_is_seen_before_anything_is_chosen(copied):
    """Also where none of its records would be taken."""
    for file in shard_files(copied):
        shutil.copy(file, f"{file}.kept")
        assert swap_records(Path(file))
        with pytest.raises(DatasetError, match="differs from the manifest"):
            stratified(copied, 0.01)
        shutil.move(f"{file}.kept", file)
    stratified(copied, 0.01)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_record_that_is_replaced_after_the_choice_is_in_no_dataset(copied, tmp_path, settled, damaged):
    chosen = stratified(copied, 0.5)
    file = shard_files(copied)[0]
    if damaged:
        data = bytearray(Path(file).read_bytes())
        data[len(data) // 2] ^= 1
        Path(file).write_bytes(data)
    else:
        assert swap_records(Path(file))
    with pytest.raises(DatasetError, match=f"{file}: does not match its hash in the manifest"):
        derive([copied], tmp_path / "new", how(chosen), quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["ds"]


# In a process that may fork, which this one with its threads may not.
_DERIVE = """
import sys
from shardwright.config.shards import ShardsConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.edit.derive import Derived, derive
from shardwright.running import processes
from shardwright.staging import ranges
assert processes.can_fork()
ranges._MOST_IMAGES, ranges._SMALL = int(sys.argv[4]), 0
source = ImageDataset.open(sys.argv[1])
derive([source], sys.argv[2], Derived("any", {}), shards=ShardsConfig(count=2), workers=int(sys.argv[3]), quiet=True)
"""


@pytest.mark.parametrize(("workers", "most"), [(1, 7), (3, 7), (3, 1)])
def test_ranges_and_workers_change_nothing(source, tmp_path, workers, most):
    derive([source], tmp_path / "whole", Derived("any", {}), shards=ShardsConfig(count=2), quiet=True)
    call = [sys.executable, "-c", _DERIVE, source.root, str(tmp_path / "new"), str(workers), str(most)]
    subprocess.run(call, check=True)
    assert tree(tmp_path / "new") == tree(tmp_path / "whole")


def test_a_killed_call_goes_on_at_its_ranges(source, tmp_path, monkeypatch):
    derive([source], tmp_path / "whole", Derived("any", {}), quiet=True)
    monkeypatch.setattr(ranges, "_MOST_IMAGES", 5)
    monkeypatch.setattr(ranges, "_SMALL", 0)
    carried = []

    def outcome(key, payload):
        carried.append(key)
        if len(carried) == 42:
            raise KeyboardInterrupt
        return RecordResult(key, payload)

    with pytest.raises(KeyboardInterrupt):
        derive([source], tmp_path / "new", Derived("any", {}, outcome=outcome), quiet=True)
    again = derive([source], tmp_path / "new", Derived("any", {}, outcome=outcome), quiet=True)
    # What was in a range that was finished is not read again; the one that was not has at most five records.
    assert again.totals["written"] < len(carried) <= again.totals["written"] + 5
    assert tree(tmp_path / "new") == tree(tmp_path / "whole")
