"""Worker processes: what they know of the process that asks them, and what is said when one dies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from asked import die, say

from shardwright.errors import ShardwrightError
from shardwright.processes import map_processes


def test_workers_have_the_environment_and_folder_of_the_moment(tmp_path, monkeypatch):
    # What they are forked from runs on between the calls, and was started before the second environment was there.
    for text in ("one", "two"):
        monkeypatch.setenv("SHARDWRIGHT_TOLD", text)
        (tmp_path / text).mkdir()
        monkeypatch.chdir(tmp_path / text)
        said = list(map_processes(say, ["SHARDWRIGHT_TOLD"] * 3, 2, "lost"))
        assert said == [(text, str(tmp_path / text), True)] * 3
    monkeypatch.delenv("SHARDWRIGHT_TOLD")
    assert [told for told, _, _ in map_processes(say, ["SHARDWRIGHT_TOLD"], 2, "lost")] == [None]


def test_with_one_worker_no_process_is_started():
    assert list(map_processes(say, ["HOME"], 1, "lost")) == [(os.environ.get("HOME"), os.getcwd(), False)]


def test_a_worker_thatdies_is_told_in_our_words():
    with pytest.raises(ShardwrightError, match="it was lost"):
        list(map_processes(die, [3, 3], 2, "it was lost"))


def test_a_script_that_calls_without_asking_for_its_name_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from asked import say\nfrom shardwright.errors import ShardwrightError\n"
        "from shardwright.processes import map_processes\n"
        "try:\n    list(map_processes(say, ['HOME'] * 2, 2, 'lost'))\n"
        "except ShardwrightError as error:\n    print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("No worker process could begin. A script that starts them needs `if __name__")


def test_a_temporary_folder_with_a_long_name_is_no_hindrance(tmp_path):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    program = (
        "from asked import say; from shardwright.processes import map_processes, warm_up; warm_up(say); "
        "print([told for told, _, _ in map_processes(say, ['TMPDIR'] * 2, 2, 'lost')])"
    )
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[2] / "support")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == f"{[str(folder)] * 2}\n", done.stderr
