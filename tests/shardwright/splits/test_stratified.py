"""Stratified splits and folds: every class has its share, with any number of classes in an image."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.splits import ClassTable, Folds, assign_splits, join_units

TENTHS = {"train": 0.8, "eval": 0.1, "test": 0.1}
SHARES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(
    lambda weights: {f"part{i}": weight / sum(weights) for i, weight in enumerate(weights)}
)
LABELS = st.lists(st.integers(0, 8), max_size=80)
LABEL_SETS = st.lists(st.sets(st.integers(0, 4), max_size=3), max_size=60)


def keys_of(count):
    return [f"{i:04d}.jpg" for i in range(count)]


def table(labels):
    """From one label an image, or a set of them."""
    pairs = [(i, c) for i, shown in enumerate(labels) for c in (shown if isinstance(shown, set) else {shown})]
    images, classes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return ClassTable(images, classes)


def stratified(labels, shares=TENTHS, groups=None, **options):
    return assign_splits(join_units(keys_of(len(labels)), groups), shares, table=table(labels), **options)


@given(LABELS, SHARES)
def test_every_class_has_its_share_rounded_up_or_down(labels, shares):
    found = stratified(labels, shares)
    counts = Counter(zip(labels, found.split_of.tolist(), strict=True))
    for label, total in Counter(labels).items():
        for number, name in enumerate(found.names):
            assert abs(counts[label, number] - Fraction(shares[name]).limit_denominator(1000) * total) < 1


@given(LABELS, SHARES)
def test_all_images_together_have_their_shares(labels, shares):
    for name, count in stratified(labels, shares).counts().items():
        assert abs(count - shares[name] * len(labels)) < 2


@pytest.mark.parametrize("each", [1, 3, 5, 7])
def test_many_small_classes_do_not_empty_the_small_splits(each):
    found = stratified([i // each for i in range(each * 200)])
    assert abs(found.counts()["eval"] - 20 * each) <= 1
    assert abs(found.counts()["test"] - 20 * each) <= 1


def test_shares_are_exact_where_arithmetic_allows_it():
    found = stratified([i % 4 for i in range(40)])
    assert found.counts() == {"eval": 4, "test": 4, "train": 32}
    assert sorted(np.bincount(np.arange(40)[found.split_of == 0] % 4).tolist()) == [1, 1, 1, 1]


def test_classes_of_images_with_several_have_their_shares():
    random = np.random.default_rng(3)
    shown = random.random((2000, 5)) < [0.5, 0.3, 0.05, 0.4, 0.2]
    found = stratified([set(np.flatnonzero(row).tolist()) for row in shown])
    for number, name in enumerate(found.names):
        mine = shown[found.split_of == number]
        assert np.abs(mine.sum(axis=0) - TENTHS[name] * shown.sum(axis=0)).max() <= 2
        assert abs((~mine.any(axis=1)).sum() - TENTHS[name] * (~shown.any(axis=1)).sum()) <= 2
        assert abs(len(mine) - TENTHS[name] * 2000) <= 10  # The classes come first, and images show more or fewer.


@given(LABEL_SETS, st.data())
def test_the_order_of_the_table_plays_no_part(labels, data):
    whole = table(labels)
    order = np.array(data.draw(st.permutations(range(len(whole.images)))), dtype=np.int64)
    shuffled = ClassTable(whole.images[order], whole.classes[order])
    keys = keys_of(len(labels))
    one, other = (assign_splits(join_units(keys), TENTHS, table=t).split_of for t in (whole, shuffled))
    assert (one == other).all()


@given(LABEL_SETS, st.data())
def test_an_earlier_dataset_is_filled_up_and_moves_nothing(labels, data):
    old = np.array(data.draw(st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=len(labels), max_size=len(labels))))
    old = old.astype(np.int64)
    found = stratified(labels, previous=old)
    assert (found.split_of[old >= 0] == old[old >= 0]).all()
    assert (found.split_of >= 0).all()
    assert found.kept == (old >= 0).sum()


def test_new_images_even_out_what_the_old_ones_lack():
    labels = [0] * 50 + [1] * 50
    old = np.full(100, -1, dtype=np.int64)
    old[:40] = 2  # 40 images of class 0 in train, none anywhere else
    old[50:90] = 2
    found = stratified(labels, previous=old)
    for label in (0, 1):
        counts = Counter(found.split_of[50 * label : 50 * label + 50].tolist())
        assert counts == {0: 5, 1: 5, 2: 40}


@pytest.mark.parametrize("full", range(3))
def test_old_images_of_any_split_count_towards_its_share(full):
    labels = [0] * 30 + [1] * 30
    old = np.full(60, -1, dtype=np.int64)
    old[:10] = full
    old[30:40] = (full + 1) % 3
    found = stratified(labels, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, previous=old)
    for label in (0, 1):
        assert Counter(found.split_of[30 * label : 30 * label + 30].tolist()) == {0: 10, 1: 10, 2: 10}


@given(LABEL_SETS, st.lists(st.integers(0, 20), min_size=60, max_size=60))
def test_groups_lie_whole_in_one_split(labels, numbers):
    groups = [str(number) if number else "" for number in numbers[: len(labels)]]
    found = stratified(labels, groups=groups)
    sides = {(group, split) for group, split in zip(groups, found.split_of.tolist(), strict=True) if group}
    assert len(sides) == len({group for group, _ in sides})
    assert (found.split_of >= 0).all()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 15)), max_size=60),
    st.integers(2, 6),
    st.booleans(),
    st.booleans(),
)
def test_every_image_but_those_of_test_is_eval_in_one_fold(images, count, by_class, by_group):
    keys = keys_of(len(images))
    options = {"table": table([c for c, _ in images])} if by_class else {}
    units = join_units(keys, [str(group) for _, group in images] if by_group else None)
    rounds = [assign_splits(units, TENTHS, folds=Folds(count, fold), **options) for fold in range(count)]
    tests = {tuple(np.flatnonzero(found.split_of == 1).tolist()) for found in rounds}
    assert len(tests) == 1
    evaluated = np.sum([found.split_of == 0 for found in rounds], axis=0)
    evaluated[list(tests.pop())] += 1
    assert (evaluated == 1).all()
    for found in rounds:
        assert found.names == ("eval", "test", "train")
        if by_group:
            assert len({(g, s) for (_, g), s in zip(images, found.split_of.tolist(), strict=True)}) == len(
                {g for _, g in images}
            )


def test_stratified_folds_have_equal_shares_of_every_class():
    labels = [i % 3 for i in range(300)]
    for fold in range(5):
        found = stratified(labels, folds=Folds(5, fold))
        assert found.counts() == {"eval": 54, "test": 30, "train": 216}
        assert np.bincount(np.array(labels)[found.split_of == 0]).tolist() == [18, 18, 18]


def test_stratified_folds_cannot_be_grown():
    with pytest.raises(ValueError, match="which fold"):
        stratified([0, 1], folds=Folds(2, 0), previous=np.array([-1, 0]))


def test_known_images_stay_where_they_are():
    """Ties go by the hash, so that another version that breaks them otherwise would move images."""
    labels = [{0}, {1}, {0, 1}, {2}, set(), {2}, {0}, {1}, {2, 0}, {1}, {0}, set()]
    found = stratified(labels, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert found.split_of.tolist() == [2, 2, 0, 0, 0, 2, 1, 2, 1, 1, 0, 1]


def test_known_groups_stay_where_they_are():
    """Large ones are dealt first, with any hash."""
    labels = [{0}] * 12 + [{1}, {0, 1}, set()]
    groups = [*"aaabbcdefghi", "", "", ""]
    found = stratified(labels, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, groups=groups)
    assert found.split_of.tolist() == [2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 2, 1, 0, 1, 2]
