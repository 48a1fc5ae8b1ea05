"""Splits: a pure function of salt and key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.splits import Splitter, assign

SHARES = {"train": 0.8, "eval": 0.1, "test": 0.1}
KEYS = st.lists(st.text(max_size=12), unique=True, max_size=60).map(sorted)


def test_known_keys_stay_where_they_are():
    """Hashes from `printf '\\0a.jpg' | sha256sum`: eval below 0x1999…, test below 0x3333…, train above."""
    splitter = Splitter.of(SHARES)
    known = {
        "a.jpg": (0xF5728FFD78F3884B, "train"),
        "c.jpg": (0x2B2FB1AE7A9D54C4, "test"),
        "d.jpg": (0x098F346A875B2610, "eval"),
        "naïve.png": (0x218D4D9C6F9676A3, "test"),
    }
    assert {key: (splitter.hash(key), splitter.split(key)) for key in known} == known


@pytest.mark.parametrize("shares", [SHARES, {"train": 1.0}, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}])
def test_shares_are_kept_on_average(shares):
    splitter = Splitter.of(shares)
    splits = [splitter.split(f"image-{i}.jpg") for i in range(20_000)]
    for name, share in shares.items():
        assert abs(splits.count(name) / len(splits) - share) < 0.01


def test_the_order_in_the_configuration_plays_no_part():
    assert Splitter.of(SHARES) == Splitter.of(dict(reversed(SHARES.items())))


def test_a_salt_moves_keys():
    keys = [f"{i}.jpg" for i in range(200)]
    plain, salted = Splitter.of(SHARES), Splitter.of(SHARES, "x")
    assert [plain.split(k) for k in keys] != [salted.split(k) for k in keys]


@given(KEYS, KEYS)
def test_growing_data_moves_no_key_and_keeps_the_order(some, others):
    splitter = Splitter.of(SHARES)
    grown = sorted({*some, *others})
    before = assign(splitter, some)
    after = assign(splitter, grown)
    for split, positions in before.items():
        names = [some[i] for i in positions]
        assert [grown[i] for i in after[split] if grown[i] in set(some)] == names


@given(KEYS)
def test_every_key_is_assigned_once_to_its_own_split(keys):
    splitter = Splitter.of(SHARES, "salt")
    assigned = assign(splitter, keys)
    assert sorted(assigned) == sorted(SHARES)
    assert sorted(np.concatenate(list(assigned.values())).tolist()) == list(range(len(keys)))
    for split, positions in assigned.items():
        assert all(splitter.split(keys[i]) == split for i in positions)
        hashes = [splitter.hash(keys[i]) for i in positions]
        assert hashes == sorted(hashes)
