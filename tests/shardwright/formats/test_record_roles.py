"""Which feature of a record is what: detected from names and values, overridden, refused where two fit."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import mask_png, picture

from shardwright.errors import UsageError
from shardwright.formats.record_roles import Roles, Sampled, detect_roles
from shardwright.tfrecords.encode import encode_example, floats, ints
from shardwright.tfrecords.records import decode_example

IMAGE = {"image/encoded": picture(0)}


def detect(*records, task="classification", **columns):
    samples = [Sampled(f"a.rec, record {i}", decode_example(encode_example(r))) for i, r in enumerate(records)]
    return detect_roles(samples, task, columns)


@pytest.mark.parametrize(
    ("record", "roles"),
    [
        (
            {
                **IMAGE,
                "image/filename": b"a.jpg",
                "image/class/label": 1,
                "image/class/text": b"cat",
                "image/key": b"k",
            },
            Roles("image/encoded", "image/key", "image/class/text", "image/class/label"),
        ),
        ({"image": picture(0), "class": 1, "label": b"rose"}, Roles("image", "", "label", "class")),
        ({"image": picture(0), "class": 3, "id": b"a1"}, Roles("image", "id", "class")),
        ({"image": picture(0), "image_id": 7, "target": 2}, Roles("image", "image_id", "target")),
        ({"png": picture(0, "png"), "label": 1, "filename": b"a"}, Roles("png", "filename", "label")),
        ({"image_raw": picture(0), "mask": mask_png([[0, 1]]), "label": 1}, Roles("image_raw", "", "label")),
        ({**IMAGE, "label": 1, "path": b"\xff\xfe"}, Roles("image/encoded", "", "label")),
        ({**IMAGE, "label": b"BMW", "id": 1}, Roles("image/encoded", "id", "label")),
        ({**IMAGE, "captions": b"A cat."}, Roles("image/encoded", caption="captions")),
    ],
)
def test_roles_are_detected_from_usual_names_and_values(record, roles):
    assert detect(record) == roles


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"image/segmentation/Fish/rle": ints([1, 2])}, ("runs", "name")),
        ({"image/segmentation/Fish/rle": ints([])}, ("runs", "name")),
        ({"image/segmentation/Fish/rle_text": b"1 2"}, ("texts", "name")),
        ({"segmentation_mask/Fish": mask_png([[0, 1]])}, ("images", "name")),
        ({"segmentation_mask": mask_png([[0, 1]])}, ("images", "value")),
        ({"image/segmentation/class/encoded": mask_png([[0, 1]])}, ("images", "value")),
        ({"image/object/mask": mask_png([[0, 1]]), "image/object/class/label": 1}, ("images", "label")),
    ],
)
def test_masks_are_detected(features, expected):
    roles = detect({**IMAGE, **features}, task="segmentation")
    assert (roles.form, roles.classed) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b"1 2 3 4", ("texts", "label")), (ints([0, 4]), ("runs", "label")), (mask_png([[0, 1]]), ("images", "value"))],
)
def test_the_form_of_configured_masks_is_detected_by_its_values(value, expected):
    roles = detect({**IMAGE, "thing": value}, task="segmentation", mask="thing")
    assert (roles.mask, roles.form, roles.classed) == ("thing", *expected)


@pytest.mark.parametrize(
    ("record", "task", "message"),
    [
        ({"left": picture(0), "right": picture(1), "label": 1}, "classification", r"columns: \{image: left\}"),
        ({"bytes": picture(0), "label": 1}, "classification", r"bytes \(image\), label .*\n\n.*\{image: bytes\}"),
        ({**IMAGE, "label": 1, "target": 2}, "classification", "label and target may be the class"),
        ({**IMAGE, "label": b"a", "class_name": b"b"}, "classification", "label and class_name may be the class"),
        ({"image": floats(np.zeros(300)), "label": 1}, "classification", "decoded pixels are not read"),
        ({"image_raw": bytes(range(200)), "label": 1}, "classification", "decoded pixels are not read"),
        ({**IMAGE, "age": 1, "site": b"x"}, "classification", r"\{label: age\}"),
        (IMAGE, "segmentation", "no feature has a usual name of masks"),
        ({**IMAGE, "mask_a": mask_png([[1]]), "mask_b": mask_png([[1]])}, "segmentation", r"\{mask: mask_a\}"),
    ],
)
def test_where_nothing_or_two_fit_the_user_decides(record, task, message):
    with pytest.raises(UsageError, match=message):
        detect(record, task=task)


def test_a_bad_record_among_good_ones_decides_nothing():
    good = {**IMAGE, "label": 1, "id": b"x"}
    roles = detect({**good, "id": b"1"}, {"image/encoded": ints([1]), "label": b"\xff"}, {**good, "id": b"2"})
    assert roles == Roles("image/encoded", "id", "label")


def test_a_note_names_what_was_detected():
    note = detect({**IMAGE, "segmentation_mask/Fish": mask_png([[0, 1]]), "id": b"1"}, task="segmentation").note()
    assert note == (
        "tfrecord: image from feature 'image/encoded', key from feature 'id', masks (images) from feature "
        "'segmentation_mask/<class>'"
    )


_VALUES = st.one_of(
    st.binary(max_size=60),
    st.just(picture(0)),
    st.lists(st.integers(-5, 5), max_size=3).map(ints),
    st.lists(st.floats(0, 1, width=32), max_size=3).map(floats),
    st.text(max_size=9).map(str.encode),
)
_NAMES = st.sampled_from(
    ["image/encoded", "image", "label", "class", "id", "image/key", "mask", "caption", "x", "image/object/mask"]
)


@given(
    st.lists(st.dictionaries(_NAMES, _VALUES), min_size=1, max_size=4),
    st.sampled_from(["segmentation", "classification"]),
)
def test_any_features_are_detected_or_refused(records, task):
    with suppress(UsageError):
        roles = detect(*records, task=task)
        assert roles.image in {name for record in records for name in record}
        assert roles.mask or task == "classification"
