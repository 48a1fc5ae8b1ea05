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
