"""The benchmark of the next month: both ways make the same, and without the emulators no figure is made up."""

import json
import sys

import pytest

from benchmarks import month
from benchmarks.__main__ import main
from shardwright.errors import CheckFailed


@pytest.mark.slow
def test_both_ways_are_measured(stores, tmp_path):
    measured = month.measure(stores.bucket("gs"), tmp_path / "bench", 100)
    assert measured["note"] == "99 of 100 images copied, 1 read"
    assert all(measured[name] > 0 for name in ("full", "copied", "full work", "copied work"))
    assert [path.name for path in (tmp_path / "bench").iterdir()] == ["photographs-100-96x144"]


@pytest.mark.slow
def test_other_bytes_are_no_figure(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(month, "_files", lambda root: {"name": root.name.encode()})
    with pytest.raises(CheckFailed, match="another dataset"):
        month.measure(stores.bucket("gs"), tmp_path, 100)


def test_without_the_emulators_no_figure_is_made_up(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "tests.support.emulators", None)
    assert main(["month", "--dir", str(tmp_path), "--json", "--stores", "s3"]) == 0
    (figure,) = json.loads(capsys.readouterr().out)
    assert figure["value"] is None
    assert "development tools" in figure["note"]
    assert main(["month", "--images", "99"]) == 2
    assert "no hundredth" in capsys.readouterr().err
