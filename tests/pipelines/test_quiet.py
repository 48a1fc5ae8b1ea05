"""Messages of libraries go to the log file, also those from C++; our own lines stay on the terminal."""

import os
import subprocess
import sys
import warnings

import pytest

from shardwright.pipelines.cli import main

SCRIPT = """
import logging, os, sys, warnings
from shardwright.pipelines.runs.logs import log_to_file
with log_to_file(sys.argv[1], verbose=len(sys.argv) > 2):
    os.write(2, b"from C++\\n")
    logging.getLogger("apache_beam.x").warning("from logging\\x1b[2J\\nforged")
    from absl import logging as absl_logging
    absl_logging.info("from absl")
    warnings.warn("from warnings")
    subprocess = __import__("subprocess")
    subprocess.run([sys.executable, "-c", "import sys; print('from a child', file=sys.stderr)"], check=True)
    print("for people", file=sys.stderr)
print("afterwards", file=sys.stderr)
os.write(2, b"raw afterwards\\n")
"""


def run(*arguments):
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_noise_goes_to_the_log(tmp_path):
    log = tmp_path / "logs" / "run.log"
    assert run(str(log)) == "for people\nafterwards\nraw afterwards\n"
    output = log.read_text()
    for source in ("from C++", "from logging", "from absl", "from warnings", "from a child"):
        assert source in output, output
    # Untrusted names neither control the terminal that shows the log nor forge a line of it.
    assert "\x1b" not in output
    assert "from logging\\u001b[2J\n  forged\n" in output


def test_verbose_shows_it(tmp_path):
    shown = run(str(tmp_path / "run.log"), "-v")
    for source in ("from C++", "from logging", "from warnings", "for people"):
        assert source in shown
    assert "\x1b" not in shown
    assert not (tmp_path / "run.log").exists()


def test_the_input_is_read_before_tensorflow_is_loaded():
    """Loading takes seconds and prints messages, which the log of the run must get."""
    script = "import sys; sys.modules.update(tensorflow=None, tfx=None); import shardwright.pipelines.run_local"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_imports_are_quiet_unless_one_fails_unexpectedly():
    script = (
        "import os, sys, warnings\n"
        "from shardwright.pipelines.runs.logs import quiet_libraries\n"
        "with quiet_libraries():\n    os.write(2, b'noise\\n')\n"
        "warnings.warn('ours')\n"
        "with quiet_libraries():\n    os.write(2, b'reason\\n')\n    raise RuntimeError('broken')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "noise" not in done.stderr
    assert all(shown in done.stderr for shown in ("ours", "reason", "RuntimeError: broken"))


def test_commands_hide_the_plans_of_libraries(tmp_path, monkeypatch):
    """Google's clients warn fifteen times of the end of a Python version while `compile` loads them."""

    def warn(*_: object) -> None:
        warnings.warn("support ends", FutureWarning, stacklevel=1)
        warnings.warn("look at this", UserWarning, stacklevel=1)
        raise KeyboardInterrupt

    monkeypatch.setattr("shardwright.pipelines.commands.ingest.configuration", warn)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert main(["ingest", "c.yaml", "--out", str(tmp_path / "out")]) == 130
    assert [str(one.message) for one in shown] == ["look at this"]


@pytest.mark.parametrize(("verbose", "level"), [([], "3"), (["--verbose"], None)])
def test_tensorflow_is_told_to_be_quiet_before_a_command_loads_it(monkeypatch, verbose, level):
    """It tells of CUDA plugins, as errors, on machines without a GPU."""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    assert main(["run", "missing.yaml", *verbose]) == 2
    assert os.environ.get("TF_CPP_MIN_LOG_LEVEL") == level


@pytest.mark.parametrize("command", ["preflight", "predict", "convert"])
def test_what_libraries_print_at_work_is_dropped(tmp_path, command):
    """TensorFlow's C++ code writes lines before it has read its log level."""
    modules = {
        "preflight": ("shardwright.pipelines.preflight.measure", "gather"),
        "predict": ("shardwright.components.predictor.predict_images", "predict"),
        "convert": ("shardwright.components.predictor.convert_model", "convert"),
    }
    arguments = {
        "preflight": ["c.yaml", "--tpu", "v5e-1x1"],
        "predict": ["model", "images", "--out", "out.csv"],
        "convert": ["model", "images", "--to", "onnx", "--out", "out"],
    }
    (tmp_path / "c.yaml").write_text("input: {images: x, classes: [a, b]}\n")
    module, name = modules[command]
    script = (
        # A program that names `shardwright.components` is started as a fork.
        "import os, sys, shardwright.components\n"
        f"import {module} as module\n"
        "from shardwright.errors import UsageError\n"
        "from shardwright.pipelines.cli import main\n"
        "def work(*_, **__):\n"
        "    os.write(2, b'noise')\n"
        "    print('progress', file=sys.stderr)\n"
        "    raise UsageError('wrong')\n"
        f"module.{name} = work\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, command, *arguments[command]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    lines = done.stderr.splitlines()[-2:]
    assert (lines[0], lines[1].startswith("shardwright: wrong")) == ("progress", True), done.stderr
