"""Shared by the tests that kill a writer: what makes a process kill itself at a given step."""

# Put before a script that is called with (..., step) as its third argument: the step-th rename, link, fsync, mkdir or
# record that it writes is its last.
KILL_AT_STEP = """
import os, signal, sys
from pathlib import Path
left = int(sys.argv[3])

def counted(function):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call

os.rename, os.link, os.fsync = counted(os.rename), counted(os.link), counted(os.fsync)
Path.replace, Path.mkdir, Path.rename = counted(Path.replace), counted(Path.mkdir), counted(Path.rename)
"""
