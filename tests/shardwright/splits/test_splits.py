"""Splits by hash: a pure function of salt and name, and the order inside a split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.splits import Folds, Splitter, assign_splits, hash_name, hash_names, join_units, split_order

SHARES = {"train": 0.8, "eval": 0.1, "test": 0.1}
KEYS = st.lists(st.text(max_size=12), unique=True, max_size=60).map(sorted)


def splits_of(keys, shares=SHARES, salt=""):
    found = assign_splits(join_units(keys, salt=salt), shares)
    return [found.names[number] for number in found.split_of]


def test_known_keys_stay_where_they_are():
    """Hashes from `printf '\\0a.jpg' | sha256sum`: eval below 0x1999…, test below 0x3333…, train above."""
    known = {
        "a.jpg": (0xF5728FFD78F3884B, "train"),
        "c.jpg": (0x2B2FB1AE7A9D54C4, "test"),
        "d.jpg": (0x098F346A875B2610, "eval"),
        "naïve.png": (0x218D4D9C6F9676A3, "test"),
    }
    splits = splits_of(list(known))
    assert {key: (hash_name(key), split) for key, split in zip(known, splits, strict=True)} == known


@pytest.mark.parametrize("shares", [SHARES, {"train": 1.0}, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}])
def test_shares_are_kept_within_five_deviations_of_the_binomial(shares):
    count = 20_000
    splits = splits_of([f"image-{i:05d}.jpg" for i in range(count)], shares)
    for name, share in shares.items():
        assert abs(splits.count(name) - share * count) <= 5 * (share * (1 - share) * count) ** 0.5


def test_the_order_in_the_configuration_plays_no_part():
    assert Splitter.of(SHARES) == Splitter.of(dict(reversed(SHARES.items())))


def test_shares_count_by_their_sum():
    assert Splitter.of({"a": 1, "b": 3}).bounds == Splitter.of({"a": 0.25, "b": 0.75}).bounds == (2**62,)


def test_a_salt_moves_keys():
    keys = sorted(f"{i}.jpg" for i in range(200))
    assert splits_of(keys) != splits_of(keys, salt="x")


@given(KEYS, KEYS)
def test_growing_data_moves_no_key_and_keeps_the_order(some, others):
    grown = sorted({*some, *others})
    orders = []
    for keys in (some, grown):
        units = join_units(keys)
        orders.append(split_order(units.of_keys, assign_splits(units, SHARES).split_of, 3))
    before, now = orders
    for split, positions in enumerate(before):
        assert [grown[i] for i in now[split] if grown[i] in set(some)] == [some[i] for i in positions]


@given(KEYS)
def test_every_key_is_assigned_once_and_ordered_by_its_hash(keys):
    units = join_units(keys, salt="salt")
    found = assign_splits(units, SHARES)
    assert found.names == ("eval", "test", "train")
    assert sum(found.counts().values()) == len(keys)
    order = split_order(units.of_keys, found.split_of, 3)
    assert sorted(i for positions in order for i in positions.tolist()) == list(range(len(keys)))
    for split, positions in enumerate(order):
        assert (found.split_of[positions] == split).all()
        hashes = [hash_name(keys[i], "salt") for i in positions]
        assert hashes == sorted(hashes)


def test_what_is_in_no_split_is_in_no_order():
    order = split_order(hash_names(["a", "b", "c"]), np.array([1, -1, 1]), 3)
    assert [sorted(positions.tolist()) for positions in order] == [[], [0, 2], []]


def test_an_earlier_dataset_comes_before_the_input():
    declared, previous = np.array([0, 0, 2]), np.array([1, -1, -1])
    units = join_units(["a", "b", "c"])
    assert assign_splits(units, SHARES, declared=declared, previous=previous).split_of.tolist() == [1, 0, 2]


def test_a_fold_is_eval_in_the_round_of_its_number():
    parts = Folds(3, 1).parts(SHARES)
    assert [Folds(3, 1).split(part) for part in sorted(parts)] == ["train", "eval", "train", "test"]
