"""The doctor: what is sound is found sound, what is not is named, and a crash ends nothing but itself."""

import json

import pytest

from shardwright.pipelines import cli, doctor


@pytest.fixture
def sick_modules(tmp_path, monkeypatch):
    for name, text in {
        "raises": "raise OSError('libodd.so: cannot open\\nmore')",
        "crashes": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "exits": "import sys; print('noise'); sys.exit(3)",
        "sound": "print('[\"noise\"')",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_every_module_is_tried_whatever_the_others_do(sick_modules):
    found = doctor.import_problems(["raises", "crashes", "nowhere", "exits", "sound", "json"])
    assert found["raises"] == "OSError: libodd.so: cannot open"
    assert "exit code -11" in found["crashes"]
    assert found["nowhere"].startswith("ModuleNotFoundError")
    assert found["exits"].startswith("SystemExit")
    assert found["sound"] == found["json"] == ""


@pytest.mark.parametrize(
    ("packages", "code"), [({"pytest": "pytest"}, 0), ({"pytest": "pytest", "nothing": "json"}, 1)]
)
def test_the_command_names_what_is_missing(packages, code, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "PACKAGES", packages)
    assert cli.main(["doctor"]) == code
    shown = capsys.readouterr().out
    assert "pytest" in shown
    assert ("is not installed" in shown) == bool(code)
    assert cli.main(["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["healthy"] == (code == 0)


@pytest.mark.slow
def test_this_installation_is_sound(capsys):
    assert cli.main(["doctor"]) == 0, capsys.readouterr().out
