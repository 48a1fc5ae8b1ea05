"""docs/costs.md says what the arithmetic says, and the arithmetic starts from figures that other pages tell."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import ConfigError
from shardwright_pipelines.costs import MEASURED, Measured, cost_table, hours_to_read, shard_count, workers_fed_by

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "costs.md").read_text(encoding="utf-8")
IMAGES = 10_000_000


def test_the_table_of_the_page():
    assert cost_table(IMAGES) in PAGE


@pytest.mark.parametrize("measured", MEASURED, ids=lambda measured: measured.step)
def test_a_figure_is_one_that_its_page_tells(measured):
    assert f"{measured.images_a_second:g} images/s" in (DOCS / f"{measured.page}.md").read_text(encoding="utf-8")


def test_the_other_figures_of_the_page():
    assert f"{workers_fed_by(5000)} workers" in PAGE
    assert f"{hours_to_read(IMAGES, workers_fed_by(5000)):.1f} hours" in PAGE
    assert f"{shard_count(IMAGES, 673_000, 150_000_000):,} shards" in PAGE


@given(st.integers(1, 10**9), st.floats(1e-3, 1e5), st.integers(1, 512))
def test_core_hours_are_the_time_of_one_core(images, speed, cores):
    step = Measured("x", speed, "y", cores)
    assert step.core_hours(images) * 3600 * step.a_core == pytest.approx(images)
    assert Measured("x", speed, "y", 2 * cores).core_hours(images) == pytest.approx(2 * step.core_hours(images))


def test_no_images_cost_nothing_worth_a_table():
    with pytest.raises(ConfigError, match="images"):
        cost_table(0)
    assert workers_fed_by(10) == 1
