"""Sums of an evaluation over several hosts: one exchange of float64, and the same figures as on one host."""

import numpy as np

from shardwright.components.image_trainer.training.evaluate import _over_hosts
from shardwright.evaluation.metrics import LabelCounts, MaskSums

CLASSES = ("a", "b")


def masks(seed):
    drawn = np.random.default_rng(seed).integers(0, 2, (2, 3, 4, 5, 2))
    return MaskSums.of_masks(drawn[0], drawn[1])


def test_one_host_has_its_own_sums():
    own = masks(0)
    sums, others = _over_hosts(own, (1.5, 3.0), lambda values: values)
    assert sums.report(CLASSES) == own.report(CLASSES)
    assert others == [1.5, 3.0]


def test_two_hosts_have_the_sums_of_both():
    ones = masks(1), masks(2)
    seen = []
    _over_hosts(ones[1], (2.0,), lambda values: (seen.append(values), values)[1])
    sums, others = _over_hosts(ones[0], (1.0,), lambda values: values + seen[0])
    expected = (ones[0] + ones[1]).report(CLASSES)
    assert sums.images == 6
    assert others == [3.0]
    np.testing.assert_allclose([sums.report(CLASSES)[name] for name in expected], list(expected.values()), rtol=1e-12)


def test_labels_are_whole_numbers():
    own = LabelCounts.of_labels(np.array([0, 1, 1]), np.array([0, 1, 0]), 2)
    sums, _ = _over_hosts(own, (), lambda values: values)
    assert sums.report(CLASSES) == own.report(CLASSES)
