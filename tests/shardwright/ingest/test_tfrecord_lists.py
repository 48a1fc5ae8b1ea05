"""TFRecords as input: lists of classes and names of files come through as they are."""

import pytest
from ingesting import examples, run
from recording import reading, record, write_records

from shardwright.tfrecords.encode import byte_strings, ints


def as_lists(found):
    return {key: {name: list(values) for name, values in features.items()} for key, features in found.items()}


def test_lists_of_classes_keep_their_order_and_repeats(tmp_path):
    """A captcha's digits, for example."""
    digits = [[3, 1, 4, 1], [2, 2, 2, 2], [0, 3, 2, 1]]
    write_records(tmp_path / "in/a.rec", [record(i, label=ints(listed)) for i, listed in enumerate(digits)])
    manifest = run(reading(tmp_path / "in"), tmp_path / "out")
    assert (manifest.labels, manifest.classes) == ("multi", ("0", "1", "2", "3", "4"))
    found = as_lists(examples(tmp_path / "out"))
    for i, listed in enumerate(digits):
        assert found[f"a.rec/{i}"]["image/class/label"] == listed
        assert found[f"a.rec/{i}"]["image/class/text"] == [b"%d" % digit for digit in listed]


def test_lists_of_one_class_over_and_over_are_lists_too(tmp_path):
    write_records(tmp_path / "in/a.rec", [record(i, label=ints([i % 2] * 4)) for i in range(4)])
    assert run(reading(tmp_path / "in"), tmp_path / "out").labels == "multi"
    assert as_lists(examples(tmp_path / "out"))["a.rec/1"]["image/class/label"] == [1] * 4


def test_classes_of_boxes_are_each_once_the_classes_of_the_image(tmp_path):
    names = byte_strings([b"dog", b"cat", b"dog"])
    write_records(tmp_path / "in/a.rec", [record(i, **{"image/object/class/text": names}) for i in range(3)])
    run(reading(tmp_path / "in"), tmp_path / "out")
    found = as_lists(examples(tmp_path / "out"))["a.rec/1"]
    assert found["image/class/text"] == [b"cat", b"dog"]
    assert found["image/object/class/text"] == [b"dog", b"cat", b"dog"]


@pytest.mark.parametrize("feature", ["image/filename", "filename"])
def test_names_that_are_not_unique_are_kept_as_file_names(tmp_path, feature):
    """They cannot be keys, but nothing is lost."""
    payloads = [record(i, label=i % 2, **{feature: b"frame%d.jpg" % (i % 9)}) for i in range(12)]
    write_records(tmp_path / "in/a.rec", payloads)
    run(reading(tmp_path / "in"), tmp_path / "out")
    found = examples(tmp_path / "out")
    for i in range(12):
        key = f"frame{i}.jpg" if i < 9 else f"a.rec/{i}"
        assert found[key]["image/filename"] == [b"frame%d.jpg" % (i % 9)]


def test_file_names_that_name_groups_are_kept(tmp_path):
    payloads = [record(i, label=i % 2, **{"image/filename": b"cow.jpg"}) for i in range(4)]
    write_records(tmp_path / "in/a.rec", payloads)
    run(reading(tmp_path / "in"), tmp_path / "out")
    found = examples(tmp_path / "out")
    assert {key: example["image/filename"] for key, example in found.items()} == {
        f"a.rec/{i}": [b"cow.jpg"] for i in range(4)
    }
