"""Records of a shard: parsed in groups, pixels in other threads, written in order."""

from __future__ import annotations

import io
from pathlib import Path

import build
import numpy as np
import pytest
from PIL import Image

from shardwright.components.image_transform import rewrite, text
from shardwright.components.image_transform import transform_plan as planning
from shardwright.components.image_transform.rewrite import ShardTransform, rewritten
from shardwright.components.image_transform.transform_recipe import read_recipe, transform_recipe
from shardwright.components.image_transform.transformed_features import stored_features
from shardwright.config import TransformConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.storage import parallel
from shardwright.tfrecords.records import decode_example, frame, read_records

CLASSES, COUNT = ("Fish", "Sugar"), 37
CUT, MISJUDGED = 5, 20


@pytest.fixture(scope="module")
def payloads(small_dataset, tmp_path_factory):
    def change(number, example):
        if number == CUT:
            example["image/encoded"] = example["image/encoded"][:60]
        if number == MISJUDGED:
            example["image/height"] += 1
        return example

    dataset = small_dataset(tmp_path_factory.mktemp("records"), counts={"train": [COUNT]}, change=change)
    return [record for _, record in ImageDataset.open(dataset).records("train")]


@pytest.fixture(scope="module")
def how(payloads):
    kinds = {
        name: "bytes" if isinstance(values, list) else values.dtype.name
        for name, values in decode_example(payloads[0]).items()
    }
    recipe = TransformConfig((16, 16), "stretch", "jpeg", 90)
    return ShardTransform(recipe, "segmentation", CLASSES, stored_features(recipe, kinds, labels="multi", classes=2)[0])


def test_records_come_in_order_and_as_each_does_alone(payloads, how, monkeypatch):
    alone = [next(rewritten([payload], how)) for payload in payloads]
    assert [outcome.code for outcome, _ in alone if outcome.code] == ["truncated", "size_mismatch"]
    for most in (8 << 20, 700, 1):
        monkeypatch.setattr(parallel, "_GROUP_BYTES", most)
        assert list(rewritten(iter(payloads), how)) == alone
        assert list(rewritten(iter(payloads), how, threads=1)) == alone
    assert not list(rewritten([], how))


@pytest.mark.parametrize(("most", "limit"), [(8 << 20, 37), (1, 7)])
def test_few_records_are_in_memory_at_a_time_and_fewer_large_ones(payloads, how, monkeypatch, most, limit):
    monkeypatch.setattr(parallel, "_GROUP_BYTES", most)
    monkeypatch.setattr(rewrite, "usable_cores", lambda: 2)
    taken = written = ahead = 0

    def counted():
        nonlocal taken
        for payload in payloads:
            taken += 1
            yield payload

    for _ in rewritten(counted(), how):
        ahead = max(ahead, taken - written)
        written += 1
    assert written == COUNT
    assert ahead <= limit


def test_a_record_that_is_none_ends_the_shard(payloads, how):
    with pytest.raises(rewrite.records.RecordError):
        list(rewritten([*payloads[:3], b"\x0a\xff"], how))


def test_sums_are_those_of_the_stored_pixels(payloads, how):
    lossless = ShardTransform(TransformConfig((24, 36), "stretch", "png"), how.task, how.classes, how.stored)
    outcome, made = next(rewritten(payloads, lossless))
    pixels = np.asarray(Image.open(io.BytesIO(decode_example(outcome.payload)["image/encoded"][0])), np.int64)
    assert made.figures.channel_sum == pixels.sum(axis=(0, 1)).tolist()
    assert made.figures.channel_square_sum == (pixels**2).sum(axis=(0, 1)).tolist()


def test_sound_records_that_are_not_the_manifests_are_not_finished(small_dataset, tmp_path):
    """Sizes and checksums of records fit: only the hash of the whole file differs."""
    source = ImageDataset.open(small_dataset(tmp_path / "in", counts={"train": [4]}))
    recipe = transform_recipe(build.config(transform={"size": [16, 16]}))
    plan = planning.plan_transform(source, *read_recipe(recipe))
    staging = planning.open_staging(str(tmp_path / "staging"), plan.dataset)
    work = planning.TransformWork.of(source, plan, staging, {})
    (shard,) = source.shards("train")
    texts = [(plan.train[0], shard.file, shard.checksum)]
    whole = Path(shard.file).read_bytes()
    others = [frame(payload) for _, payload in reversed(list(read_records(shard.file)))]
    Path(shard.file).write_bytes(b"".join(others))
    with pytest.raises(DatasetError, match=r"tfrecord: differs from the manifest: damaged, or changed since\."):
        planning.write_numbered(0, work)
    with pytest.raises(DatasetError, match=r"differs from the manifest"):
        text.keep_texts(0, texts, ["image/key"], staging)
    Path(shard.file).write_bytes(whole)
    # Nothing of it counts as finished.
    text.keep_texts(0, texts, ["image/key"], staging)
    assert planning.write_numbered(0, work) == 4
