"""Numbers that stand for texts: the same ones everywhere and in every version, since samples are drawn by them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.dataset.example_view import sampling_hash
from shardwright.storage.fingerprint import canonical_json, fingerprint, text_number


@pytest.mark.parametrize(
    ("text", "number"),
    # The first eight bytes of BLAKE3, by `b3sum`; half of them, made odd.
    [("", 0xAF1349B9F5F9A1A6), ("a.jpg", 0x823A6D9FA016B87F), ("0:é/1.png", 0x52CC3686C2F3AC59)],
)
def test_known_texts_keep_their_numbers(text, number):
    assert text_number(text) == number // 2 | 1


@given(st.text(), st.text())
def test_every_text_has_a_number_of_its_own_that_fits_a_column(one, other):
    assert 0 < text_number(one) < 2**63
    assert (text_number(one) == text_number(other)) == (one == other)
    assert 0 < sampling_hash(one) < 1


def test_the_order_of_keys_changes_no_fingerprint():
    assert canonical_json({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'
    assert fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1}) != fingerprint({"a": 1, "b": 2})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_json_has_no_fingerprint(number):
    with pytest.raises(ValueError, match="Out of range"):
        fingerprint([number])
