"""Numbers in the wire format of protocol buffers, written and read: one list or several at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tfrecords.wire import WireError, pack_int64, pack_int64_lists, unpack_int64, unpack_int64_lists, varint

# Numbers of every length in bytes, and around the borders between them.
NUMBERS = st.one_of(
    st.integers(0, 300),
    st.integers(0, 63).flatmap(lambda bits: st.integers(max(0, 2**bits - 2), min(2**bits + 2, 2**63 - 1))),
    st.integers(-(2**63), -1),
)
SMALL = st.one_of(st.integers(0, 300), st.integers(0, 27).map(lambda bits: 2**bits), st.just(2**28 - 1))
LISTS = st.one_of(st.lists(NUMBERS, max_size=20), st.lists(SMALL, max_size=40))


def written_one_by_one(numbers):
    return b"".join(varint(number & (2**64 - 1)) for number in numbers)


@given(LISTS)
def test_a_list_is_its_numbers_one_by_one_and_comes_back(numbers):
    packed = pack_int64(np.array(numbers, np.int64))
    assert packed == written_one_by_one(numbers)
    found = unpack_int64(memoryview(packed))
    assert found.dtype == np.int64
    assert found.tolist() == numbers


@given(st.lists(LISTS, max_size=4))
def test_several_lists_are_each_alone(lists):
    packed = pack_int64_lists([np.array(numbers, np.int64) for numbers in lists])
    assert packed == [written_one_by_one(numbers) for numbers in lists]
    assert [found.tolist() for found in unpack_int64_lists([*map(memoryview, packed)])] == lists


@pytest.mark.parametrize("packed", [b"\x80", b"\x01\xff", b"\x80" * 10 + b"\x01"])
def test_what_is_no_number_is_refused(packed):
    with pytest.raises(WireError, match="a number"):
        unpack_int64(packed)
    # Also where the next list would go on with it.
    with pytest.raises(WireError, match="a number"):
        unpack_int64_lists([memoryview(packed), memoryview(b"\x01")])


@pytest.mark.parametrize("number", [127, 128, 2**14, 2**21, 2**28 - 1, 2**28, 2**35, 2**63 - 1])
def test_the_largest_number_of_a_size_comes_back_and_so_does_the_next(number):
    values = np.full(9, number, np.int64)
    assert pack_int64(values) == varint(number) * 9
    assert unpack_int64(pack_int64(values)).tolist() == values.tolist()


@given(st.binary(max_size=24))
def test_few_bytes_are_read_as_many_are(packed):
    """Few bytes are read without arrays, which those of a mask before them make worth it."""
    before = b"\x7f" * 300

    def outcome(data):
        try:
            return unpack_int64(data).tolist()
        except WireError:
            return None

    many = outcome(before + packed)
    assert outcome(packed) == (None if many is None else many[300:])
