"""The heartbeat of a training: hosts that nobody waits for end by themselves."""

import os
import subprocess
import sys
import threading
import time

import pytest

from shardwright.components.runtime import heartbeat
from shardwright.components.runtime.heartbeat import HEARTBEAT, SECONDS, Abandoned, renew, watched
from shardwright.errors import Stopped
from shardwright.running.processes import sigterm_raises

# A host: it trains until it is asked to end, and saves its state.
HOST = """
import os, sys, time
from shardwright.components.runtime.heartbeat import watched
from shardwright.errors import ShardwrightError
from shardwright.running.processes import sigterm_raises
try:
    with watched(os.environ), sigterm_raises():
        print("trains", flush=True)
        time.sleep(600)
except ShardwrightError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def host(folder, seconds):
    variables = {HEARTBEAT: str(folder / "heartbeat"), SECONDS: str(seconds)}
    command = [sys.executable, "-c", HOST]
    process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "trains\n"
    return process


def test_all_hosts_end_when_the_heartbeat_stops_and_not_before(tmp_path):
    over = threading.Event()

    def wait():
        while not over.wait(0.1):
            renew(tmp_path)

    task = threading.Thread(target=wait)
    renew(tmp_path)
    task.start()
    hosts = [host(tmp_path, 1), host(tmp_path, 3600)]
    with pytest.raises(subprocess.TimeoutExpired):
        hosts[0].wait(2)
    over.set()
    task.join()
    said, _ = hosts[0].communicate(timeout=60)
    assert hosts[0].returncode == Abandoned.exit_code == 3
    assert "has not renewed" in said
    assert "retry the run" in said
    # The other hosts stop with it, and say the same.
    hosts[1].terminate()
    hosts[1].communicate(timeout=60)
    assert hosts[1].returncode == 3


def test_a_host_ends_where_no_mark_can_be_made(tmp_path):
    """On a volume that is full, or gone, it would else end as on a preemption, start again, and so on without end."""
    alone = host(tmp_path / "gone", 1)
    said, _ = alone.communicate(timeout=60)
    assert "has not renewed" in said
    assert alone.returncode == 3


@pytest.mark.parametrize(("waited", "error"), [(3580, Abandoned), (3500, Stopped)])
def test_other_hosts_stop_with_it_before_their_own_time_is_over(tmp_path, monkeypatch, waited, error):
    now = time.monotonic()
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now)
    environment = {HEARTBEAT: str(tmp_path / "gone" / "heartbeat"), SECONDS: "3600"}

    def be_stopped():
        nonlocal now
        with watched(environment), sigterm_raises():
            now += waited
            os.kill(os.getpid(), 15)
            time.sleep(60)

    with pytest.raises(error):
        be_stopped()


def test_a_host_that_starts_again_ends_at_once_until_a_task_waits_again(tmp_path):
    environment = {HEARTBEAT: str(tmp_path / "heartbeat"), SECONDS: "3600"}
    (tmp_path / "abandoned").touch()
    with pytest.raises(Abandoned), watched(environment):
        pytest.fail("began to train")
    renew(tmp_path)
    with watched(environment):
        pass

    def be_stopped():
        with watched(environment), sigterm_raises():
            os.kill(os.getpid(), 15)
            time.sleep(60)

    with pytest.raises(Stopped) as stopped:
        be_stopped()
    assert stopped.value.exit_code == 143
