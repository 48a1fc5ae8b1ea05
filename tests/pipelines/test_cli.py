"""The command line: it starts fast; a wrong call ends with one message and the right exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shardwright.errors import CheckFailed
from shardwright.pipelines import cli


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from shardwright.pipelines import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'tensorflow', 'tfx', 'apache_beam', 'keras', 'numpy', 'rich', 'PIL', 'yaml'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("sample", "run", "ingest", "schema"):
        assert command in done.stdout


def test_a_call_without_a_command_or_with_an_unknown_one_exits_2() -> None:
    for arguments in ([], ["dance"], ["run"], ["ingest", "x.yaml"]):
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert end.value.code == 2


def test_errors_become_one_message_and_their_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["run", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml: no such configuration file" in capsys.readouterr().err

    def failing(options: object) -> int:
        raise CheckFailed("12 of 100 images were rejected")

    monkeypatch.setattr(cli, "_run", failing)
    assert cli.main(["run", "x.yaml"]) == 1
    assert capsys.readouterr().err == "shardwright: 12 of 100 images were rejected\n"


def test_interrupting_is_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupted)
    assert cli.main(["run", "x.yaml"]) == 130
    assert "run the same command again" in capsys.readouterr().err


def test_output_that_nobody_takes_ends_without_pythons_own_words() -> None:
    """As `| head -0` has it, and a full disk: what is printed is met when it is flushed."""
    call = [sys.executable, "-m", "shardwright.pipelines.cli", "--help"]
    # Unbuffered, as in our image, argparse of Python 3.13 lets such an error pass when it prints its help.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    assert done.returncode == 1
    assert done.stderr == "shardwright: No space left on device. Check paths, permissions and free space.\n"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(call, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    script = (
        "import sys; from shardwright.pipelines import cli; code = cli.main(['inspect', '/nowhere']); "
        "file = open(sys.argv[1], 'w'); file.write(f'{code} {file.fileno() > 2}')"
    )
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", script, str(tmp_path / "code")]
    assert subprocess.run(closed, check=False).returncode == 0
    assert (tmp_path / "code").read_text() == "2 True"
