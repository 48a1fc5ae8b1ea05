"""Texts kept as UTF-8: a list in all but its memory."""

import pickle
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.storage.listing import StringArray

texts = st.lists(st.text(st.characters() | st.characters(categories=["Cs"])))


@given(texts, st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([1, 2, -1]))
def test_it_is_the_list(values, begin, end, step):
    kept = StringArray(values)
    assert kept == values
    assert values == kept
    assert (len(kept), list(kept), kept[begin:end:step]) == (len(values), values, values[begin:end:step])
    assert [kept[i] for i in range(-len(values), len(values))] == values * 2
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert kept != [*values, "x"]
    for beyond in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            kept[beyond]


def test_it_takes_little_more_than_the_characters():
    tracemalloc.start()
    try:
        kept = StringArray(f"{number:012d}.jpg" for number in range(50_000))
        assert tracemalloc.get_traced_memory()[0] < 50_000 * (16 + 8) * 1.15
    finally:
        tracemalloc.stop()
    assert kept[49_999] == "000000049999.jpg"
