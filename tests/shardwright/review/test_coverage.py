"""Which images to label next: k-center greedy against its definition, and the entropy of answers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardwright.review.coverage import k_center, nearest_distances, uncertainty


@given(st.integers(0, 12), st.integers(0, 5), st.integers(0, 15), st.integers(0, 2**32), st.booleans())
def test_each_choice_is_the_farthest_one(new, known, count, seed, weighted):
    random = np.random.default_rng(seed)
    points, labeled = random.normal(size=(new, 3)), random.normal(size=(known, 3))
    weights = random.uniform(1, 2, new) if weighted else None
    chosen = k_center(points, labeled, count, weights).tolist()
    assert len(chosen) == len(set(chosen)) == min(new, count)
    there = list(labeled)
    for place, choice in enumerate(chosen):
        if there:
            left = [k for k in range(new) if k not in chosen[:place]]
            far = {k: min(np.linalg.norm(points[k] - one) for one in there) for k in left}
            far = {k: value * (1 if weights is None else weights[k]) for k, value in far.items()}
            assert far[choice] >= max(far.values()) - 1e-9
        there.append(points[choice])


@given(st.integers(0, 600), st.integers(1, 20), st.integers(0, 2**32))
def test_the_nearest_one_is_found(many, few, seed):
    random = np.random.default_rng(seed)
    points, others = random.normal(size=(many, 2)), random.normal(size=(few, 2))
    wanted = np.linalg.norm(points[:, None] - others[None], axis=2).min(1, initial=np.inf)
    assert np.allclose(nearest_distances(points, others), wanted)


def test_copies_of_an_image_are_chosen_last():
    points = np.array([[0, 0], [5, 5], [5, 5], [0, 9], [5, 5]], float)
    assert k_center(points, np.zeros((1, 2)), 3).tolist()[:2] in ([3, 1], [1, 3])
    assert k_center(points, np.zeros((1, 2)), 5).tolist()[2:] != [1]


def test_who_knows_nothing_is_fully_unsure():
    assert np.allclose(uncertainty(np.full((1, 5), 0.2), exclusive=True), 1)
    assert uncertainty([[1.0, 0.0]], exclusive=True).tolist() == [0.0]
    masks = np.zeros((2, 4, 4, 3))
    masks[1] = 0.5
    assert uncertainty(masks, exclusive=False).tolist() == [0.0, 1.0]
