"""`python -m benchmarks report`: figures of as many records as were asked for."""

import pytest

from benchmarks.report import measure_report


@pytest.mark.slow
def test_the_figures_are_those_of_the_records(tmp_path):
    took, memory, size = measure_report(tmp_path, 2000)
    assert (took.target, took.value > 0) == (60 * 2000 / 100_000, True)
    assert (memory.unit, memory.target) == ("MB", 64)
    assert memory.value < memory.target
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert size.value == pytest.approx(len(page.encode()) / 1e6)
    assert "2\u202f000 images for segmentation" in page
