"""Progress: silent where asked, lines where there is no terminal, never more than one in a while."""

import pytest

from shardwright.running import progress


def test_quick_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress(3, "reading") as shown:
        for _ in range(3):
            shown.advance()
    assert capsys.readouterr().err == ""


def test_long_work_prints_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.progress(100, "reading") as shown:
        for _ in range(100):
            now[0] += 0.1  # after 51 steps more than the 5 seconds between two lines
            shown.advance()
    assert capsys.readouterr().err.splitlines() == ["  reading: 51/100, 5 s left"]


def test_lines_have_megabytes_where_these_are_counted_and_come_as_seldom_as_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.progress(4, "writing images", size=8_000_000, seconds=30) as shown:
        for _ in range(4):
            now[0] += 16
            shown.advance(1, 2_000_000)
    lines = ["  writing images: 2/4, 4 of 8 MB, 32 s left", "  writing images: 4/4, 8 of 8 MB"]
    assert capsys.readouterr().err.splitlines() == lines


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with progress.progress(2, "reading", quiet=True) as shown:
        shown.advance(2)
    assert capsys.readouterr().err == ""


def test_one_thing_is_in_the_singular() -> None:
    assert [progress.counted(count, "shard") for count in (0, 1, 2000)] == ["0 shards", "1 shard", "2,000 shards"]
    assert progress.counted(1, "image is", "images are") == "1 image is"
    assert progress.counted(2, "image is", "images are") == "2 images are"
