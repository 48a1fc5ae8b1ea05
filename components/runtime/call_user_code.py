"""Calls a function of the user, and finds what it reads that is not part of the fingerprint.

The fingerprint is read from syntax trees (`user_code`). Which files a glob matches, or what name a program puts
together, only the program shows. So each file that Python opens while the function is imported and called must be a
part of the fingerprint, belong to Python, to the system or to an installed package, or have been written by the code
itself. Not seen are files that a library opens in C, other programs, and what the code reads later.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from shardwright import errors
from shardwright.components.runtime.user_code import (
    INSTALLED,
    STANDARD,
    Code,
    import_function,
    module_source,
    places_of,
)
from shardwright.errors import UsageError
from shardwright.text.escaping import escape

_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr", "/run", "/System", "/Library")
# Below these, but of people: memory that is used as a disk, and disks that were plugged in.
_OF_PEOPLE = ("/dev/shm", "/run/shm", "/run/media", "/run/user")  # noqa: S108
# Of the core's folder and, in a checkout, of what is a link in it.
_OURS = [os.path.realpath(Path(errors.__file__).parent / name) for name in ("", "components", "pipelines")]
_WRITES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_SHOWN = 3
# An audit hook stays as long as the process. There is one, which notes into the set that is being filled.
_filling: list[set[str]] = []
_written: set[str] = set()
_hooks: list[Any] = []


def call_function(
    path: str,
    code: Code,
    *,
    option: str,
    own: Sequence[str] = (),
    tell: Callable[[str], None] | None = None,
    **given: Any,
) -> Any:
    """Imports a function, and calls it with those of the given keywords that it takes.

    Args:
        path: `package.module:function`.
        code: its part of the recipe, see `user_code`; empty: its reads are not checked.
        option: the option with the path, for messages.
        own: folders of its earlier results, which it may read.
        tell: is told about a file that is not part of its code, instead of an error: trackers of runs read what they
            have written before.
        **given: the keywords.

    Raises:
        UsageError: it cannot be imported, fails, or reads a file that is not part of its code.
    """
    with _opened() as read:
        function = import_function(path, option=option)
        parameters = inspect.signature(function).parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            given = {name: value for name, value in given.items() if name in parameters}
        try:
            result = function(**given)
        except Exception as error:
            # A custom function may raise any error.
            raise UsageError(f"{option}: {path} failed ({type(error).__name__}: {error}). Correct it.") from error
    unknown = _unknown(read, code, own) if code else []
    if unknown:
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        inner = os.path.relpath(unknown[0], os.path.dirname(module_source(path.partition(":")[0]) or ""))
        inner = os.path.basename(inner) if inner.startswith("..") else inner
        way = f"`import {inner[:-3]}`" if inner.endswith(".py") else f'`Path(__file__).parent / "{inner}"`'
        problem = (
            f"{option}: {path} reads {', '.join(escape(file) for file in unknown[:_SHOWN])}{more}, which is not part "
            "of the fingerprint: after an edit the old model would be taken for the new one. Keep it next to the code "
            f"and name it there, {escape(way)}, or put both into a package: a folder with __init__.py."
        )
        if tell is None:
            raise UsageError(problem)
        tell(problem)
    return result


@contextmanager
def _opened() -> Iterator[set[str]]:
    """Collects the files that Python opens for reading, but those that it has written before."""
    if not _hooks:
        _hooks.append(_note)
        sys.addaudithook(_note)
    read: set[str] = set()
    _filling.append(read)
    try:
        yield read
    finally:
        _filling.remove(read)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not _filling or not isinstance(arguments[0], (str, bytes, os.PathLike)):
        return
    file = os.path.realpath(os.fsdecode(arguments[0]))
    if arguments[2] & _WRITES:
        _written.add(file)
    elif file not in _written:
        _filling[-1].add(file)


def _unknown(read: set[str], code: Code, own: Sequence[str]) -> list[str]:
    """Returns the files that are not accounted for."""
    known = [Path(os.path.realpath(place)) for place in places_of(code)]
    excused = [*known, *(Path(os.path.realpath(folder)) for folder in own)]
    mine = {Path.cwd(), *(place.parent for place in known)}
    theirs = {Path(os.path.realpath(folder)) for folder in (*STANDARD, *_OURS, *_SYSTEM, sys.prefix, sys.base_prefix)}
    strange = set(map(Path, _OF_PEOPLE))
    unknown = set()
    for name in read:
        file = Path(source_from_cache(name) if name.endswith(".pyc") and "__pycache__" in name else name)
        if any(file.is_relative_to(place) for place in excused):
            continue
        # The innermost folder decides: an environment may be in a project, and a project in /usr/src.
        folders = (folder for folder in mine | theirs | strange if file.is_relative_to(folder))
        around = max(folders, key=lambda folder: len(folder.parts), default=None)
        inside = file.relative_to(around).parts if around in mine else file.parts
        # Hidden folders are caches, as in `user_code`.
        hidden = any(part.startswith(".") for part in inside)
        if not hidden and INSTALLED.isdisjoint(file.parts) and around not in theirs - strange:
            unknown.add(os.path.relpath(file) if file.is_relative_to(os.getcwd()) else str(file))
    return sorted(unknown)
