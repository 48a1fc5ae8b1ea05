"""Subsets: who is chosen, how much is read for it, and that nothing that is not the manifest's comes in."""

import dataclasses
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from damage import swap_records
from hypothesis import given
from hypothesis import strategies as st
from ingesting import examples, tree

from shardwright.dataset.example_view import sampling_hash
from shardwright.dataset.reader import ImageDataset
from shardwright.edit import derive as edit_derive
from shardwright.edit.derive import Derived, derive
from shardwright.edit.subset import _Stratum, stratified
from shardwright.errors import DatasetError
from shardwright.storage.checksum import digest_of
from shardwright.storage.fingerprint import text_number
from shardwright.tfrecords.records import read_records

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
def whole(monkeypatch):
    """The files of which whole shards were read for their records."""
    files = []
    read_through = edit_derive._read_whole

    def noted(group):
        for one in group:
            files.append(one.shard.file)
            yield from read_through([one])

    monkeypatch.setattr(edit_derive, "_read_whole", noted)
    return files


def how(chosen, proofs=None):
    return Derived(
        "subset",
        {},
        lambda key: text_number(key) in chosen.numbers,
        digests=chosen.digests if proofs is None else proofs,
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
    ("options", "sparse"),
    [
        ({"share": 0.05}, True),
        ({"count": 5}, True),
        ({"share": 0.1, "classes": ["Fish"]}, True),
        ({"share": 0.5}, False),
        ({"share": 0.5, "classes": ["Fish", "Sugar"]}, False),
        ({"splits": ["eval"]}, False),
    ],
)
def test_what_few_records_are_is_known_without_reading_whole_shards_again(source, tmp_path, whole, options, sparse):
    chosen = stratified(source, **options)
    derive([source], tmp_path / "new", how(chosen), quiet=True)
    assert bool(whole) != sparse
    derive([source], tmp_path / "other", how(chosen, {}), quiet=True)
    assert tree(tmp_path / "new") == tree(tmp_path / "other")
    assert {text_number(key) for key in examples(tmp_path / "new")} == chosen.numbers


def test_a_shard_is_read_whole_where_a_record_of_it_is_not_known(source, tmp_path, whole):
    chosen = stratified(source, 0.05)
    file, known = next(iter(chosen.digests.items()))
    known.pop(next(iter(known)))
    derive([source], tmp_path / "new", how(chosen), quiet=True)
    assert whole == [file]
    derive([source], tmp_path / "other", how(chosen, {}), quiet=True)
    assert tree(tmp_path / "new") == tree(tmp_path / "other")


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
    assert not chosen.digests
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
def test_a_record_that_is_replaced_after_the_choice_is_in_no_dataset(copied, tmp_path, damaged):
    chosen = stratified(copied, 0.05)
    file, known = next(iter(chosen.digests.items()))
    offset = next(iter(known))
    data = bytearray(Path(file).read_bytes())
    at = dict(read_records(file))
    other = next((o for o, payload in at.items() if o not in known and len(payload) == len(at[offset])), None)
    size = len(at[offset]) + 16
    if damaged:
        data[offset + size // 2] ^= 1
    else:
        assert other is not None
        data[offset : offset + size] = data[other : other + size]
    Path(file).write_bytes(data)
    with pytest.raises(DatasetError, match=f"{file}: does not match its hash in the manifest"):
        derive([copied], tmp_path / "new", how(chosen), quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["ds"]


@given(st.lists(st.integers(0, 10**6), unique=True, min_size=1, max_size=60), st.floats(0, 1), st.floats(0.01, 0.33))
def test_a_stratum_knows_the_lowest_and_all_below_the_bound(numbers, below, part):
    stratum = _Stratum()
    for number in numbers:
        stratum.add_with_digest(str(number), 0, below, number, 7 * number, b"%d" % number)
    lots = [sampling_hash(str(number)) for number in numbers]
    taken = stratum.lowest(max(1, round(part * len(numbers))))
    assert [lots[i] for i in taken] == sorted(lots)[: len(taken)]
    known = {shard for shard, _, _ in stratum.digests(taken)}
    assert numbers[int(np.argmin(lots))] in known
    assert known <= {numbers[i] for i in taken}
    assert {numbers[i] for i in taken if lots[i] < below} <= known
    for shard, offset, digest in stratum.digests(taken):
        assert (offset, digest) == (7 * shard, digest_of(b"%d" % shard))
