"""The disk space of a run: the estimate is not below what it stores, and a full disk is refused before any work."""

import shutil
from collections import namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.config import ImagesConfig
from shardwright.config.transform import TransformConfig
from shardwright.errors import StorageError
from shardwright.pipelines.runs import disk_space
from shardwright.pipelines.runs.disk_space import check_disk_space, estimate_space, same_disk

Usage = namedtuple("Usage", "total used free")


def test_as_it_came_a_dataset_takes_what_its_files_take():
    needed = estimate_space(100, 50_000_000, ImagesConfig(), TransformConfig(size=(352, 544)))
    assert 50_000_000 <= needed.dataset <= 51_000_000
    assert 100 * 352 * 544 * 0.4 <= needed.transformed <= 100 * 352 * 544
    assert needed.total == needed.dataset + needed.transformed + needed.rest


@tries(20)
@given(st.integers(1, 10**6), st.integers(1, 10**12), st.sampled_from(["jpeg", "png", "tensor", "raw"]))
def test_more_images_never_take_less(images, size, encoding):
    trained = TransformConfig(size=(64, 96), encoding=encoding)
    one, more = (estimate_space(n * images, n * size, ImagesConfig(), trained) for n in (1, 2))
    assert more.dataset >= one.dataset
    assert more.transformed > one.transformed


def test_values_of_every_pixel_are_counted():
    stored = ImagesConfig(encoding="raw", resize="stretch", size=(100, 200))
    assert estimate_space(10, 1, stored, TransformConfig()).dataset >= 10 * 100 * 200 * 3
    kept = estimate_space(10, 10**6, ImagesConfig(encoding="png"), TransformConfig(resize="keep", encoding="png"))
    assert kept.dataset > 10**6
    assert kept.transformed > 10**6


def test_a_full_disk_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda place: Usage(10**12, 0, 3_400_000_000))
    line = check_disk_space(str(tmp_path), 3_000_000_000, "the run")
    assert line == f"the run takes about 3.0 GB in {tmp_path}, where 3.4 GB are free"
    with pytest.raises(
        StorageError, match=r"takes about 3\.5 GB .* 3\.4 GB are free\. Free some space \(`shardwright clean`"
    ):
        check_disk_space(str(tmp_path), 3_500_000_000, "the run")
    with pytest.raises(StorageError, match=r"If the estimate, .* is wrong, set run\.space: warn"):
        check_disk_space(str(tmp_path), 3_500_000_000, "the run")
    line = check_disk_space(str(tmp_path), 3_500_000_000, "the run", only_warn=True)
    assert "3.4 GB are free: too little by this estimate" in line
    assert check_disk_space(str(tmp_path), 3_000_000_000, "the run", only_warn=True).endswith("3.4 GB are free")
    assert check_disk_space("gs://bucket/x", 10**15, "the run") == ""
    monkeypatch.undo()
    assert shutil.disk_usage(tmp_path).free > 0
    assert same_disk(str(tmp_path), str(tmp_path / "not/there/yet"))
