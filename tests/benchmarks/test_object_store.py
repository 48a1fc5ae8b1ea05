"""The benchmark of object stores: its figures, and its notes without the emulators."""

import importlib.machinery
import sys
from pathlib import Path

import pytest
from object_stores import SCHEMES

from benchmarks import object_store


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_seconds_alone_together_and_of_work_are_measured(stores, monkeypatch, scheme):
    monkeypatch.setattr(object_store, "_ALONE", 2)
    measured = object_store.measure(stores.bucket(scheme), 8)
    assert sorted(measured) == ["alone", "together", "work"]
    assert all(value > 0 for value in measured.values())
    reads = [path for method, path in stores.requests if method == "GET"]
    assert len(reads) >= 2 * 2 + 2 * 8 * 4


def test_without_the_emulators_no_figure_is_made_up(monkeypatch):
    monkeypatch.setitem(sys.modules, "tests.support.emulators", None)
    for figure in object_store.store_figures():
        assert figure.value is None
        assert "development tools" in figure.note


def test_the_emulators_are_found_before_the_tests_of_another_package(tmp_path):
    """IPython adds a folder with a package `tests` to the path, and TFX imports IPython."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/__init__.py").touch()
    checkout = Path(object_store.__file__).parents[1]
    found = importlib.machinery.PathFinder.find_spec("tests", [str(checkout), str(tmp_path)])
    assert list(found.submodule_search_locations) == [str(checkout / "tests")]


@pytest.mark.slow
def test_both_stores_are_measured_in_processes_of_their_own(monkeypatch):
    monkeypatch.setattr(object_store, "_OBJECTS", 16)
    for figure in object_store.store_figures():
        assert figure.value is not None
        assert "objects/s; by arithmetic at most" in figure.note
