"""`gate.drift`, `gate.skew`: what they take, and what they refuse."""

import pytest

from shardwright.config import parse_config
from shardwright.config.evaluation import LEAST_ALPHA
from shardwright.drift.two_samples import holm, permutations_for
from shardwright.errors import ConfigError

RAW = {"input": {"images": "x"}, "task": "classification"}


def parsed(**drift):
    return parse_config({**RAW, "gate": {"drift": drift}}, base="/").gate.drift


def test_defaults():
    config = parsed(reference="old")
    assert (config.reference, config.images, config.alpha, config.ignore) == ("old", 2000, 0.006, ())
    assert parsed(reference="old", images=50, alpha=0.01, ignore=["size", "area"]).ignore == ("size", "area")
    assert parse_config(RAW, base="/").gate.drift is None
    assert parse_config({**RAW, "gate": {"drift": None}}, base="/").gate.drift is None


@pytest.mark.parametrize(
    ("drift", "message"),
    [
        ({}, r"gate\.drift\.reference: missing"),
        ({"reference": ""}, r"gate\.drift\.reference: '' is not a dataset"),
        ({"reference": "x", "images": 3}, r"gate\.drift\.images: 3 is too small"),
        ({"reference": "x", "alpha": 0}, r"gate\.drift\.alpha: 0.* is out of range"),
        ({"reference": "x", "ignore": ["shape"]}, r"gate\.drift\.ignore\[0\]: 'shape' is not known"),
        ({"reference": "x", "wat": 1}, r"gate\.drift\.wat: unknown key"),
    ],
)
def test_what_is_refused(drift, message):
    with pytest.raises(ConfigError, match=message):
        parsed(**drift)


def skewed(skew):
    return parse_config({**RAW, "gate": {"skew": skew}}, base="/").gate.skew


def test_splits_are_compared_where_it_is_asked_for():
    assert parse_config(RAW, base="/").gate.skew is None
    assert skewed({}).images == 2000
    config = skewed({"images": 30, "alpha": 0.01, "ignore": ["classes"]})
    assert (config.images, config.alpha, config.ignore) == (30, 0.01, ("classes",))


@pytest.mark.parametrize(
    ("skew", "message"),
    [
        ({"images": 3}, r"gate\.skew\.images: 3 is too small"),
        ({"alpha": 0.9}, r"gate\.skew\.alpha: 0.9 is out of range"),
        ({"alpha": 2e-5}, r"gate\.skew\.alpha: 2e-05 is out of range"),
        (
            {"alpha": 6e-5},
            r"gate\.skew\.alpha: 6e-05 for 2 comparisons .* embedding .* 0\.0001 or more, or",
        ),
        ({"ignore": ["shape"]}, r"gate\.skew\.ignore\[0\]: 'shape' is not known"),
        ({"reference": "x"}, r"gate\.skew\.reference: unknown key"),
    ],
)
def test_what_is_refused_of_splits(skew, message):
    with pytest.raises(ConfigError, match=message):
        skewed(skew)


def test_a_bound_that_the_embedding_cannot_show_is_taken_where_it_is_ignored():
    """Permutations show no chance smaller than one in their number, so the measure could never speak."""
    assert skewed({"alpha": 1e-4}).shared(2) == LEAST_ALPHA
    assert skewed({"alpha": 6e-5, "ignore": ["embedding"]}).shared(2) == 3e-5
    assert parsed(reference="old", alpha=1e-6, ignore=["embedding"]).alpha == 1e-6
    with pytest.raises(ConfigError, match=r"gate\.drift\.alpha: 1e-06 is out of range"):
        parsed(reference="old", alpha=1e-6)
    smallest = 1 / (permutations_for(LEAST_ALPHA * 0.2) + 1)
    assert holm([smallest, 1.0, 1.0, 1.0], [0.2, 0.5, 0.1, 0.2], LEAST_ALPHA)[0]
