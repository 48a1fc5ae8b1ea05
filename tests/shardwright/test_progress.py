"""Progress: silent where asked, lines where there is no terminal, never more than one in a while."""

import json
import sys
import types

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


@pytest.mark.parametrize("variable", ["KUBERNETES_SERVICE_HOST", "CLOUD_ML_JOB_ID"])
def test_the_log_of_a_pipeline_gets_a_line_of_json_twice_a_minute_at_most(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setenv(variable, "1")
    with progress.progress(100, "writing images", size=8_000_000) as shown:
        for _ in range(100):
            now[0] += 1
            shown.advance(1, 80_000)
    entries = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [entry["progress"]["done"] for entry in entries] == [30, 60, 90]
    assert entries[0] == {
        "severity": "INFO",
        "message": "writing images: 30/100, 2 of 8 MB, 70 s left",
        "progress": {
            "task": "writing images",
            "done": 30,
            "total": 100,
            "bytes": 2_400_000,
            "total_bytes": 8_000_000,
            "seconds_left": 70,
        },
    }


def test_a_notebook_shows_one_line_that_is_replaced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, shown_lines = [0.0], []

    class _Display:
        def update(self, line: str) -> None:
            shown_lines[-1].append(line)

    def display(line: str, display_id: bool) -> _Display:
        assert display_id
        shown_lines.append([line])
        return _Display()

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(Pretty=str, display=display))
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.progress(4, "writing images", size=8_000_000) as shown:
        for _ in range(4):
            now[0] += 1
            shown.advance(1, 2_000_000)
    assert len(shown_lines) == 1
    assert shown_lines[0][0] == "writing images: 1/4, 2 of 8 MB, 3 s left"
    # At the end no line is left, as of the bar of a terminal.
    assert shown_lines[0][-2:] == ["writing images: 4/4, 8 of 8 MB", ""]
    assert capsys.readouterr() == ("", "")


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with progress.progress(2, "reading", quiet=True) as shown:
        shown.advance(2)
    assert capsys.readouterr().err == ""


def test_one_thing_is_in_the_singular() -> None:
    assert [progress.counted(count, "shard") for count in (0, 1, 2000)] == ["0 shards", "1 shard", "2,000 shards"]
    assert progress.counted(1, "image is", "images are") == "1 image is"
    assert progress.counted(2, "image is", "images are") == "2 images are"
