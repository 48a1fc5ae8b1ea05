"""Single features of an example: always the values of the general parser."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tfrecords.encode import (
    EncodedFeature,
    RecordError,
    byte_strings,
    encode_entries,
    encode_entry,
    encode_example,
    floats,
    ints,
    join_entries,
)
from shardwright.tfrecords.lazy_example import LazyExample, ReplacedFeatures
from shardwright.tfrecords.records import decode_example
from shardwright.tfrecords.wire import delimited

FEATURES = st.dictionaries(
    st.text("ab/é", min_size=1, max_size=5),
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5).map(ints),
        st.lists(st.integers(0, 2**20), max_size=12).map(ints),
        st.lists(st.floats(width=32, allow_nan=False), max_size=3).map(floats),
        st.lists(st.binary(max_size=140), max_size=2).map(byte_strings),
    ),
    max_size=4,
)


def same(one, other):
    if isinstance(other, list):
        return one == other
    return one.dtype == other.dtype and np.array_equal(one, other)


@given(FEATURES)
def test_every_feature_equals_that_of_the_general_parser(features):
    data = encode_example(features)
    example = LazyExample(data)
    for name, values in decode_example(data).items():
        assert same(example.get(name), values)
        first = values[0] if len(values) else None
        assert example.first(name) == first
    assert example.get("not there") is None


@given(FEATURES, st.sets(st.text("ab/é", min_size=1, max_size=2)))
def test_what_is_carried_is_written_as_it_was(features, parsed):
    data = encode_example(features)
    carried = LazyExample(data).carry(parsed.__contains__)
    assert {name for name, values in carried.items() if not isinstance(values, EncodedFeature)} == parsed & set(
        features
    )
    for name in parsed & set(features):
        assert same(carried[name], decode_example(data)[name])
    again = {name: values if isinstance(values, EncodedFeature) else features[name] for name, values in carried.items()}
    assert encode_example(again) == data
    assert join_entries({name: encode_entry(name, value) for name, value in again.items()}) == data
    arrays = {
        name: ints(value) if isinstance(value, np.ndarray) and value.dtype == np.int64 else again[name]
        for name, value in carried.items()
    }
    assert join_entries(encode_entries(arrays)) == data
    # In two messages, which protobuf merges.
    assert LazyExample(b"\x0a\x00" + data).carry(parsed.__contains__).keys() == carried.keys()


@given(FEATURES, FEATURES, st.sets(st.text("ab/é", min_size=1, max_size=2)))
def test_an_example_with_features_replaced_is_that_of_all_of_them(features, new, lost):
    lost |= set(new)
    expected = {**{name: value for name, value in features.items() if name not in lost}, **new}
    body = encode_example(features)
    unsorted = b"".join(delimited(1, encode_entry(name, value)[2:]) for name, value in reversed(features.items()))
    layouts = [body, b"\x0a\x00" + body]
    if all(len(encode_entry(name, value)) < 128 for name, value in features.items()):
        layouts.append(delimited(1, unsorted))
    for data in layouts:
        example = LazyExample(data)
        assert b"".join(example.replaced(lost.__contains__, new)) == encode_example(expected)
        made, seen = LazyExample(encode_example(expected)), ReplacedFeatures(example, new)
        for name in expected:
            assert same(seen.get(name), made.get(name))
            assert (seen.first(name), seen.packed(name), seen.length(name)) == (
                made.first(name),
                made.packed(name),
                made.length(name),
            )


def test_damage_is_an_error_whether_a_feature_is_parsed_or_carried():
    data = encode_example({"a": ints([1, 2, 3]), "b": ints([4])})
    cut = data.replace(b"\x01\x02\x03", b"\x01\x02\x83")
    for parsed in ("a", "b", ""):
        with pytest.raises(RecordError, match="cut off"):
            LazyExample(cut).carry(parsed.__eq__)


def test_a_name_that_is_no_text_is_refused():
    data = encode_example({"name": 1}).replace(b"name", b"\xff\xfe\xff\xfe")
    with pytest.raises(RecordError, match="a feature's name is not UTF-8"):
        LazyExample(data)


@given(FEATURES, st.data())
def test_damage_is_an_error_or_the_result_of_the_general_parser(features, data):
    raw = bytearray(encode_example({**features, "x": 1}))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        example = LazyExample(bytes(raw))
        found = {name: example.get(name) for name in ("x", *features)}
    except RecordError:
        return
    for values in found.values():
        assert values is None or isinstance(values, (list, np.ndarray))


def test_plain_values():
    example = LazyExample(encode_example({"i": -3, "f": 0.5, "b": "é".encode(), "raw": b"\xff", "none": ints([])}))
    assert (example.first("i"), example.first("f"), example.first("b")) == (-3, 0.5, "é".encode())
    assert (example.number("i"), example.number("b"), example.number("none")) == (-3, None, None)
    assert (example.texts("b"), example.texts("raw"), example.texts("i")) == (["é"], ["\ufffd"], [])
    assert example.integers("b") == []
    assert [example.length(name) for name in ("b", "raw", "i", "gone")] == [2, 1, 0, 0]


def test_a_cut_example_is_named():
    data = encode_example({"a": b"x" * 300})
    with pytest.raises(RecordError, match=r"tf\.train\.Example"):
        LazyExample(data[:5]).get("a")
