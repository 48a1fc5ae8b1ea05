"""Runs a command of `shardwright` and writes down which names it opens for writing, makes, renames or deletes."""

import json
import os
import signal
import sys
from pathlib import Path

_FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit event -> how many of its first arguments are names.
_EVENTS = {
    "os.mkdir": 1,
    "os.rename": 2,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.chmod": 1,
    "os.utime": 1,
    "shutil.rmtree": 1,
    "shutil.copyfile": 2,
    "sqlite3.connect": 1,
}
_SECONDS = 60

# The parent starts this with the names of the file and the folder, and the command. Its third line makes it a fork.
PROGRAM = """
import sys
import shardwright.components
from observing import observe
sys.exit(observe(*sys.argv[1:3], sys.argv[3:]))
"""


def observe(result: str, folder: str, arguments: list[str]) -> int:
    """Runs the command in the current folder; the names below `folder` are in `result` when it ends."""
    names: set[str] = set()

    def hook(event: str, given: tuple[object, ...]) -> None:
        if event == "open":
            count = 1 if isinstance(given[2], int) and given[2] & _FOR_WRITING else 0
        else:
            count = _EVENTS.get(event, 0)
        for name in given[:count]:
            if isinstance(name, (str, bytes, os.PathLike)):
                text = os.fsdecode(name).removeprefix("file://").partition("?")[0]
                place = os.path.abspath(os.path.join(os.getcwd(), text))
                if place.startswith(f"{folder}/") and result not in place:
                    names.add(os.path.relpath(place, folder))

    from shardwright.pipelines.cli import main

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(
        _SECONDS if arguments[0] != "run" else 10 * _SECONDS
    )  # A pipe that is opened for reading and writing may be waited for.
    sys.addaudithook(hook)
    try:
        return main(arguments)
    finally:
        found = json.dumps(sorted(names))
        Path(result).write_text(found, encoding="utf-8")
