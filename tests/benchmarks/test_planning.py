"""The arithmetic of planning ten million images, from small inputs of a listing in memory."""

import pytest

from benchmarks import planning


def test_planning_is_measured_without_reading_images(tmp_path, monkeypatch):
    taken = {200: (1.0, 2.0), 1000: (1.4, 2.8), 20: (1.0, 1.0), 100: (1.0, 1.08)}
    measured = planning._planning

    def known(folder, write, task, images):
        assert all(seconds > 0 for seconds in measured(folder, write, task, images))
        return taken[images]

    monkeypatch.setattr(planning, "_planning", known)
    classes, masks = planning.planning_figures(tmp_path, small=200, large=1000)
    # A millisecond an image is 10,000 s; 10,000 requests of 0.1 s are 1,000 s.
    assert (classes.value, masks.value) == (pytest.approx(11_000 / 3600), pytest.approx(11_000 / 3600))
    assert "1000 us an image, 500 of processor, from 200 and 1,000 images: 2.78 h, and 0.28 h" in classes.note
    assert classes.verdict == "short"
    assert not any(tmp_path.iterdir())
