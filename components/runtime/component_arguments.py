"""Checks of the arguments of components by their types, before TFX sees them."""

from __future__ import annotations

import functools
import inspect
import os
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Union, cast

from tfx.dsl.components.base import base_node
from tfx.dsl.placeholder.placeholder import Placeholder
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel
from tfx.utils import json_utils

from shardwright.config.calls import bind
from shardwright.config.inline import as_section
from shardwright.config.parse_values import parse_scalar, section_of
from shardwright.errors import ConfigError, UsageError

_Init = TypeVar("_Init", bound=Callable[..., None])
_SCALARS = (str, int, float, bool)


def check_arguments(init: _Init, *, whole: str = "", allowed: Sequence[str] = ()) -> _Init:
    """Makes the constructor of a component refuse values of wrong types, with a message that states what to write.

    Options may be written as in YAML: `"5%"` is a number, and a mapping is a section.

    Args:
        init: the constructor.
        whole: an option that stands for all others, next to which none of them may be given.
        allowed: options that may be given with it, as the channels may.
    """
    signature = inspect.signature(init)
    hinted = {one.name: one.annotation for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD}
    hinted.pop("self")

    @functools.wraps(init)
    def checked(self: Any, *values: Any, **options: Any) -> None:
        component = type(self).__name__
        bound = bind(signature, component, (self, *values), options)
        given = {name: hint for name, hint in hinted.items() if name in bound.arguments}
        # The annotations are texts, and those of other parameters may be known to type checkers only.
        hints = typing.get_type_hints(types.SimpleNamespace(__annotations__=given), cast(Any, init).__globals__)
        for name, hint in hints.items():
            bound.arguments[name] = _checked(hint, bound.arguments[name], name, component)
            _check_artifacts(type(self).SPEC_CLASS.INPUTS.get(name), bound.arguments[name], name, component)
        for name, value in bound.kwargs.items():
            if name not in hinted:
                _refuse_late(value, name, component)
        if bound.arguments.get(whole) is not None:
            free = {"self", whole, *allowed, *type(self).SPEC_CLASS.INPUTS}
            for name, value in {**bound.arguments, **bound.kwargs}.items():
                if name not in free and value not in (None, {}):
                    problem = f"{whole} is given, too, which stands for all options"
                    raise UsageError(f"{component}: {name}: {problem}. Leave one of them out.")
        init(*bound.args, **bound.kwargs)

    return cast(_Init, checked)


def check_json(values: Mapping[str, Any] | None, where: str) -> None:
    """Refuses values that TFX cannot write into a pipeline, as JSON with sorted keys."""
    try:
        json_utils.dumps({"": None, **(values or {})})
    except (TypeError, ValueError) as error:
        raise ConfigError(where, f"has a value that is not JSON ({error})", "Give texts, numbers, lists.") from None


def _checked(hint: Any, value: Any, name: str, component: str) -> Any:
    """Returns a value of the type, or refuses it."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    kinds = [typing.get_origin(option) or option for option in options]
    if Any in kinds or (value is None and type(None) in kinds):
        return value
    if BaseChannel in kinds:
        return _channel(value, name, component)
    if isinstance(value, base_node.BaseNode):
        raise ConfigError(
            f"{component}: {name}", f"the component {type(value).__name__} is not an option", "Remove it."
        )
    if isinstance(value, (RuntimeParameter, Placeholder)):
        if any(isinstance(value, kind) for kind in kinds if kind in (RuntimeParameter, Placeholder)):
            return value
        _refuse_late(value, name, component)
    if isinstance(value, os.PathLike) and str in kinds:
        return os.fspath(value)
    section = section_of(hint)
    if section is not None and hasattr(section, "PATH"):
        return as_section(section, value, name)
    if isinstance(value, str) and str not in kinds and Sequence in kinds:
        raise ConfigError(f"{component}: {name}", f"{value!r} is not a list", f"Write {name}=[{value!r}].")
    if any(isinstance(value, kind) for kind in kinds if kind not in _SCALARS):
        return value
    if tuple in kinds:
        return _pair(value, name, component)
    scalars = [kind for kind in kinds if kind in _SCALARS]
    if scalars == [float] and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if len(kinds) - (type(None) in kinds) == len(scalars) == 1:
        return parse_scalar(scalars[0], value, f"{component}: {name}")
    if isinstance(value, tuple(scalars)):
        return value
    expected = " or ".join(_NAMED.get(kind, kind.__name__) for kind in kinds if kind is not type(None))
    raise ConfigError(f"{component}: {name}", f"{value!r} has the wrong type", f"Give {expected}.")


def _refuse_late(value: Any, name: str, component: str) -> None:
    """Refuses a value that is known only when the pipeline runs."""
    if isinstance(value, (RuntimeParameter, Placeholder)):
        problem = f"is not a {'runtime parameter' if isinstance(value, RuntimeParameter) else 'placeholder'}"
        fix = "Its value is needed when the pipeline is constructed: give the value itself."
        raise ConfigError(f"{component}: {name}", problem, fix)


_NAMED = {str: "a text", int: "a number", Mapping: "a mapping", Sequence: "a list"}


def _check_artifacts(wanted: Any, value: Any, name: str, component: str) -> None:
    """Refuses an output of another component whose artifacts are of another type, by the rule of TFX."""
    if wanted is None or not isinstance(value, BaseChannel):
        return
    try:
        wanted.type_check(name, value)
    except TypeError:
        problem = f"this channel has artifacts of the type {value.type.__name__}, not {wanted.type.__name__}"
        fix = f"Write for example {name}=component.outputs[{name!r}]."
        raise UsageError(f"{component}: {name}: {problem}. {fix}") from None


def _channel(value: Any, name: str, component: str) -> Any:
    if isinstance(value, BaseChannel):
        return value
    if not isinstance(value, base_node.BaseNode):
        shown = f"{value!r} is not an output of a component"
        raise UsageError(f"{component}: {name}: {shown}. Write for example {name}=component.outputs[{name!r}].")
    kind = type(value).__name__
    key = name if name in value.outputs else next(iter(value.outputs), name)
    raise UsageError(
        f"{component}: {name}: this is the component {kind}, not its output. Add .outputs[{key!r}] to the component."
    )


def _pair(value: Any, name: str, component: str) -> Any:
    if isinstance(value, list):
        return tuple(value)
    number = value if isinstance(value, int) else 256
    problem = f"{value!r} is not a pair of numbers, height and width"
    raise ConfigError(f"{component}: {name}", problem, f"Write {name}=({number}, {number}).")
