"""Checks of calls of public functions: their names and number of arguments, and their values, which have any type.

Values of a configuration file are checked by `shardwright.config.parse_values`, which also converts what YAML reads.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import operator
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from shardwright.errors import ConfigError, UsageError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def check_call(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Makes a function refuse unknown, missing and too many arguments with a `UsageError`."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*values: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        bind(signature, function.__name__, values, options)
        return function(*values, **options)

    return checked


def bind(
    signature: inspect.Signature, called: str, values: Sequence[Any], options: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Returns the arguments of a call by their names.

    Args:
        signature: of the function.
        called: its name, for messages.
        values: the positional arguments.
        options: the others.

    Raises:
        UsageError: an argument is unknown, missing, or one too many.
    """
    parameters = signature.parameters.values()
    names = [
        parameter.name
        for parameter in parameters
        if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    ]
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        for option in options:
            if option not in names:
                raise unknown_option(f"{called}: {option}", option, names)
    try:
        bound = signature.bind_partial(*values, **options)
    except TypeError as error:
        problem = str(error) if "multiple values" in str(error) else "too many positional arguments"
        raise UsageError(f"{called}: {problem}. Give options by their names.") from None
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name in names and parameter.name not in bound.arguments:
            raise UsageError(f"{called}: {parameter.name} is missing. Give the option {parameter.name}.")
    return bound


def unknown_option(where: str, option: str, names: Sequence[str], problem: str = "is not an option") -> ConfigError:
    """Returns the error for an option that does not exist, with the name that is close."""
    close = difflib.get_close_matches(option, names, n=1)
    fix = f"Did you mean {close[0]}?" if close else f"Use: {', '.join(names)}." if names else "It has none."
    return ConfigError(where, problem, fix)


def check_list(name: str, value: object) -> None:
    """Refuses a value that is not a list of texts. A text itself would be read letter by letter.

    Raises:
        ConfigError: the value is not such a list.
    """
    if isinstance(value, str):
        raise ConfigError(name, f"{value!r} is not a list", f"Write {name}=[{value!r}].")
    if not isinstance(value, Collection) or isinstance(value, (bytes, Mapping)):
        raise ConfigError(name, f"{value!r} is not a list", f"Write a list of texts, or leave {name} out.")
    for text in value:
        if not isinstance(text, str):
            raise ConfigError(name, f"{text!r} is not a text", "Write a list of texts.")


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
