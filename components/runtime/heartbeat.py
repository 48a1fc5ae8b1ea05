"""The heartbeat of a training in a JobSet: a file that the waiting task renews, and that every host watches.

Kubeflow kills the task of a terminated run without a signal that reaches it, so that it cannot delete its set. Its
hosts then see that the file no longer changes. They end as on a preemption, with a checkpoint, but with an exit code
that makes JobSet fail the set: that frees the TPUs. The file is on the volume that the task and the pods mount, so no
pod of the set needs rights in the cluster. A host compares no clocks: it measures how long it has seen no change.

The mark `abandoned` next to it is for hosts that end, or start again, before the set has failed. A task that comes back
removes it, and the set goes on.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from shardwright.errors import ShardwrightError, Stopped

HEARTBEAT, SECONDS = "SHARDWRIGHT_HEARTBEAT", "SHARDWRIGHT_HEARTBEAT_SECONDS"
FILE = "heartbeat"
_MARK = "abandoned"
_MOST_BETWEEN_LOOKS = 15.0
# Longer than a checkpoint takes. A host that still runs is stuck, for example in an operation of all hosts.
_SECONDS_TO_SAVE = 100.0


class Abandoned(ShardwrightError):
    """The task that waits for this training is gone. Exit code 3: the set of hosts fails and is not restarted."""

    exit_code = 3


def renew(folder: Path) -> None:
    """Renews the heartbeat in a folder, of a task that waits."""
    Path(folder, FILE).write_text(str(time.time()), encoding="utf-8")
    Path(folder, _MARK).unlink(missing_ok=True)


@contextmanager
def watched(environment: Mapping[str, str]) -> Iterator[None]:
    """Ends the work of the block by SIGTERM when the heartbeat stops, if the environment names one.

    Raises:
        Abandoned: in place of `Stopped`, and at once if another host has found it before.
    """
    if HEARTBEAT not in environment:
        yield
        return
    file, seconds = Path(environment[HEARTBEAT]), float(environment[SECONDS])
    mark = file.with_name(_MARK)
    gone = Abandoned(
        f"the task that waits for this training has not renewed {file} for {seconds:g} s. Its run was terminated, or "
        "its node is gone. The training was stopped; retry the run, and it continues from its last checkpoint."
    )
    if mark.exists():
        raise gone
    watch = _Watch(file, mark, seconds)
    watch.start()
    try:
        yield
    except Stopped:
        # No mark can be made on a volume that is full, or gone.
        if mark.exists() or watch.is_stale():
            raise gone from None
        raise
    finally:
        watch.over.set()


class _Watch(threading.Thread):
    """Sends SIGTERM to this process when a file has not changed for some seconds."""

    def __init__(self, file: Path, mark: Path, seconds: float) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self._file, self._mark, self._seconds = file, mark, seconds
        self._between_looks = min(seconds / 10, _MOST_BETWEEN_LOOKS)
        self._changed = time.monotonic()

    def is_stale(self) -> bool:
        """Returns whether the file has not changed for so long that other hosts may have ended for it."""
        return time.monotonic() - self._changed > self._seconds - 2 * self._between_looks

    def run(self) -> None:
        seen = b""
        while not self.over.wait(self._between_looks):
            # A file server may be away for a while.
            with suppress(OSError):
                found = self._file.read_bytes()
                if found != seen:
                    seen, self._changed = found, time.monotonic()
            if time.monotonic() - self._changed > self._seconds:
                break
        else:
            return
        with suppress(OSError):
            self._mark.touch()
        os.kill(os.getpid(), signal.SIGTERM)
        if not self.over.wait(_SECONDS_TO_SAVE):
            os._exit(Abandoned.exit_code)
