"""The meaning of the values of masks: classes, background, what is ignored; detected where it is not configured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import IGNORE
from shardwright.formats.mask_values import map_ids, map_values
from shardwright.images.colors import COLOR, color_number, show_value


def detect(*values, classes=None):
    return map_values(dict.fromkeys(values, "masks/a.png"), classes)


@given(st.sets(st.integers(0, 0xFFFF), min_size=1, max_size=20))
def test_every_id_is_its_class_and_0_and_255_are_others_only_if_no_class_has_them(ids):
    ids = sorted(ids)
    mapped = map_ids({f"c{number}": number for number in ids})
    assert mapped.names == tuple(f"c{number}" for number in ids)
    assert [mapped.labels[number] for number in ids] == list(range(len(ids)))
    assert (mapped.labels[0] is None) == (0 not in ids)
    assert (mapped.labels[255] == IGNORE) == mapped.ignore == (255 not in ids)
    assert set(mapped.labels) == {*ids, 0, 255}


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({"a": -1}, "input.classes.a: -1 is not a value of a mask"),
        ({"a": 65536}, "65536 is not a value of a mask"),
        ({"a": 2 * COLOR}, "is not a value of a mask"),
        ({"a": 1, "b": COLOR}, "some classes have numbers and some colors"),
        ({"ignore": 1}, "it contains only ignored values"),
    ],
)
def test_ids_that_no_mask_can_hold_are_refused(classes, message):
    with pytest.raises(ConfigError, match=message):
        map_ids(classes)


def test_colors_have_black_as_background_and_ignore_what_they_name():
    mapped = map_ids({"ignore": COLOR + 9, "road": COLOR + 3})
    assert mapped.names == ("road",)
    assert mapped.labels == {COLOR: None, COLOR + 3: 0, COLOR + 9: IGNORE}
    assert not map_ids({"road": COLOR + 3}).ignore


@pytest.mark.parametrize(
    ("values", "classes", "names", "labels"),
    [
        ((0, 3, 5), None, ("3", "5"), {0: None, 3: 0, 5: 1}),
        ((0, 3, 255), None, ("3",), {0: None, 3: 0, 255: IGNORE}),
        ((0, 10, 9), None, ("9", "10"), {0: None, 9: 0, 10: 1}),
        ((0, 255, 300), None, ("255", "300"), {0: None, 255: 0, 300: 1}),
        ((0, 255), None, ("mask",), {0: None, 255: 0}),
        ((255,), {"ship": None}, ("ship",), {0: None, 255: 0}),
        ((0, 1, 255), {"ship": None}, ("ship",), {0: None, 1: 0, 255: IGNORE}),
        ((0, 255), {"a": None, "b": None}, ("a", "b"), {0: None, 1: 0, 2: 1, 255: IGNORE}),
        ((0, 2), {"Background": None, "a": None, "b": None}, ("Background", "a", "b"), {0: 0, 1: 1, 2: 2}),
        ((0, 7), {"7": None, "9": None}, ("7", "9"), {0: None, 7: 0, 9: 1}),
        ((0, 255), {"1": None, "255": None}, ("1", "255"), {0: None, 1: 0, 255: 1}),
        ((0,), {"a": None}, ("a",), {0: None, 1: 0}),
    ],
)
def test_values_are_detected(values, classes, names, labels):
    mapped = detect(*values, classes=classes)
    assert (mapped.names, mapped.labels) == (names, labels)
    # The detected classes have the same meaning when they are given.
    again = detect(*values, classes=dict.fromkeys(names))
    assert (again.names, again.labels) == (names, labels)


def test_values_that_are_no_class_are_refused_by_name():
    with pytest.raises(UsageError, match=r"masks/a.png: the class '2' is not in input.classes. Known are: a \(1\)"):
        detect(0, 1, 2, classes={"a": None})
    with pytest.raises(UsageError, match="none are given, and the annotations name none"):
        detect(0)
    with pytest.raises(ConfigError, match="'ignore' cannot be the name of a class of masks"):
        detect(0, 1, classes={"a": None, "ignore": None})


@given(st.integers(0, 0xFFFFFF))
def test_colors_are_detected_by_their_text(number):
    value = color_number(f"#{number:06x}")
    assert value == COLOR + number
    assert show_value(value) == f"#{number:06x}"
    assert show_value(number % COLOR) == str(number)


@pytest.mark.parametrize("text", ["", "#12345", "#1234567", "123456", "#12345g", "##12345", "#12345\n"])
def test_other_texts_are_no_colors(text):
    assert color_number(text) is None
