"""Masks in TFRecords: run lengths and images, by class, by object, by value."""

import numpy as np
import pytest
from ingesting import examples, ledger, run
from recording import labeled, mask_png, reading, record, write_records

from shardwright.errors import ConfigError, UsageError
from shardwright.masks import rle
from shardwright.tfrecords.encode import byte_strings, ints


def _drawn(features, name):
    runs = features[f"image/segmentation/{name}/rle"].reshape(-1, 2)
    return rle.draw(runs, *(int(features[f"image/{side}"][0]) for side in ("height", "width")))


def test_masks_of_class_numbers_are_read_with_255_ignored(tmp_path):
    pixels = np.zeros((10, 12))
    pixels[1:9, 1:8], pixels[2:8, 2:7], pixels[2:5, 2:7] = 255, 1, 2
    payloads = [record(i, **{"image/segmentation/class/encoded": mask_png(np.roll(pixels, i))}) for i in range(5)]
    write_records(tmp_path / "in/a.rec", payloads)
    manifest = run(reading(tmp_path / "in", "segmentation", classes=["road", "car"]), tmp_path / "out")
    assert manifest.classes == ("road", "car")
    found = examples(tmp_path / "out")["a.rec/2"]
    for value, name in ((1, "road"), (2, "car"), (255, "ignore")):
        assert np.array_equal(_drawn(found, name), np.roll(pixels, 2) == value)
    assert run(reading(tmp_path / "in", "segmentation"), tmp_path / "detected").classes == ("1", "2")


def test_object_masks_go_to_the_classes_next_to_them(tmp_path):
    first, second = np.zeros((10, 12)), np.zeros((10, 12))
    first[2:4], second[3:7, 5:] = 1, 1
    features = {
        "image/object/mask": byte_strings([mask_png(first), mask_png(second), mask_png(np.roll(first, 4))]),
        "image/object/class/text": byte_strings([b"cat", b"dog", b"cat"]),
        "image/object/class/label": ints([2, 1, 2]),
    }
    write_records(tmp_path / "in/a.rec", [record(i, **features) for i in range(3)])
    manifest = run(reading(tmp_path / "in", "segmentation"), tmp_path / "out")
    assert manifest.classes == ("dog", "cat")
    found = examples(tmp_path / "out")["a.rec/0"]
    assert np.array_equal(_drawn(found, "cat"), (first + np.roll(first, 4)) > 0)
    assert np.array_equal(_drawn(found, "dog"), second)
    assert found["image/object/class/label"].tolist() == [2, 1, 2]


def test_run_lengths_of_one_class_are_read_in_the_dialect_that_is_given(tmp_path):
    payloads = [record(i, rle=b"1 3 14 2") for i in range(3)]
    write_records(tmp_path / "in/a.rec", payloads)
    raw = reading(tmp_path / "in", "segmentation", classes=["salt"])
    raw["input"]["labels"] = {"format": "tfrecord", "columns": {"mask": "rle"}, "rle": {"order": "row"}}
    run(raw, tmp_path / "out")
    expected = np.zeros(120)
    expected[[0, 1, 2, 13, 14]] = 1
    assert np.array_equal(_drawn(examples(tmp_path / "out")["a.rec/0"], "salt"), expected.reshape(10, 12))


def test_bad_masks_are_rejected_without_a_path(tmp_path):
    good = record(0, **{"segmentation_mask/Fish": mask_png(np.ones((10, 12)))})
    small = record(1, **{"segmentation_mask/Fish": mask_png(np.ones((3, 3)))})
    cut = record(2, **{"segmentation_mask/Fish": mask_png(np.ones((10, 12)))[:50]})
    number = record(3, **{"segmentation_mask/Fish": 7})
    write_records(tmp_path / "in/a.rec.gz", [good, small, cut, number], "gzip")
    run({**reading(tmp_path / "in", "segmentation"), "rejects": {"max_fraction": 0.8}}, tmp_path / "out")
    rows = {key: row for key, row in ledger(tmp_path / "out").items() if row.status != "written"}
    assert {key: row.code for key, row in rows.items()} == {
        "a.rec.gz/1": "size_mismatch",
        "a.rec.gz/2": "bad_mask",
        "a.rec.gz/3": "bad_feature",
    }
    assert not any(part in row.reason for row in rows.values() for part in ("unpacked", "tmp", "staging"))
    assert "byte" in rows["a.rec.gz/1"].reason


def test_an_ignored_region_of_ours_comes_back(tmp_path):
    features = {
        "image/segmentation/Fish/rle": ints([3, 4]),
        "image/segmentation/ignore/rle": ints([50, 10]),
    }
    write_records(tmp_path / "in/a.rec", [record(i, **features) for i in range(3)])
    manifest = run(reading(tmp_path / "in", "segmentation"), tmp_path / "out")
    found = examples(tmp_path / "out")["a.rec/0"]
    assert manifest.classes == ("Fish",)
    assert found["image/segmentation/ignore/rle"].tolist() == [50, 10]


def test_segmentation_needs_masks(tmp_path):
    write_records(tmp_path / "in/a.rec", labeled(3))
    with pytest.raises(UsageError, match=r"(?s)no feature has a usual name of masks.*columns: \{mask: NAME\}"):
        run(reading(tmp_path / "in", "segmentation"), tmp_path / "out")


def test_masks_saved_as_colors_of_equal_parts_are_numbers_and_other_colors_are_refused(tmp_path):
    gray = np.zeros((10, 12), np.uint8)
    gray[3:5] = 7
    write_records(tmp_path / "in/a.rec", [record(i, mask=mask_png(np.stack([gray] * 3, axis=-1))) for i in range(3)])
    assert run(reading(tmp_path / "in", "segmentation"), tmp_path / "out").classes == ("7",)
    assert np.array_equal(_drawn(examples(tmp_path / "out")["a.rec/1"], "7"), gray == 7)
    red = np.stack([gray, gray * 0, gray * 0], axis=-1)
    write_records(tmp_path / "red/b.rec", [record(i, mask=mask_png(red)) for i in range(3)])
    with pytest.raises(ConfigError, match=r"b\.rec, mask at byte \d+ holds colors \(#000000, #070000\)"):
        run(reading(tmp_path / "red", "segmentation"), tmp_path / "two")


def test_values_that_are_not_a_class_are_what_the_user_states(tmp_path):
    pixels = np.zeros((10, 12))
    pixels[3:5], pixels[7] = 7, 9
    write_records(tmp_path / "in/a.rec", [record(i, mask=mask_png(pixels)) for i in range(3)])
    raw = reading(tmp_path / "in", "segmentation", classes={"car": 7})
    raw["input"]["labels"] = {"format": "tfrecord", "unlisted_values": "ignore"}
    run(raw, tmp_path / "out")
    found = examples(tmp_path / "out")["a.rec/1"]
    assert np.array_equal(_drawn(found, "car"), pixels == 7)
    assert np.array_equal(_drawn(found, "ignore"), pixels == 9)


@pytest.mark.parametrize("name", ["a\nb", "a\x1fb"])
def test_classes_that_cannot_be_part_of_a_name_are_refused(tmp_path, name):
    payloads = [record(i, **{"image/class/label": 0, "image/class/text": name.encode()}) for i in range(3)]
    write_records(tmp_path / "in/a.rec", payloads)
    with pytest.raises(UsageError, match=r"a\.rec, record 0 at offset 0: the class .* cannot be part"):
        run(reading(tmp_path / "in"), tmp_path / "out")
