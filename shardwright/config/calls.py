"""Calls of public constructors: wrong names and numbers of arguments, reported as errors of the options are."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from shardwright.errors import ConfigError, UsageError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


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
    names = [one.name for one in parameters if one.name != "self" and one.kind is not one.VAR_KEYWORD]
    if not any(one.kind is one.VAR_KEYWORD for one in parameters):
        for option in options:
            if option not in names:
                raise unknown_option(f"{called}: {option}", option, names)
    try:
        bound = signature.bind_partial(*values, **options)
    except TypeError as error:
        problem = str(error) if "multiple values" in str(error) else "too many positional arguments"
        raise UsageError(f"{called}: {problem}. Give options by their names.") from None
    for one in parameters:
        if one.default is one.empty and one.name in names and one.name not in bound.arguments:
            raise UsageError(f"{called}: {one.name} is missing. Give the option {one.name}.")
    return bound


def unknown_option(where: str, option: str, names: Sequence[str], problem: str = "is not an option") -> ConfigError:
    """Returns the error for an option that does not exist, with the name that is close."""
    close = difflib.get_close_matches(option, names, n=1)
    fix = f"Did you mean {close[0]}?" if close else f"Use: {', '.join(names)}." if names else "It has none."
    return ConfigError(where, problem, fix)
