"""Decisions about duplicates: every input keeps exactly one fate, the first by key stays, groups stay together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.duplicates.find import CONFLICTING, DuplicateRule, decide, groups_of
from shardwright.errors import CheckFailed


def firsts_of(groups):
    """Position of the first member of each one's group; `groups` names the group of each."""
    return np.array([groups.index(name) for name in groups], dtype=np.int64)


def way(groups, action="first", labels=None, code="exact_duplicate"):
    names = dict(enumerate(labels or [""] * len(groups)))
    return DuplicateRule(
        code, "duplicates.exact", firsts_of(groups), action, lambda one, other: "is the same as", names
    )


@st.composite
def inputs(draw):
    count = draw(st.integers(1, 25))
    many = {"min_size": count, "max_size": count}
    narrow = draw(st.lists(st.integers(0, 8), **many))
    # Images that are the same in the narrow way are the same in the wide one.
    wide = [number // 2 for number in narrow]
    alive = np.array(draw(st.lists(st.booleans(), **many)), np.bool_)
    return narrow, wide, draw(st.lists(st.sampled_from("xy"), **many)), alive


@given(inputs(), st.sampled_from(["keep", "first"]), st.sampled_from(["report", "reject"]))
def test_one_of_each_group_stays(given_inputs, action, conflicts):
    narrow, wide, labels, alive = given_inputs
    keys = [f"{number:03d}" for number in range(len(narrow))]
    ways = [way(narrow, "first", labels), way(wide, action, labels, "near_duplicate")]
    before = alive.copy()
    decision = decide(keys, alive, ways, conflicts)
    assert np.array_equal(alive, before)
    assert all(alive[i] for i in decision.rows)
    assert all(row.key == keys[i] for i, row in decision.rows.items())
    kept = [i for i in np.flatnonzero(alive).tolist() if i not in decision.rows]
    of_kept = [narrow[i] for i in kept]
    assert len(set(of_kept)) == len(of_kept)
    if action == "first":
        assert len({wide[i] for i in kept}) == len(kept)
    for i, row in decision.rows.items():
        others = [j for j in np.flatnonzero(alive).tolist() if wide[j] == wide[i]]
        if not row.rejected:
            assert any(j < i and f"is the same as {keys[j]}, which is kept" in row.reason for j in others)
        else:
            assert (row.code, conflicts) == (CONFLICTING, "reject")
            assert {labels[j] for j in others} == {"x", "y"}
    if conflicts == "report":
        assert {wide[i] for i in np.flatnonzero(alive)} == {wide[i] for i in kept}
    for i in range(len(keys)):
        for j in range(i):
            together = decision.clusters[i] >= 0 and decision.clusters[i] == decision.clusters[j]
            assert together == (i in kept and j in kept and wide[i] == wide[j])


@given(st.lists(st.integers(0, 6), max_size=20), st.data())
def test_groups_are_of_two_and_more(groups, data):
    alive = np.array(data.draw(st.lists(st.booleans(), min_size=len(groups), max_size=len(groups))), np.bool_)
    found = [members.tolist() for members in groups_of(firsts_of(groups), alive)]
    wanted = [[i for i in range(len(groups)) if groups[i] == name and alive[i]] for name in dict.fromkeys(groups)]
    assert sorted(found) == sorted(members for members in wanted if len(members) > 1)


def test_a_conflict_names_both_sides():
    keys = ["a", "b", "c"]
    decision = decide(keys, np.ones(3, np.bool_), [way([0, 0, 0], labels=["x", "x", "y"])], "report")
    assert [(row.code, row.reason) for row in decision.rows.values()] == [
        ("exact_duplicate", "is the same as a, which is kept"),
        (CONFLICTING, "is the same as a, which is kept; but its labels are y, not x"),
    ]
    rejected = decide(keys, np.ones(3, np.bool_), [way([0, 0, 0], labels=["x", "x", "y"])], "reject")
    assert [row.reason for row in rejected.rows.values()] == [
        "is the same as c, but its labels are x, not y",
        "is the same as c, but its labels are x, not y",
        "is the same as a, but its labels are y, not x",
    ]


def test_the_message_of_a_failure_shows_three():
    with pytest.raises(CheckFailed, match=r"exact_duplicate: 4 images in 1 group, e.g. a = b = c = …\. duplicates"):
        decide(list("abcd"), np.ones(4, np.bool_), [way([0, 0, 0, 0], "fail")], "report")
    with pytest.raises(CheckFailed, match="1 of these groups disagree on labels, e.g. a = b. duplicates.conflicts"):
        decide(list("ab"), np.ones(2, np.bool_), [way([0, 0], "keep", ["x", "y"])], "fail")
