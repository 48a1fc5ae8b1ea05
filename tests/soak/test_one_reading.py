"""For a minute, no mistake in the fields of an Example is read otherwise by us than by TensorFlow."""

import random
import time

import pytest
from record_fields import difference, mutated, ours

pytestmark = pytest.mark.soak
SECONDS = 60


def test_a_minute_of_mistakes_is_read_as_tensorflow_reads_them_or_refused():
    tf = pytest.importorskip("tensorflow")
    seed = random.randrange(2**32)
    draw, tried, read = random.Random(seed), 0, 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        data, mistakes = mutated(draw)
        assert difference(tf, data) == "", f"seed {seed}, number {tried}"
        tried += 1
        read += mistakes > 0 and ours(data) is not None
    print(f"{tried} examples, {read} with mistakes and read alike")
    assert read > tried / 20
