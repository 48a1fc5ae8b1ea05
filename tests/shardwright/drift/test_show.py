"""Changes are shown with the images that stand out most: by measures, by areas of masks, by classes."""

import re

import pytest

from shardwright.config.evaluation import DriftConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.drift.chapter import record_tiles
from shardwright.drift.monitor import check_drift
from shardwright.report.contact_sheets import Sheets
from shardwright.report.page import collect_page
from shardwright.tfrecords.encode import ints

IMAGES = 60


def grown(number, example):
    """Every mask of Fish is about ten times as large; the largest one is that of number 7."""
    area = 80 + number % 5 if number != 7 else 600
    return {**example, "image/segmentation/Fish/area": area, "image/class/label": ints([0])}


def small(number, example):
    return {**example, "image/segmentation/Fish/area": 8 + number % 5, "image/class/label": ints([0])}


def shifted(number, example):
    """Nearly all images are Sugar, where half of them were."""
    label = 0 if number % 10 == 0 else 1
    return {**example, "image/class/label": label}


def chapter(before, now):
    dataset = ImageDataset.open(now)
    watched = check_drift(dataset, DriftConfig(str(before)), ImageDataset.open(before).manifest.digest)
    return watched, watched.chapter(record_tiles(Sheets(collect_page(dataset).collected))).body


def part(body, title):
    """The card of a measure that has changed."""
    (found,) = [card for card in body.split('<div class="card wide">')[1:] if f"<bdi>{title}</bdi></h3>" in card]
    return found


@pytest.fixture(scope="module")
def masked(small_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("grown")
    return [
        small_dataset(root / name, counts={"train": [IMAGES]}, change=change)
        for name, change in (("before", small), ("now", grown))
    ]


def test_masks_that_grew_are_shown_the_largest_first(masked):
    watched, body = chapter(*masked)
    assert "area/Fish" in {finding.measure for finding in watched.comparison.drifted}
    card = part(body, "area of Fish")
    keys = re.findall('<span class="k"><bdi>(.*?)</bdi>', card)
    assert len(keys) == 12
    assert keys[0] == "train/0007"
    assert set(keys[1:]) <= {f"train/{number:04d}" for number in range(IMAGES) if number % 5 == 4}
    assert "<svg" in card
    assert "area of Fish</bdi> 0.694" in card


def test_images_of_the_class_that_grew_are_shown(small_dataset, tmp_path):
    before = small_dataset(tmp_path / "before", task="classification", counts={"train": [IMAGES]})
    now = small_dataset(tmp_path / "now", task="classification", counts={"train": [IMAGES]}, change=shifted)
    watched, body = chapter(before, now)
    assert [finding.measure for finding in watched.comparison.drifted] == ["classes"]
    card = part(body, "balance of the classes")
    tiles = re.findall("<figure>.*?</figure>", card)
    assert len(tiles) == 12
    assert all("<bdi>Sugar</bdi>" in tile for tile in tiles)
    assert "+40.0 %" in card
