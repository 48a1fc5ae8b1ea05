"""The doctor: what is sound is found sound, what is not is named, and a crash ends nothing but itself."""

import json

import pytest

from shardwright.pipelines import cli, machine
from shardwright.pipelines import installation as doctor
from shardwright.pipelines.machine import NONE, OK, PROBLEM, Check


@pytest.fixture
def sick_modules(tmp_path, monkeypatch):
    for name, text in {
        "raises": "raise OSError('libodd.so: cannot open\\nmore')",
        "crashes": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "exits": "import sys; print('noise'); sys.exit(3)",
        "vanishes": "import os; os._exit(0)",
        "hangs": "import time; time.sleep(60)",
        "sound": "print('[\"noise\"')",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_every_module_is_tried_whatever_the_others_do(sick_modules, monkeypatch):
    monkeypatch.setattr(doctor, "_SECONDS", 2)
    found = doctor.import_problems(["raises", "crashes", "nowhere", "exits", "vanishes", "hangs", "sound", "json"])
    assert found["raises"] == "OSError: libodd.so: cannot open"
    assert "exit code -11" in found["crashes"]
    assert found["nowhere"].startswith("ModuleNotFoundError")
    assert found["exits"].startswith("SystemExit")
    assert "exit code 0" in found["vanishes"]
    assert found["hangs"] == "cannot be imported within 2 s"
    assert found["sound"] == found["json"] == ""


@pytest.mark.parametrize(
    ("packages", "code"), [({"pytest": "pytest"}, 0), ({"pytest": "pytest", "nothing": "json"}, 1)]
)
def test_the_command_names_what_is_missing(packages, code, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "PACKAGES", packages)
    monkeypatch.setattr(doctor, "check_machine", lambda *_: (Check("memory", OK, "1.0 GB of 2.0 GB available"),))
    assert cli.main(["doctor"]) == code
    shown = capsys.readouterr().out
    assert "pytest" in shown
    assert "  memory                      ok          1.0 GB of 2.0 GB available\n" in shown
    assert ("is not installed" in shown) == bool(code)
    assert cli.main(["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["healthy"] == (code == 0)


@pytest.mark.parametrize(
    ("installed", "healthy"), [([], True), (["keras"], True), (["tfx"], False), (["tfx", "keras", "jax"], True)]
)
def test_an_extra_is_there_as_a_whole_or_not_at_all(installed, healthy, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "PACKAGES", {"keras": "keras", "jax": "jax", "tfx": "tfx.v1", "boto3": "boto3"})
    monkeypatch.setattr(doctor, "_version", lambda package: "1.0" if package in installed else "")
    monkeypatch.setattr(doctor, "import_problems", lambda modules: dict.fromkeys(modules, ""))
    monkeypatch.setattr(doctor, "check_machine", lambda *_: ())
    assert cli.main(["doctor"]) == int(not healthy)
    shown = capsys.readouterr().out
    assert "boto3                       -           optional: pip install 'shardwright[s3]'" in shown
    assert ("is not installed" in shown) is not healthy


def test_a_problem_of_the_machine_is_an_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "PACKAGES", {"pytest": "pytest"})
    monkeypatch.setattr(doctor, "check_machine", lambda *_: (Check("disk", PROBLEM, "/: 0.1 GB of 9.0 GB free"),))
    assert cli.main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["machine"] == [{"subject": "disk", "state": "problem", "detail": "/: 0.1 GB of 9.0 GB free"}]


def test_memory_is_that_of_the_container_if_it_has_less(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n")
    assert machine.check_memory(meminfo, tmp_path) == Check("memory", OK, "8.2 GB of 16.4 GB available")
    (tmp_path / "memory.max").write_text("4000000000\n")
    (tmp_path / "memory.current").write_text("1000000000\n")
    found = machine.check_memory(meminfo, tmp_path)
    assert found.detail == "3.0 GB of 4.0 GB available (limit of the container)"
    assert machine.check_memory(tmp_path / "none", tmp_path).state == NONE


def test_a_full_disk_is_a_problem(tmp_path, monkeypatch):
    assert machine.check_disk(str(tmp_path)).state == OK
    assert machine.check_disk(str(tmp_path / "none")).state == PROBLEM
    monkeypatch.setattr(machine, "_LEAST_DISK", 10**18)
    found = machine.check_disk(str(tmp_path))
    assert found.state == PROBLEM
    assert "shardwright clean" in found.detail


def test_accelerators_are_found_by_their_files(tmp_path):
    assert machine.check_accelerator({}, tmp_path).state == NONE
    assert "8 virtual" in machine.check_accelerator({"SHARDWRIGHT_CPU_DEVICES": "8"}, tmp_path).detail
    assert machine.check_accelerator({"SHARDWRIGHT_CPU_DEVICES": "x"}, tmp_path).state == PROBLEM
    (tmp_path / "nvidia0").touch()
    assert machine.check_accelerator({}, tmp_path).state == OK
    assert "a GPU" in machine.check_accelerator({}, tmp_path).detail
    (tmp_path / "accel0").touch()
    found = machine.check_accelerator({}, tmp_path)
    assert (found.state, "libtpu is not installed" in found.detail) == (PROBLEM, True)


@pytest.mark.parametrize(
    ("provider", "variable", "file"),
    [
        ("Google Cloud", "GOOGLE_APPLICATION_CREDENTIALS", ".config/gcloud/application_default_credentials.json"),
        ("AWS", "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
        ("Kubernetes", "KUBECONFIG", ".kube/config"),
    ],
)
def test_credentials_are_reported_and_never_shown(provider, variable, file, tmp_path):
    def check(**environment):
        found = machine.check_credentials(provider, environment, tmp_path, tmp_path / "token")
        assert "hush" not in found.detail
        return found.state

    assert check() == NONE
    assert check(**{variable: str(tmp_path / "hush-none")}) == PROBLEM
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("hush-0b59c2")
    assert check() == OK
    assert check(**{variable: str(tmp_path / file)}) == OK


def test_other_places_of_credentials(tmp_path):
    assert machine.check_credentials("AWS", {"AWS_ACCESS_KEY_ID": "hush"}, tmp_path).detail.endswith("is set")
    (tmp_path / "application_default_credentials.json").write_text("{}")
    moved = {"CLOUDSDK_CONFIG": str(tmp_path)}
    assert machine.check_credentials("Google Cloud", moved, tmp_path / "home").state == OK
    (tmp_path / "token").touch()
    assert machine.check_credentials("Kubernetes", {}, tmp_path / "home", tmp_path / "token").state == OK


@pytest.mark.slow
def test_this_installation_is_sound(capsys):
    assert cli.main(["doctor"]) == 0, capsys.readouterr().out
