"""Worker processes: the environment that they get from the calling process, and the error when one dies."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
from asked import die, state

from shardwright.errors import ShardwrightError
from shardwright.running.processes import map_processes, usable_cores


def test_workers_have_the_environment_and_folder_of_the_moment(tmp_path, monkeypatch):
    # The server that they are forked from keeps running between the calls, and is older than the second environment.
    for text in ("one", "two"):
        monkeypatch.setenv("SHARDWRIGHT_TEST", text)
        (tmp_path / text).mkdir()
        monkeypatch.chdir(tmp_path / text)
        found = list(map_processes(state, ["SHARDWRIGHT_TEST"] * 3, 2, "lost"))
        assert found == [(text, str(tmp_path / text), True)] * 3
    monkeypatch.delenv("SHARDWRIGHT_TEST")
    assert [value for value, _, _ in map_processes(state, ["SHARDWRIGHT_TEST"], 2, "lost")] == [None]


def test_with_one_worker_no_process_is_started():
    assert list(map_processes(state, ["HOME"], 1, "lost")) == [(os.environ.get("HOME"), os.getcwd(), False)]


def test_a_worker_that_dies_is_an_error_of_ours():
    with pytest.raises(ShardwrightError, match="it was lost"):
        list(map_processes(die, [3, 3], 2, "it was lost"))


def test_results_that_nobody_takes_keep_no_process():
    results = map_processes(state, ["HOME"] * 50, 2, "lost")
    assert multiprocessing.active_children()
    results.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("source", ["file", "standard input"])
@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_a_script_needs_no_guard(tmp_path, source, context):
    program = (
        "import multiprocessing\nfrom asked import state\nfrom shardwright.running import processes\n"
        f"processes._context = lambda: multiprocessing.get_context({context!r})\n"
        "print([inside for _, _, inside in processes.map_processes(state, ['HOME'] * 2, 2, 'lost')], __name__)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    call = {"args": [sys.executable, script]} if source == "file" else {"args": [sys.executable], "input": program}
    done = subprocess.run(**call, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[True, True] __main__\n", "")


@pytest.mark.parametrize(("level", "lines"), [("3", 1), ("0", 2), ("", 2)])
def test_the_server_of_workers_prints_nothing_while_it_imports(tmp_path, level, lines):
    """TensorFlow 2.21 writes to descriptor 2 when it is imported, whatever its log level."""
    (tmp_path / "noisy.py").write_text(
        "import os, sys\nos.write(2, b'from C++\\n')\ndef work(_):\n    os.write(2, b'at work\\n')\n"
    )
    program = (
        "import multiprocessing, noisy\nfrom shardwright.running import processes\n"
        "processes._context = lambda: multiprocessing.get_context('forkserver')\n"
        "assert list(processes.map_processes(noisy.work, [1], 2, 'lost')) == [None]\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": level}
    call = [sys.executable, "-c", program]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines() == ["from C++"] * lines + ["at work"]


def test_a_temporary_folder_with_a_long_name_is_no_hindrance(tmp_path):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    program = (
        "from asked import state; from shardwright.running.processes import map_processes, warm_up; warm_up(state); "
        "print([value for value, _, _ in map_processes(state, ['TMPDIR'] * 2, 2, 'lost')])"
    )
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == f"{[str(folder)] * 2}\n", done.stderr


@pytest.mark.parametrize("context", ["fork", "forkserver"])
def test_an_interruption_shows_no_traceback_of_a_worker(context):
    """Workers that wait, work or begin end at once; the caller gets the interruption, not the death of a worker."""
    program = (
        "import multiprocessing\nfrom asked import interrupt\nfrom shardwright.running import processes\n"
        f"processes._context = lambda: multiprocessing.get_context({context!r})\n"
        "processes.warm_up(interrupt)\n"
        "try:\n    list(processes.map_processes(interrupt, [60] * 2, 3, 'lost'))\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "200000 100000"}, 2),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "10000 100000"}, 1),
        ({"cpu.max": "6400000 100000"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000"}, 8),
        ({"cpu.max": "100000"}, 8),
    ],
)
def test_a_containers_quota_limits_the_processors(tmp_path, monkeypatch, files, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert usable_cores(tmp_path) == expected


def test_without_an_affinity_the_processors_are_those_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")  # As on macOS.
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert usable_cores(tmp_path) == 5
