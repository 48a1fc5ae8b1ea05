"""Groups and clusters stay on one side; what would join two sides is written to neither."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.splits import Splitter, assign_splits, folder_split, hash_names, split_named
from shardwright.splits.assignment import join_units

SHARES = {"train": 0.6, "eval": 0.2, "test": 0.2}
NAMES = ("eval", "test", "train")
MANY = 30


def lists(of):
    return st.lists(of, min_size=MANY, max_size=MANY)


# Sparse, so that there are units of old images of one side, of two, and of none.
GROUPS = lists(st.sampled_from([*[""] * 15, "a", "b", "c", "d", "e"]))
CLUSTERS = lists(st.integers(-24, 8)).map(lambda ids: np.maximum(np.array(ids, dtype=np.int64), -1))
OLD = lists(st.sampled_from([*[-1] * 6, 0, 1, 2])).map(lambda ids: np.array(ids, dtype=np.int64))
KEYS = [f"{i:02d}.jpg" for i in range(MANY)]


def components(groups, clusters):
    """By brute force: images that reach each other."""
    tied = [
        [
            i == j or (groups[i] and groups[i] == groups[j]) or (clusters[i] >= 0 and clusters[i] == clusters[j])
            for j in range(MANY)
        ]
        for i in range(MANY)
    ]
    reach = np.array(tied, dtype=bool)
    for _ in range(5):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    return {tuple(np.flatnonzero(row).tolist()) for row in reach}


@given(GROUPS, CLUSTERS)
def test_images_that_are_tied_together_are_in_one_split(groups, clusters):
    found = assign_splits(join_units(KEYS, groups, clusters), SHARES)
    units = components(groups, clusters)
    assert all(len({int(found.split_of[i]) for i in unit}) == 1 for unit in units)
    assert (found.split_of >= 0).all()
    assert not found.leaks


@given(GROUPS, CLUSTERS, OLD)
def test_new_images_follow_old_ones_and_bridges_go_nowhere(groups, clusters, old):
    found = assign_splits(join_units(KEYS, groups, clusters), SHARES, previous=old)
    split_of = found.split_of.tolist()
    torn = 0
    for unit in components(groups, clusters):
        sides = {int(old[i]) for i in unit if old[i] >= 0}
        torn += len(sides) > 1
        for i in unit:
            if old[i] >= 0:
                assert split_of[i] == old[i]
            elif len(sides) > 1:
                assert split_of[i] == -1
                one, other = found.bridging[i]
                assert {one, other} <= set(unit)
                assert -1 != old[one] != old[other] != -1
            elif sides:
                assert {split_of[i]} == sides
        if not sides:
            assert len({split_of[i] for i in unit}) == 1
            assert split_of[unit[0]] >= 0
    assert sorted(found.bridging) == [i for i, split in enumerate(split_of) if split < 0]
    assert len(found.leaks) == torn


def test_an_image_that_joins_two_old_clusters_is_written_to_neither():
    clusters = np.array([7, 7, 7, -1])
    units = join_units(["a", "b", "new", "z"], clusters=clusters)
    found = assign_splits(units, SHARES, previous=np.array([2, 0, -1, -1]))
    assert found.bridging == {2: (0, 1)}
    assert found.leaks == [(0, 1)]
    assert found.split_of.tolist()[:3] == [2, 0, -1]


def test_a_group_goes_where_its_name_is_hashed():
    names = [f"patient-{i}" for i in range(40)]
    keys = sorted(f"{name}/{i}.jpg" for name in names for i in range(2))
    found = assign_splits(join_units(keys, [key.split("/")[0] for key in keys]), SHARES)
    assert (
        found.split_of.tolist() == Splitter.of(SHARES).parts(hash_names([key.split("/")[0] for key in keys])).tolist()
    )
    assert set(found.split_of.tolist()) == {0, 1, 2}


@given(st.sets(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9))), st.data())
def test_growing_data_moves_no_group(images, data):
    some = data.draw(st.sets(st.sampled_from(sorted(images)))) if images else set()

    def by_key(chosen):
        chosen = sorted(chosen)
        keys = [f"{group}/{i}" for group, i in chosen]
        found = assign_splits(join_units(keys, [group for group, _ in chosen]), SHARES)
        return dict(zip(keys, found.split_of.tolist(), strict=True))

    assert by_key(some).items() <= by_key(images).items()


def test_an_image_without_a_group_goes_by_its_key():
    found = assign_splits(join_units(KEYS, [""] * MANY), SHARES)
    assert (found.split_of == assign_splits(join_units(KEYS), SHARES).split_of).all()


@given(CLUSTERS, OLD)
def test_the_splits_of_the_input_are_used_and_leaks_are_counted(clusters, declared):
    declared = np.abs(declared)
    found = assign_splits(join_units(KEYS, clusters=clusters), SHARES, declared=declared)
    assert (found.split_of == declared).all()
    sides = {}
    for cluster, split in zip(clusters.tolist(), declared.tolist(), strict=True):
        sides.setdefault(cluster, set()).add(split)
    assert len(found.leaks) == sum(len(s) > 1 for c, s in sides.items() if c >= 0)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        *[(name, "train") for name in ("train", "Training", " TRAIN ")],
        *[(name, "eval") for name in ("val", "valid", "VALIDATION", "dev", "eval")],
        *[(name, "test") for name in ("test", "testing")],
        ("trainer", None),
        ("", None),
    ],
)
def test_splits_are_known_by_their_usual_names(text, split):
    assert split_named(text, SHARES) == split


def test_own_names_come_before_synonyms_and_absent_splits_are_none():
    assert split_named("val", {"train": 1, "val": 1}) == "val"
    assert split_named("holdout", {"train": 1, "holdout": 1}) == "holdout"
    assert split_named("val", {"train": 1, "test": 1}) is None


def test_the_first_folder_that_means_a_split_counts():
    assert folder_split("images/val/train/1.jpg", SHARES) == ("val", "eval")
    assert folder_split("images/train.jpg", SHARES) is None
    assert folder_split("train.jpg", SHARES) is None


def test_a_unit_of_several_groups_has_the_name_of_the_first():
    units = join_units(["a", "b", "c"], ["z", "y", ""], np.array([0, 0, 0]))
    assert units.hashes.tolist() == hash_names(["y"]).tolist()


def test_a_name_of_the_configuration_comes_before_synonyms():
    assert split_named("val", ("eval", "train", "val")) == "val"
    assert split_named("Validation", ("eval", "train")) == "eval"


def test_the_name_of_a_file_is_no_folder():
    assert folder_split("photos/train", NAMES) is None
    assert folder_split("photos/train/1.png", NAMES) == ("train", "train")
