"""All readers see the same dataset, and a reader that sees something else is named."""

import re

import numpy as np
import pytest
from ingesting import run
from recording import labeled, reading, write_records

from benchmarks import readers
from shardwright.dataset.reader import ImageDataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    root = tmp_path_factory.mktemp("readers")
    write_records(root / "records/a.tfrecord", labeled(9))
    run(reading(root / "records"), root / "ds", workers=1)
    return ImageDataset.open(root / "ds")


def test_all_readers_see_the_same(dataset):
    found = readers.compare(dataset, "train")
    assert "load" in found
    assert set(found.values()) == {""}


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda item: item | {"image": item["image"] ^ np.uint8(1)}, r"pixels of .*\.jpg differ by 1"),
        (lambda item: item | {"label": item["label"] + 1}, r"label of .*\.jpg differ"),
        (lambda item: None, r"\d images are missing"),
    ],
)
def test_a_difference_is_named(dataset, monkeypatch, change, difference):
    def wrong(_, source):
        return (changed for item in source if (changed := change(item)) is not None)

    monkeypatch.setattr(readers, "READERS", {"wrong": wrong})
    (found,) = readers.compare(dataset, "train").values()
    assert re.fullmatch(difference, found)
