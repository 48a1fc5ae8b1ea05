"""Words as a vector: the same one for each form in which the transform stores them."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.loader.text_features import StoredTexts, word_counts

SIZE = 6


def fit(condition, value):
    if not bool(condition):
        raise ValueError("does not fit")
    return value


def stored(output, words):
    """Returns the features that ImageTransform stores for places in the vocabulary; -1 is an unknown word."""
    known = [word for word in words if word >= 0]
    if output == "ids":
        return {"t/ids": tf.constant([word + 2 if word >= 0 else 1 for word in words] + [0, 0], tf.int64)}
    counts = np.bincount(np.array(known, np.int64), minlength=SIZE)
    if output == "dense":
        return {"t/dense": tf.constant(counts, tf.float32)}
    places = np.flatnonzero(counts)
    return {"t/indices": tf.constant(places, tf.int64), "t/counts": tf.constant(counts[places], tf.int64)}


@tries(30)
@given(st.lists(st.integers(-1, SIZE - 1), max_size=12))
def test_every_form_gives_the_counts(words):
    wanted = np.bincount(np.array([w for w in words if w >= 0], np.int64), minlength=SIZE)
    for output in ("counts", "ids", "dense"):
        text = StoredTexts("t", "t", output, SIZE)
        parsed = stored(output, words)
        assert set(parsed) == set(text.features)
        found = text.vector(parsed, fit)
        assert (found.dtype, found.shape) == (tf.float32, (SIZE,))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("output", "parsed"),
    [
        ("ids", {"t/ids": tf.constant([SIZE + 2], tf.int64)}),
        ("dense", {"t/dense": tf.zeros(SIZE - 1)}),
        ("counts", {"t/indices": tf.constant([SIZE], tf.int64), "t/counts": tf.constant([1], tf.int64)}),
        ("counts", {"t/indices": tf.constant([1, 2], tf.int64), "t/counts": tf.constant([1], tf.int64)}),
        ("counts", {"t/indices": tf.constant([-1], tf.int64), "t/counts": tf.constant([1], tf.int64)}),
    ],
)
def test_words_of_no_vocabulary_are_refused(output, parsed):
    with pytest.raises(ValueError, match="does not fit"):
        StoredTexts("t", "t", output, SIZE).vector(parsed, fit)


def test_no_word_at_all():
    np.testing.assert_array_equal(word_counts(tf.zeros([0], tf.int64), 3), [0, 0, 0])
