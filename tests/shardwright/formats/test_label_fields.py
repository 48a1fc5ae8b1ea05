"""Label fields: one class or several, detected from all fields, and refused where both readings fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import UsageError
from shardwright.formats.columns import SEPARATORS, split_list
from shardwright.formats.label_csv import SeparatorGuess, detect_multi_label, detect_separator

NAMES = st.lists(st.text(alphabet="abcdefgh", min_size=1, max_size=4), min_size=2, max_size=6, unique=True)


def detect(fields, classes=None):
    return detect_separator(list(dict.fromkeys(fields)), classes, "t.csv, column 'label'")[0]


@given(NAMES, st.sampled_from(SEPARATORS), st.data())
def test_lists_of_classes_that_also_stand_alone_are_detected(names, separator, data):
    combinations = st.lists(st.sampled_from(names), min_size=2, max_size=4, unique=True)
    lists = [separator.join(some) for some in data.draw(st.lists(combinations, min_size=1, max_size=5))]
    fields = data.draw(st.permutations([*lists, *names]))
    assert detect(fields) == separator
    assert detect(fields, names) == separator
    reading = SeparatorGuess(True, separator)
    assert [separator.join(reading.split(field)) for field in fields] == fields


@given(NAMES, st.sampled_from([" ", ", "]))
def test_names_of_several_words_stay_names(names, between):
    fields = [f"{name}1{between}{name}2" for name in names]
    assert detect(fields) == ""
    assert detect([*fields, *names]) == ""
    assert detect(fields, fields) == ""


@pytest.mark.parametrize(
    ("fields", "separator"),
    [
        (["rose", "tulip"], ""),
        (["red rose", "white rose", "rose"], ""),
        (["hot dog", "dog", "cat"], ""),
        (["scab", "rust", "complex", "scab rust", "scab rust complex"], " "),
        (["Mass|Pleural Effusion"], "|"),
        (["No Finding", "Mass|No Finding"], "|"),
        (["a;b", "c"], ";"),
        (["a, b", "b, a"], ","),
        (["0 16", "25"], " "),
        (["0 16"], " "),
        (["1,2,3"], ","),
        (["['a', 'b']"], ","),
        (["['a']", "[]"], ","),
        (["[a] b, c", "d"], ""),
        (["a b, c d", "a b", "c d"], ","),
        (["Tomato, late blight", "Potato, early blight"], ""),
        (["a ", " b"], ""),
        (["a,"], ""),
        ([], ""),
    ],
)
def test_separators_of_fields(fields, separator):
    assert detect(fields) == separator


@pytest.mark.parametrize(
    "fields",
    [["cat", "dog", "cat dog", "hot dog"], ["Tomato, late blight", "Tomato, late", "Tomato", "late", "x, y"]],
)
def test_two_readings_that_fit_are_refused(fields):
    with pytest.raises(
        UsageError, match=r"t\.csv, column 'label': .* may be several classes.*input\.labels\.separator"
    ):
        detect(fields)


@pytest.mark.parametrize(
    ("fields", "classes", "separator"),
    [
        (["red rose", "rose"], ["red rose", "rose"], ""),
        (["cat dog", "bird"], ["cat", "dog", "bird"], " "),
        (["cat dog", "bird"], ["cat", "dog"], ""),
        (["3 4"], ["cat", "dog"], " "),
        (["a|b c"], ["a", "b c"], "|"),
    ],
)
def test_classes_of_the_configuration_decide(fields, classes, separator):
    assert detect(fields, classes) == separator


def test_a_class_whose_parts_are_classes_is_refused():
    with pytest.raises(UsageError, match="'cat dog' is in input.classes, and so are its parts"):
        detect(["cat dog"], ["cat", "dog", "cat dog"])


@pytest.mark.parametrize(
    ("images", "several", "multi"), [(4, 1, False), (4, 2, False), (4, 3, True), (1000, 49, False), (1000, 200, True)]
)
def test_many_images_with_different_rows_are_meant_and_few_are_mistakes(images, several, multi):
    assert detect_multi_label(images, several, "t.csv") == multi


def test_neither_many_nor_few_is_refused():
    with pytest.raises(UsageError, match=r"100 of 1000 images name different classes.*input\.labels\.multi_label"):
        detect_multi_label(1000, 100, "t.csv")


@given(st.text(), st.sampled_from(SEPARATORS))
def test_any_text_can_be_split(field, separator):
    parts = split_list(field, separator, blank=False)
    assert all(part == part.strip() != "" for part in parts)
    assert SeparatorGuess(True, separator).split(field) == tuple(dict.fromkeys(parts))
