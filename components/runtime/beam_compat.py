"""The parts of Beam that are not public and that we use. Checked with Beam 2.59 and 2.77.

`tests/components/runtime/test_beam_compat.py` fails when a release of Beam changes them.
"""

from __future__ import annotations

import argparse
import bz2
import copy
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from apache_beam.internal import cloudpickle_pickler, pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct import transform_evaluator
from apache_beam.runners.worker import statecache
from apache_beam.transforms import core, userstate

_read_arguments, _read_states = core.get_function_args_defaults, userstate.get_dofn_specs
_ARGUMENTS: WeakKeyDictionary[FunctionType, tuple[list[str], list[Any]]] = WeakKeyDictionary()
# Class of a DoFn -> names that one of its objects has defined for itself -> its states and timers.
_STATES: WeakKeyDictionary[type, dict[tuple[str, ...], tuple[set[Any], set[Any]]]] = WeakKeyDictionary()
# Class of options and the flags -> values of the flags. It takes longer to make a parser of them than to parse.
_VALUES: dict[tuple[type, tuple[str, ...]], dict[str, Any]] = {}
_PLAIN = (type(None), bool, int, float, str)
# The module that pickles functions; Beam 2.77 has its own copy of the package.
_CLOUDPICKLE = sys.modules[cloudpickle_pickler.cloudpickle.CloudPickler.__module__]
_search_submodules = _CLOUDPICKLE._find_imported_submodules


@contextmanager
def quick_start() -> Iterator[None]:
    """Lets pipelines begin sooner: see `quick_functions`."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in quick_functions()]
    for owner, name, value in quick_functions():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def quick_functions() -> list[tuple[Any, str, Any]]:
    """Returns what replaces functions of Beam, as owner, name and value. They return what Beam's return.

    Beam 2.59 pickles each function of a pipeline several times, by default with dill, in pure Python: 28 % of the
    profiled time of a small run. cloudpickle, the default of Beam 2.77, has compiled code for it. Workers of Beam 2.59
    that read with dill read its pickles, too. Pickles of a few hundred bytes are compressed with small buffers, and
    the modules that a function uses are looked up instead of searched among ten thousand.

    Beam estimates the size of each value that a stage keeps. Before, it lists what all modules contain, to leave that
    out. With TFX these are ten thousand modules: 8 % of that time. Beam's other filter already leaves out modules.

    Beam asks several times for each step and each bundle whether a step has a state, and reads the signatures of all
    methods for the answer: 10 % of that time. A function has one signature, and a class of steps the same states.

    A view of a pipeline's options builds a parser of all its flags, thousands of times in a run: 7 % of that time.
    """
    return [
        (pickler, "DEFAULT_PICKLE_LIB", pickler.USE_CLOUDPICKLE),
        (cloudpickle_pickler, "bz2", _SMALL_BUFFERS),
        (_CLOUDPICKLE, "_find_imported_submodules", imported_submodules),
        (statecache, "get_deep_size", deep_size),
        (core, "get_function_args_defaults", arguments_of),
        (userstate, "get_dofn_specs", states_of),
        (transform_evaluator, "get_dofn_specs", states_of),
        (PipelineOptions, "view_as", view_as),
        (PipelineOptions, "_visible_option_list", _visible_option_list),
    ]


def arguments_of(function: Any) -> tuple[list[str], list[Any]]:
    """Returns what Beam's `get_function_args_defaults` does: names of arguments that are not bound, and defaults."""
    # A bound method is a new object each time, its function is not.
    method = getattr(function, "__func__", None)
    if not isinstance(method, FunctionType):
        return _read_arguments(function)
    if method not in _ARGUMENTS:
        _ARGUMENTS[method] = _read_arguments(function)
    names, defaults = _ARGUMENTS[method]
    return [*names], [*defaults]


def deep_size(*values: Any) -> int:
    """Returns what Beam's `get_deep_size` returns for values that no module contains."""
    size: int = statecache.objsize.get_deep_size(
        *values,
        get_size_func=statecache._size_func,
        get_referents_func=statecache._get_referents_func,
        filter_func=statecache._filter_func,
        exclude_modules_globals=False,
    )
    return size


def states_of(dofn: Any) -> tuple[set[Any], set[Any]]:
    """Returns what Beam's `get_dofn_specs` does: it depends on the methods that Beam sees."""
    kind, own = type(dofn), vars(dofn)
    if any(isinstance(value, MethodType) for value in own.values()):
        return _read_states(dofn)
    names = tuple(name for name in own if hasattr(kind, name))
    known = _STATES.setdefault(kind, {})
    if names not in known:
        found = _read_states(dofn)
        # Beam asks `_inspect_NAME` of an object for the parameters of its method NAME.
        asked = [name.removeprefix("_inspect_") for name in dir(kind) if name.startswith("_inspect_")]
        if not set(asked) <= set(names):
            return found
        known[names] = found
    states, timers = known[names]
    return set(states), set(timers)


def view_as(options: Any, kind: Any) -> Any:
    """Returns what the method of Beam's options of the same name does."""
    key = (kind, tuple(options._flags)) if isinstance(options._flags, list) else None
    if key is None or key not in _VALUES:
        view: Any = kind(options._flags)
        values = vars(view._visible_options)
        if key is not None and _is_plain([*values.values()]):
            _VALUES[key] = copy.deepcopy(values)
    else:
        view = kind.__new__(kind)
        view._flags = options._flags
        view._visible_options = argparse.Namespace(**copy.deepcopy(_VALUES[key]))
    for name, value in vars(view._visible_options).items():
        options._all_options.setdefault(name, value)
    view._all_options = options._all_options
    return view


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, _PLAIN)


def _visible_option_list(options: Any) -> list[str]:
    return sorted(name for name in vars(options._visible_options) if not name.startswith("_"))


def imported_submodules(code: CodeType, dependencies: Iterable[Any]) -> list[Any]:
    """Returns the modules that cloudpickle's function of another name does, in the order of the code's names."""
    found: list[Any] = []
    packages = [one for one in dependencies if isinstance(one, ModuleType) and getattr(one, "__package__", None)]
    for package in packages:
        prefixes = [package.__name__]
        for prefix in prefixes:
            names = [name for name in (f"{prefix}.{part}" for part in code.co_names) if name in sys.modules]
            found += [sys.modules[name] for name in names]
            prefixes += names
    return found


def _compress(data: bytes, compresslevel: int = 9) -> bytes:
    """Returns data that `bz2.decompress` reads; the level sets the size of the buffers, in 100 kB."""
    return bz2.compress(data, 1 if len(data) < _ONE_BUFFER else compresslevel)


_ONE_BUFFER = 100_000
_SMALL_BUFFERS = SimpleNamespace(compress=_compress, decompress=bz2.decompress)
