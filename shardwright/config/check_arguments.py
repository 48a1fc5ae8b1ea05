"""Checks of the arguments of public functions. Python passes values of any type, and each check names the argument.

Values of a configuration file are checked by `shardwright.config.parse_values`, which also converts what YAML reads.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Collection, Mapping
from typing import Any

from shardwright.errors import ConfigError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def check_list(name: str, value: object) -> None:
    """Refuses a value that is not a list of texts. A text itself would be read letter by letter.

    Raises:
        ConfigError: the value is not such a list.
    """
    if isinstance(value, str):
        raise ConfigError(name, f"{value!r} is not a list", f"Write {name}=[{value!r}].")
    if not isinstance(value, Collection) or isinstance(value, (bytes, Mapping)):
        raise ConfigError(name, f"{value!r} is not a list", f"Write a list of texts, or leave {name} out.")
    for one in value:
        if not isinstance(one, str):
            raise ConfigError(name, f"{one!r} is not a text", "Write a list of texts.")


def check_whole(name: str, value: Any, *, least: int | None = None, most: int | None = None) -> None:
    """Refuses a value that is not a whole number, or out of range; numbers of NumPy are accepted.

    Raises:
        ConfigError: the value is not such a number.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise ConfigError(
            name, f"{value!r} is not a whole number", f"Write a number such as {name}={max(1, least or 1)}."
        )
    if least is not None and number < least:
        raise ConfigError(name, f"{value} is too small", f"Use at least {least}.")
    if most is not None and number > most:
        raise ConfigError(name, f"{value} is too large", f"Use at most {most}.")


def check_flags(values: Mapping[str, Any]) -> None:
    """Refuses values that are neither True nor False.

    Raises:
        ConfigError: a value is of another type.
    """
    for name, value in values.items():
        # NumPy's truth values are of a type that is not Python's.
        if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
            raise ConfigError(name, f"{value!r} is neither True nor False", f"Write {name}=True or {name}=False.")


def check_local_folder(name: str, value: Any) -> str:
    """Returns the path of a folder on this machine, and refuses all else.

    Raises:
        ConfigError: the value is a URL, or not a path.
    """
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str) or not path:
        raise ConfigError(name, f"{value!r} is not a path", "Name a folder on this machine.")
    if _URL.match(path):
        raise ConfigError(name, f"{path!r} is a URL", "Name a folder on this machine.")
    return path
