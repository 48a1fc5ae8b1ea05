"""Worker processes: messages, and errors that name the cause."""

import os
import select
import subprocess
import sys
import textwrap

import pytest

from shardwright.components.image_trainer import worker
from shardwright.errors import ShardwrightError, UsageError


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a worker made of the given statements (in its `work(spec)`); returns its messages."""

    def call(statements: str, *, raw: bool = False) -> list[dict]:
        body = textwrap.dedent(statements)
        (tmp_path / "made_worker.py").write_text(body if raw else _PROGRAM.format(textwrap.indent(body, "    ")))
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "spec.json").write_text("{}")
        messages: list[dict] = []
        worker.run_worker(
            ("made_worker",),
            tmp_path / "spec.json",
            tmp_path / "worker.log",
            environment={"MADE": "by the test"},
            on_message=messages.append,
        )
        return messages

    return call


_PROGRAM = """
import os, sys
from shardwright.errors import ShardwrightError, DatasetError, UsageError
from shardwright.components.image_trainer import worker
worker.TrainSpec.read = lambda file: file.read_text()

def work(spec):
{}

if __name__ == "__main__":
    worker.main(work)
"""


def test_messages_arrive_in_order_and_other_output_goes_to_the_log(run, tmp_path):
    messages = run(
        """
        print("noise", flush=True)
        print("more noise", file=sys.stderr)
        print(3)
        worker.send({"epoch": 1, "made": os.environ["MADE"], "spec": spec})
        worker.send({"epoch": 2})
        """
    )
    assert messages == [{"epoch": 1, "made": "by the test", "spec": "{}"}, {"epoch": 2}]
    assert {"noise", "more noise", "3"} <= set((tmp_path / "worker.log").read_text().splitlines())


def test_a_line_reaches_the_log_in_one_piece(run, tmp_path):
    """Both processes write to the log: a line in two pieces would be torn by a line of the other."""
    messages = run(
        """
        print("begun", end="", file=sys.stderr)
        half = os.fstat(2).st_size
        print(", ended", file=sys.stderr)
        worker.send({"half": half, "whole": os.fstat(2).st_size})
        """
    )
    assert messages == [{"half": 0, "whole": len("begun, ended\n")}]
    assert (tmp_path / "worker.log").read_text() == "begun, ended\n"


def test_an_error_of_ours_comes_back_with_its_own_message(run):
    with pytest.raises(ShardwrightError) as caught:
        run("raise DatasetError('the split train is empty')")
    assert str(caught.value) == "the split train is empty"
    assert caught.value.exit_code == 1
    with pytest.raises(UsageError, match=r"^trainer\.weights: other$"):
        run("raise UsageError('trainer.weights: other')")


def test_a_defect_comes_back_with_its_last_lines_and_the_log(run, tmp_path):
    with pytest.raises(ShardwrightError) as caught:
        run("raise KeyError('odd')")
    text = str(caught.value)
    assert "made_worker ended with exit code 1" in text
    assert "KeyError: 'odd'" in text
    assert str(tmp_path / "worker.log") in text


def test_a_file_that_cannot_be_written_is_reported_in_a_line(run, tmp_path):
    with pytest.raises(ShardwrightError) as caught:
        run("raise OSError(28, 'No space left on device')")
    assert str(caught.value) == "No space left on device. Check paths, permissions and free space."
    assert "Traceback" in (tmp_path / "worker.log").read_text()
    with pytest.raises(ShardwrightError, match=r"^/nowhere/model: No such file or directory\. Check the path, "):
        run("open('/nowhere/model', 'wb')")


def test_a_killed_worker_is_reported_with_the_likely_cause(run):
    with pytest.raises(ShardwrightError, match=r"killed by signal 9 \(out of memory\? Lower trainer.batch_size"):
        run("import signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(ShardwrightError, match=r"out of memory; a step needs about 9.9 GB of it\? Lower"):
        run("import signal; worker.send({worker.NEEDS: '9.9 GB'}); os.kill(os.getpid(), signal.SIGKILL)")


def test_a_worker_that_cannot_start_is_reported(run):
    with pytest.raises(ShardwrightError, match="SyntaxError"):
        run("this is not a program", raw=True)


_WAITING = """
    import threading
    held = open({!r}, "w")
    held.write("x")
    held.flush()
    threading.Event().wait()
"""
_STARTER = """
import pathlib, sys
from shardwright.components.image_trainer import worker
here = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(here))
worker.run_worker(("made_worker",), here / "spec.json", here / "worker.log", environment={})
"""


def test_a_worker_ends_when_the_process_that_started_it_is_killed(tmp_path):
    """The worker holds a named pipe open; only its end closes it."""
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    (tmp_path / "made_worker.py").write_text(_PROGRAM.format(_WAITING.format(str(alive))))
    (tmp_path / "spec.json").write_text("{}")
    with subprocess.Popen([sys.executable, "-c", _STARTER, str(tmp_path)]) as starter, alive.open("rb", 0) as pipe:
        assert pipe.read(1) == b"x"
        starter.kill()
        ready, _, _ = select.select([pipe], [], [], 60)
        assert ready, "the worker is still there a minute later"
        assert pipe.read(1) == b""
