"""Runs a container's command as Kubernetes does with `readOnlyRootFilesystem`: as user 1000, on a read-only root.

The process makes a user and a mount namespace, in which all but its mounts is read-only. The processes that it starts
do the same. A command runs as the tests do if namespaces may not be made, as in the other stack's own system.
"""

import ctypes
import functools
import json
import os
import subprocess
import sys

# The folders that a process of a container may write to, as JSON; `prefork_client.py` obeys it.
VARIABLE = "SHARDWRIGHT_TEST_WRITABLE"
USER = 1000
# The folder of `prefork.py`, if processes are forks of its server: its programs enter, and write their records there.
_PREFORK = "SHARDWRIGHT_TEST_PREFORK_FOLDER"
# linux/sched.h and linux/mount.h.
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
# Flags of a mount that a new namespace must keep: nosuid, nodev, noexec.
_KEPT = 2 | 4 | 8
_DEVICES = ("/dev", "/proc", "/sys")


def is_inside():
    """Returns whether this process has a read-only root already."""
    return bool(os.statvfs("/").f_flag & _READ_ONLY)


def enter(writable):
    """Makes this process, which has one thread, user 1000 on a read-only root with some writable folders."""
    libc = ctypes.CDLL(None, use_errno=True)
    outside = os.getuid(), os.getgid()
    _check(libc.unshare(_NEW_USER | _NEW_MOUNTS))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{USER} {outside[0]} 1"),
        ("gid_map", f"{USER} {outside[1]} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)

    def mount(place, flags):
        own = place.encode()
        _check(libc.mount(own, own, None, ctypes.c_ulong(flags), None))

    mount("/", _RECURSIVE | _PRIVATE)
    places = {os.path.realpath(place) for place in writable}
    # `tools/run_tests` puts the files of tests into a folder in memory, which is read-only, too.
    tests = {"/".join(place.split("/")[:4]) for place in places if place.startswith("/dev/shm/")} - places
    for place in [*tests, *sorted(places)]:
        mount(place, _BIND)
    for place in _mount_points() - places:
        if place in tests or not f"{place}/".startswith(tuple(f"{device}/" for device in _DEVICES)):
            kept = os.statvfs(place).f_flag & _KEPT
            mount(place, _REMOUNT | _BIND | _READ_ONLY | kept)
    os.chdir(os.getcwd())
    # Version 3, this process; no effective, permitted or inheritable capability. Else permissions would not hold.
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _check(libc.capset(header, (ctypes.c_uint32 * 6)()))


def enter_as_asked(environment):
    """Enters, if a variable asks for it and this process is not inside."""
    if environment.get(VARIABLE) and not is_inside():
        enter(json.loads(environment[VARIABLE]))


@functools.cache
def is_available():
    """Returns whether commands can be run on a read-only root here."""
    program = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import sandbox; sandbox.enter([])"
    return not subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode


def training_model():
    """Names a model that is trained in a container only, or one for anywhere if containers have no sandbox here."""
    return "own_models:in_container" if is_available() else "own_models:normed"


def run_container(command, *, log, environment, folder, writable=()):
    """Runs `python …` as `start_container` does; returns its exit code, 128 and the signal's number if one ended it.

    Args:
        command: of the container.
        log: file of its output.
        environment: its variables; the others are those of the tests.
        folder: its working folder and home, which are empty and part of the root.
        writable: folders that it may write to: its mounts. Temporary files have one of their own.
    """
    with log.open("w", encoding="utf-8") as output:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output}
        code = start_container(command, environment=environment, folder=folder, writable=writable, **streams).wait()
    return code if code >= 0 else 128 - code


def start_container(command, *, environment, folder, writable=(), **options):
    """Starts `python …` in a new folder; returns its process. See `run_container`.

    Args:
        options: further ones of `Popen`; its errors go to its standard output.
    """
    assert command[0] == "python"
    folder.mkdir(parents=True, exist_ok=True)
    own = {**os.environ, **environment}
    if is_available():
        temporary = folder.with_name(f"{folder.name}-tmp")
        temporary.mkdir()
        own |= {"HOME": str(folder), "TMPDIR": str(temporary)}
        records = [own[_PREFORK]] if _PREFORK in own else []
        own[VARIABLE] = json.dumps([str(temporary), *map(str, writable), *records])
    return subprocess.Popen(
        [sys.executable, *command[1:]],
        cwd=folder,
        env=own,
        stderr=subprocess.STDOUT,
        preexec_fn=None if _PREFORK in own else functools.partial(enter_as_asked, own),
        **options,
    )


def _mount_points():
    with open("/proc/self/mounts", encoding="utf-8") as lines:
        return {line.split()[1].encode().decode("unicode_escape") for line in lines}


def _check(code):
    if code:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
