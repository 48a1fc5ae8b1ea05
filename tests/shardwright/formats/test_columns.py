"""Types of columns: detected from all values, in any order; lists and codes are not numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import UsageError
from shardwright.formats.columns import SEPARATORS, TypeVotes, ValueType, split_list

INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def detect(values):
    votes = TypeVotes()
    for line, value in enumerate(values, start=2):
        votes.add(value, f"row {line}")
    return votes.detect("column 'x'")


@given(st.lists(INTEGERS, min_size=1))
def test_whole_numbers_are_integers_and_come_back(numbers):
    values = [str(number) for number in numbers]
    column_type, _ = detect([*values, "", " "])
    assert column_type == ValueType("int")
    assert [column_type.read(value) for value in values] == [[number] for number in numbers]


@given(st.lists(FLOATS, min_size=1), st.booleans())
def test_decimal_numbers_are_floats_and_come_back_as_float32(numbers, missing):
    values = [repr(float(number)) for number in numbers]
    column_type, _ = detect([*values, *["", "nan", "NaN"][: 3 * missing]])
    assert column_type == ValueType("float")
    assert np.array([column_type.read(value)[0] for value in values], np.float32).tolist() == numbers
    assert column_type.read("nan") == column_type.read("") == []


@given(st.lists(INTEGERS), st.text(alphabet="xyz", min_size=1), st.data())
def test_one_other_value_anywhere_makes_a_column_of_numbers_text(numbers, other, data):
    values = [str(number) for number in numbers]
    values.insert(data.draw(st.integers(0, len(values))), other)
    column_type, reason = detect(values)
    assert column_type == ValueType("text")
    assert reason == f"row {values.index(other) + 2} holds {other!r}"
    assert column_type.read(f" {other} ") == [other]


@given(st.lists(st.lists(INTEGERS, min_size=1, max_size=4), min_size=1), st.sampled_from(SEPARATORS), st.data())
def test_lists_of_numbers_are_detected_and_come_back(lists, separator, data):
    floats = data.draw(st.booleans())
    lists.append([1, 2, 3])
    values = [separator.join(f"{n}.5" if floats else str(n) for n in numbers) for numbers in lists]
    shuffled = data.draw(st.permutations(values))
    column_type, reason = detect(shuffled)
    assert column_type == ValueType("floats" if floats else "ints", separator)
    assert "splits its values" in reason
    if not floats:
        assert [column_type.read(value) for value in values] == lists


@given(
    st.lists(st.sampled_from(["1", "2.5", "x", "1 2", "1;2.5", "[3]", "", "007", "1,2,3", "nan", "9" * 20])), st.data()
)
def test_the_order_of_the_values_does_not_matter(values, data):
    column_type, _ = detect(values)
    assert detect(data.draw(st.permutations(values)))[0] == column_type
    for value in values:
        column_type.read(value)  # The type that all values decided reads each of them.


@pytest.mark.parametrize(
    ("values", "column_type"),
    [
        (["007", "012"], ValueType("text")),
        (["0", "10"], ValueType("int")),
        (["9223372036854775807"], ValueType("int")),
        (["9223372036854775808"], ValueType("text")),
        (["1e400"], ValueType("text")),
        (["1e3", "-2"], ValueType("float")),
        (["3.4e38"], ValueType("float")),
        (["3.5e38"], ValueType("text")),
        (["inf"], ValueType("text")),
        (["+49 171"], ValueType("text")),
        (["٣"], ValueType("text")),
        (["1_000"], ValueType("text")),
        (["2024-01-02"], ValueType("text")),
        (["[1, 2]", "[3]"], ValueType("ints", ",")),
        (["(1 2.5)", "3"], ValueType("floats", " ")),
        (["[]", "[1]"], ValueType("ints", " ")),
        (["2.5", "1 2"], ValueType("floats", " ")),
        (["1 2", "2.5"], ValueType("floats", " ")),
        (["1|2", "1 2"], ValueType("text")),
        (["1,2", "1,2,3"], ValueType("ints", ",")),
        (["1,,2"], ValueType("text")),
        ([], ValueType("text")),
        (["nan", ""], ValueType("text")),
    ],
)
def test_types_of_values(values, column_type):
    assert detect(values)[0] == column_type


def test_decimal_commas_are_not_guessed():
    with pytest.raises(UsageError, match=r"column 'x': its values with a comma may be decimal numbers or lists of two"):
        detect(["1,5", "2,25", "7"])


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "x"),
        ("int", "1.5"),
        ("int", "1 2"),
        ("int", "9" * 25),
        ("float", "1,5"),
        ("float", "1e39"),
        ("ints", "1|x"),
    ],
)
def test_a_value_of_another_type_is_refused(kind, text):
    with pytest.raises(ValueError, match="is not a "):
        ValueType(kind).read(text)


def test_a_declared_type_reads_what_would_be_detected_otherwise():
    assert ValueType("int").read("007") == [7]
    assert ValueType("float").read("7") == [7.0]
    assert ValueType("text").read("7") == ["7"]
    assert ValueType("text").read("nan") == ["nan"]
    assert ValueType("ints").read("[1, 2]") == ValueType("ints").read("1 2") == ValueType("ints").read("1|2") == [1, 2]
    assert ValueType("floats").read("nan") == ValueType("floats").read("[]") == []
    assert ValueType("texts", "|").read("a b| c ||") == ["a b", "c"]
    assert ValueType("texts", " ").read(" a  b ") == ["a", "b"]


@given(st.lists(st.text(alphabet="ab", min_size=1), min_size=1), st.sampled_from(["|", ";", ","]))
def test_splitting_undoes_joining(parts, separator):
    assert split_list(separator.join(parts), separator) == parts
    assert split_list(f"[{separator.join(parts)}]", separator) == parts
