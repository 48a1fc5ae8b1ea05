"""Modules that load when they are first used."""

import importlib
import sys
from importlib.util import find_spec

import pytest

from shardwright.components.runtime.later_imports import OF_TFX, later_imports


def test_a_module_loads_when_it_is_used(tmp_path, monkeypatch):
    package = tmp_path / "toy_package"
    package.mkdir()
    (package / "__init__.py").write_text("from toy_package import heavy, light\n")
    (package / "heavy.py").write_text("import sys\nsys.toy_loaded = True\nVALUE = 7\n")
    (package / "light.py").write_text("VALUE = 8\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "toy_loaded", False, raising=False)
    before = list(sys.meta_path)
    with later_imports(["toy_package.heavy", "toy_package.missing"]):
        toy = importlib.import_module("toy_package")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("toy_package.missing")
    assert sys.meta_path == before
    assert (toy.light.VALUE, sys.toy_loaded) == (8, False)
    assert (toy.heavy.VALUE, sys.toy_loaded) == (7, True)
    assert importlib.import_module("toy_package.heavy") is toy.heavy


@pytest.mark.parametrize("name", OF_TFX)
def test_tfx_has_the_modules_and_binds_each_to_its_package(name):
    package, _, last = name.rpartition(".")
    assert find_spec(name) is not None
    assert getattr(importlib.import_module(package), last) is sys.modules[name]
