"""Decoded images that stay in memory between epochs: nothing else is learned, and only where that holds."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from recipes import changed
from training import RECIPE, spec_of

from shardwright import loader
from shardwright.components.image_trainer.devices.hosts import HostPlace
from shardwright.components.image_trainer.training import train
from shardwright.dataset.reader import ImageDataset
from shardwright.loader import memory

ALONE = HostPlace()
SIZE = (32, 32)
AUGMENTED = changed(RECIPE, batch_size=4, shuffle_buffer=5, augment=("flip_left_right", "brightness"))


@pytest.fixture(scope="module")
def data(tmp_path_factory, write_shapes):
    return write_shapes(tmp_path_factory.mktemp("kept") / "data", size=SIZE, counts={"train": 10, "eval": 2, "test": 1})


def batches_of(spec, count):
    found = train.work_of(spec, ALONE, 1, train.built_model(spec, "float32")).data(0)
    return [[np.asarray(part) for part in batch] for batch in found.take(count)]


def test_an_epoch_may_have_so_many_steps_whatever_is_read(data, tmp_path):
    spec = spec_of(tmp_path, data, AUGMENTED)
    work = [train.work_of(one, ALONE, 1, train.built_model(one, "float32"))
            for one in (spec, dataclasses.replace(spec, recipe=changed(spec.recipe, steps_per_epoch=7)))]  # fmt: skip
    assert [one.steps_per_epoch for one in work] == [2, 7]


def test_every_batch_of_every_epoch_is_the_same_one(data, tmp_path, monkeypatch):
    spec, caches = spec_of(tmp_path, data, AUGMENTED), []
    load = loader.load

    def noted(*args, **options):
        caches.append(options["cache"])
        return load(*args, **options)

    monkeypatch.setattr(loader, "load", noted)
    kept = batches_of(spec, 8)
    monkeypatch.setattr(memory, "MOST", 0)
    decoded = batches_of(spec, 8)
    assert caches == [loader.MEMORY, None]
    for mine, theirs in zip(kept, decoded, strict=True):
        for part, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(part, other)


def test_it_is_done_where_one_host_reads_one_shard_that_fits(data, tmp_path, monkeypatch):
    spec, dataset = spec_of(tmp_path, data), ImageDataset.open(data)
    each = SIZE[0] * SIZE[1] * 4
    assert train.fits_memory(spec, dataset, ALONE)
    exact = dataclasses.replace(spec, recipe=changed(RECIPE, order="exact"))
    assert not train.fits_memory(exact, dataset, ALONE)
    assert not train.fits_memory(spec, dataset, HostPlace(0, 2, "host:1"))
    # There one shard is read in pieces, which every epoch mixes again.
    assert not train.fits_memory(dataclasses.replace(spec, dataset="gs://bucket/data"), dataset, ALONE)
    shards = [SimpleNamespace(records=5), SimpleNamespace(records=0), SimpleNamespace(records=5)]
    several = SimpleNamespace(shards=lambda split: shards)
    assert not train.fits_memory(spec, several, ALONE)
    shards.pop()
    assert train.fits_memory(spec, several, ALONE)
    monkeypatch.setattr(memory, "MOST", 10 * each - 1)
    assert not train.fits_memory(spec, dataset, ALONE)
    monkeypatch.setattr(memory, "MOST", 10 * each)
    assert train.fits_memory(spec, dataset, ALONE)
    monkeypatch.setattr(loader, "room_in_memory", lambda: 2 * 10 * each - 1)
    assert not train.fits_memory(spec, dataset, ALONE)
