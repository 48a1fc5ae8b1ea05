"""The arguments of components: checked by their types before TFX sees them, and taken from a configuration."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Union, cast

from tfx.dsl.components.base import base_component, base_node
from tfx.dsl.placeholder.placeholder import Placeholder
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel, ComponentSpec
from tfx.utils import json_utils

from shardwright.config import Config, as_config
from shardwright.config.check_arguments import bind
from shardwright.config.parse_values import keys_of, parse_scalar, section_of
from shardwright.errors import ConfigError, UsageError
from shardwright.ingest.baseline import push_directory_of, resolve_baseline

_Init = TypeVar("_Init", bound=Callable[..., None])
_Component = TypeVar("_Component", bound=base_component.BaseComponent)
_Parameters = ParamSpec("_Parameters")
_Section = TypeVar("_Section")
# A section of the configuration: an object of its class, or a mapping of its keys; `None` for the defaults.
Options = Union[_Section, Mapping[str, Any], None]  # noqa: UP007 -- an alias with a type variable

_SCALARS = (str, int, float, bool)
_NAMED = {str: "a text", int: "a number", Mapping: "a mapping", Sequence: "a list"}
# Parameters of components that are no keys of the configuration, and follow from it.
_DERIVED: dict[str, Callable[[Config], Any]] = {
    "base": lambda config: config.base,
    "push_directory": push_directory_of,
    "batch_size": lambda config: config.trainer.batch_size,
}


class FromConfig(Generic[_Parameters]):
    """`Component.from_config(config, ...)`: the constructor with the values of a configuration, or of its YAML file.

    All parameters of the constructor may follow; one that is given replaces that of the configuration.

    Args:
        init: the constructor, whose parameters have the names of the configuration.
        with_baseline: whether `blessed` in the configuration stands for the dataset of the model that is blessed now.
    """

    def __init__(self, init: Callable[Concatenate[Any, _Parameters], None], *, with_baseline: bool = False) -> None:
        self._init = init
        self._with_baseline = with_baseline

    def __get__(
        self, instance: _Component | None, owner: type[_Component]
    ) -> Callable[Concatenate[str | os.PathLike[str] | Config, _Parameters], _Component]:
        """Returns the function for a component's class."""
        itself, *parameters = inspect.signature(self._init).parameters.values()

        def from_config(
            config: str | os.PathLike[str] | Config, /, *values: _Parameters.args, **options: _Parameters.kwargs
        ) -> _Component:
            loaded = as_config(config)
            loaded = resolve_baseline(loaded) if self._with_baseline else loaded
            left = [one.name for one in parameters[len(values) :] if one.name not in options]
            given = {name: getattr(loaded, name) for name in left if name in keys_of(Config)}
            given |= {name: _DERIVED[name](loaded) for name in left if name in _DERIVED}
            return owner(*values, **given, **options)

        from_config.__doc__ = "Makes the component with the values of a configuration, or of its YAML file."
        first = itself.replace(name="config", kind=itself.POSITIONAL_ONLY)
        signature = inspect.Signature([first, *parameters])
        from_config.__signature__ = signature  # type: ignore[attr-defined] # functions may have one
        return from_config


def component_of(kind: type[_Component], spec: ComponentSpec) -> _Component:
    """Makes a component of its channels and parameters, some of which may be known only when the pipeline runs."""
    component: _Component = object.__new__(kind)
    base_component.BaseComponent.__init__(component, spec=spec)
    return component


def check_arguments(init: _Init) -> _Init:
    """Makes the constructor of a component refuse values of wrong types, with a message that states what to write."""
    signature, names = _with_sections(init)
    hinted = {one.name: one.annotation for one in signature.parameters.values()}
    hinted.pop("self")

    @functools.wraps(init)
    def checked(self: Any, *values: Any, **options: Any) -> None:
        component = type(self).__name__
        bound = bind(signature, component, (self, *values), options)
        given = {name: hint for name, hint in hinted.items() if name in bound.arguments}
        # The annotations are texts, and those of other parameters may be known to type checkers only.
        hints = typing.get_type_hints(types.SimpleNamespace(__annotations__=given), names)
        for name, hint in hints.items():
            bound.arguments[name] = _checked(hint, bound.arguments[name], name, component)
            _check_artifacts(type(self).SPEC_CLASS.INPUTS.get(name), bound.arguments[name], name, component)
        init(*bound.args, **bound.kwargs)

    checked.__signature__ = signature  # type: ignore[attr-defined] # functions may have one
    return cast(_Init, checked)


def _with_sections(init: Callable[..., None]) -> tuple[inspect.Signature, dict[str, Any]]:
    """Returns the signature of a constructor, with a parameter for each key of `**sections: Unpack[Sections]`.

    And the names that its annotations have.
    """
    signature, names = inspect.signature(init), cast(Any, init).__globals__
    *parameters, last = signature.parameters.values()
    if last.kind is not last.VAR_KEYWORD:
        return signature, names
    of = names[last.annotation.removeprefix("Unpack[").removesuffix("]")]
    keys = ((name, hint.__forward_arg__) for name, hint in of.__annotations__.items())
    sections = [inspect.Parameter(name, last.KEYWORD_ONLY, default=None, annotation=hint) for name, hint in keys]
    return signature.replace(parameters=[*parameters, *sections]), {**vars(sys.modules[of.__module__]), **names}


def required(component: str, name: str, value: _Section | None, written: str) -> _Section:
    """Returns the value of an option that `from_config` finds itself, and that the constructor needs.

    Raises:
        UsageError: it is missing.
    """
    if value is None:
        raise UsageError(f"{component}: {name} is missing. Write {written}.")
    return value


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
    if isinstance(value, (RuntimeParameter, Placeholder)) and not any(
        isinstance(value, kind) for kind in kinds if kind in (RuntimeParameter, Placeholder)
    ):
        problem = f"is not a {'runtime parameter' if isinstance(value, RuntimeParameter) else 'placeholder'}"
        fix = "Its value is needed when the pipeline is constructed: give the value itself."
        raise ConfigError(f"{component}: {name}", problem, fix)
    if isinstance(value, os.PathLike) and str in kinds:
        return os.fspath(value)
    if hasattr(section_of(hint), "PATH"):
        return value
    if isinstance(value, str) and str not in kinds and Sequence in kinds:
        raise ConfigError(f"{component}: {name}", f"{value!r} is not a list", f"Write {name}=[{value!r}].")
    if any(isinstance(value, kind) for kind in kinds if kind not in _SCALARS):
        return value
    scalars = [kind for kind in kinds if kind in _SCALARS]
    if scalars == [float] and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if len(kinds) - (type(None) in kinds) == len(scalars) == 1:
        return parse_scalar(scalars[0], value, f"{component}: {name}")
    if isinstance(value, tuple(scalars)):
        return value
    expected = " or ".join(_NAMED.get(kind, kind.__name__) for kind in kinds if kind is not type(None))
    raise ConfigError(f"{component}: {name}", f"{value!r} has the wrong type", f"Give {expected}.")


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
