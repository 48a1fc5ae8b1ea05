"""docs/deploy/costs.md has the results of the arithmetic, which starts from figures of other pages."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.costs import (
    WRITES_OF_A_SHARD,
    Measured,
    cost_table,
    hours_to_read,
    processes_fed_by,
    reads_of_a_transform,
    shard_count,
)
from shardwright.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "deploy" / "costs.md").read_text(encoding="utf-8")
IMAGES = 10_000_000


def test_the_table_of_the_page():
    assert cost_table(IMAGES) in PAGE


def test_the_other_figures_of_the_page():
    assert f"{processes_fed_by(5000)} processes" in PAGE
    assert f"{hours_to_read(IMAGES, processes_fed_by(5000)):.1f} hours" in PAGE
    # The workers that docs/deploy/beam-runners.md begins with have four cores each.
    assert f"max_workers: {processes_fed_by(5000) // 4}" in PAGE
    dataflow = (DOCS / "deploy" / "beam-runners.md").read_text(encoding="utf-8")
    assert f"max_workers: {processes_fed_by(5000) // 4}" in dataflow
    for size in (150_000_000, 500_000_000):
        assert f"{shard_count(IMAGES, 673_000, size):,} shards" in PAGE
    assert f"{reads_of_a_transform(64, 673_000):,.0f} reads a second" in PAGE
    assert f"{shard_count(IMAGES, 673_000, 500_000_000) * WRITES_OF_A_SHARD:,} writes" in PAGE


@given(st.integers(1, 10**9), st.floats(1e-3, 1e5), st.integers(1, 512))
def test_core_hours_are_the_time_of_one_core(images, speed, cores):
    step = Measured("x", speed, cores)
    assert step.core_hours(images) * 3600 * step.a_core == pytest.approx(images)
    assert Measured("x", speed, 2 * cores).core_hours(images) == pytest.approx(2 * step.core_hours(images))


def test_no_images_cost_nothing_worth_a_table():
    with pytest.raises(ConfigError, match="images"):
        cost_table(0)
    assert processes_fed_by(10) == 1
