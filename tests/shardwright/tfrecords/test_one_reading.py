"""One reading of a record: what our readers read of it, both parsers of TensorFlow read, or all of ours refuse it."""

import random

import pytest
from record_fields import DELIMITED, FIXED32, VARINT, Field, difference, encoded, mutated, ours

FEW = 600


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def example(*entries):
    return [Field(1, DELIMITED, list(entries))]


def entry(*fields):
    return Field(1, DELIMITED, list(fields))


NAME = Field(1, DELIMITED, b"a")
INTS = Field(3, DELIMITED, [Field(1, DELIMITED, b"\x05\x07")])
MORE = Field(3, DELIMITED, [Field(1, DELIMITED, b"\x09")])
FLOATS = Field(2, DELIMITED, [Field(1, DELIMITED, b"\0\0\x80?")])
WHOLE = entry(NAME, Field(2, DELIMITED, [INTS]))
OTHER = entry(NAME, Field(2, DELIMITED, [MORE]))

READ = {
    "an empty Example": [],
    "an empty map": example(),
    "an empty list": example(entry(NAME, Field(2, DELIMITED, [Field(3, DELIMITED, [])]))),
    "no kind": example(entry(NAME, Field(2, DELIMITED, []))),
    "value before name": example(entry(Field(2, DELIMITED, [INTS]), NAME)),
    "two maps": [*example(WHOLE), *example(entry(Field(1, DELIMITED, b"b"), Field(2, DELIMITED, [MORE])))],
    "one by one": example(entry(NAME, Field(2, DELIMITED, [Field(3, DELIMITED, [Field(1, VARINT, -1)] * 2)]))),
    "floats one by one": example(
        entry(NAME, Field(2, DELIMITED, [Field(2, DELIMITED, [Field(1, FIXED32, b"\0\0\x80?")] * 2)]))
    ),
    "numbers in more bytes than they need": example(
        entry(NAME, Field(2, DELIMITED, [Field(3, DELIMITED, [Field(1, DELIMITED, b"\x85\x80\x80\x00")])]))
    ),
    "unknown fields": [Field(9, VARINT, 3), *example(WHOLE), Field(7, DELIMITED, b"xy"), Field(5, FIXED32, bytes(4))],
}
REFUSED = {
    "a feature twice": example(WHOLE, OTHER),
    "a feature twice, in two maps": [*example(WHOLE), *example(OTHER)],
    "a feature twice, the second without a kind": example(WHOLE, entry(NAME, Field(2, DELIMITED, []))),
    "two names": example(entry(NAME, Field(1, DELIMITED, b"b"), Field(2, DELIMITED, [INTS]))),
    "two values": example(entry(NAME, Field(2, DELIMITED, [INTS]), Field(2, DELIMITED, [MORE]))),
    "no name": example(entry(Field(2, DELIMITED, [INTS]))),
    "no value": example(entry(NAME)),
    "two kinds": example(entry(NAME, Field(2, DELIMITED, [INTS, FLOATS]))),
    "one kind twice": example(entry(NAME, Field(2, DELIMITED, [INTS, MORE]))),
    "packed in two pieces": example(entry(NAME, Field(2, DELIMITED, [Field(3, DELIMITED, [*INTS.body, *MORE.body])]))),
    "packed in part": example(
        entry(NAME, Field(2, DELIMITED, [Field(3, DELIMITED, [Field(1, VARINT, 5), *MORE.body])]))
    ),
    "an unknown field of the map": example(WHOLE, Field(7, DELIMITED, b"xy")),
    "an unknown field of a feature": example(entry(NAME, Field(2, DELIMITED, [INTS, Field(9, VARINT, 1)]))),
    "an unknown field of a list": example(
        entry(NAME, Field(2, DELIMITED, [Field(3, DELIMITED, [*INTS.body, Field(2, VARINT, 1)])]))
    ),
    "an unknown field of an entry": example(entry(NAME, Field(2, DELIMITED, [INTS]), Field(3, VARINT, 1))),
    "a tag in more bytes than it needs": [Field(1, DELIMITED, [WHOLE], pad_tag=1)],
    "a length in more bytes than it needs": [Field(1, DELIMITED, [WHOLE], pad_length=4)],
    "a number of more than 64 bits": example(
        entry(NAME, Field(2, DELIMITED, [Field(3, DELIMITED, [Field(1, DELIMITED, b"\xff" * 9 + b"\x7f")])]))
    ),
    "a number of eleven bytes": example(
        entry(NAME, Field(2, DELIMITED, [Field(3, DELIMITED, [Field(1, DELIMITED, b"\x80" * 10 + b"\x00")])]))
    ),
    "a group": [Field(9, 3, b""), Field(9, 4, b""), *example(WHOLE)],
    "feature lists": [*example(WHOLE), Field(2, DELIMITED, b"")],
    "a name that is not UTF-8": example(entry(Field(1, DELIMITED, b"\xff"), Field(2, DELIMITED, [INTS]))),
}


@pytest.mark.parametrize("case", READ)
def test_what_both_parsers_of_tensorflow_read_alike_is_read(tf, case):
    data = encoded(READ[case])
    assert ours(data) is not None
    assert difference(tf, data) == ""


@pytest.mark.parametrize("case", REFUSED)
def test_what_parsers_read_differently_is_refused_by_all_our_readers(case):
    assert ours(encoded(REFUSED[case])) is None


def test_no_mistake_in_the_fields_is_read_otherwise_than_by_tensorflow(tf):
    draw, read = random.Random(7), 0
    for _ in range(FEW):
        data, mistakes = mutated(draw)
        assert difference(tf, data) == ""
        read += mistakes > 0 and ours(data) is not None
    assert read > FEW / 20  # The rest is refused, as it should be.
