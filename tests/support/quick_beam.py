"""Makes Beam start pipelines sooner in tests: five functions took much of the processor time of a small run.

They return and do the same as before. Beam 2.59 and 2.77 ask nine times for the signature of every method of a DoFn,
which `inspect` computes each time. Both compress each pickled function, a few hundred bytes, with buffers for 900
kilobytes. The dill of Beam 2.59 sets the level of its logger at each call, and `logging` then clears the cache of every
logger there is. A view of the pipeline's options builds a parser of all its flags, thousands of times in a run. Each
operation looks through all methods of its DoFn for states and timers, several times in each bundle. Components that a
test calls outside of `in_process_beam` measure kept values as quickly as those within (`beam_compat.deep_size`).
`tests/test_setup_prefork.py` fails when one of these places has moved.
"""

import argparse
import bz2
import copy
import inspect
import logging
import types
import weakref
from typing import Any

from apache_beam.internal import cloudpickle_pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct import transform_evaluator
from apache_beam.runners.worker import statecache
from apache_beam.transforms import core, userstate
from apache_beam.typehints import decorators

from shardwright.components.runtime.beam_compat import deep_size

# Function of a method -> signature of the method. A method itself is a new object at every look.
_SIGNATURES: weakref.WeakKeyDictionary[types.FunctionType, inspect.Signature] = weakref.WeakKeyDictionary()
_get_signature = decorators.get_signature


def get_signature(func: Any) -> inspect.Signature:
    """Returns what Beam's function of the same name returns."""
    if not isinstance(func, types.MethodType) or not isinstance(func.__func__, types.FunctionType):
        return _get_signature(func)
    found = _SIGNATURES.get(func.__func__)
    if found is None:
        found = _SIGNATURES[func.__func__] = _get_signature(func)
    return found


decorators.get_signature = core.get_signature = get_signature
statecache.get_deep_size = deep_size

# Class of a DoFn -> names that one of its objects has defined for itself -> its states and timers.
_SPECS: weakref.WeakKeyDictionary[type, dict[tuple[str, ...], tuple[set[Any], set[Any]]]] = weakref.WeakKeyDictionary()
_get_dofn_specs = userstate.get_dofn_specs


def get_dofn_specs(dofn: Any) -> tuple[set[Any], set[Any]]:
    """Returns what Beam's function of the same name returns: it depends on the methods that Beam sees."""
    kind, own = type(dofn), vars(dofn)
    if any(isinstance(value, types.MethodType) for value in own.values()):
        return _get_dofn_specs(dofn)
    names = tuple(name for name in own if hasattr(kind, name))
    known = _SPECS.setdefault(kind, {})
    if names not in known:
        found = _get_dofn_specs(dofn)
        # Beam asks `_inspect_NAME` of an object for the parameters of its method NAME.
        asked = [name.removeprefix("_inspect_") for name in dir(kind) if name.startswith("_inspect_")]
        if not set(asked) <= set(names):
            return found
        known[names] = found
    states, timers = known[names]
    return set(states), set(timers)


userstate.get_dofn_specs = transform_evaluator.get_dofn_specs = get_dofn_specs

# Class of options and the flags -> values of the flags. It takes longer to make a parser of them than to parse.
_OPTIONS: dict[tuple[type, tuple[str, ...]], dict[str, Any]] = {}
_PLAIN = (type(None), bool, int, float, str)


def view_as(self: Any, cls: type) -> Any:
    """Returns what Beam's method of the same name returns."""
    key = (cls, tuple(self._flags)) if isinstance(self._flags, list) else None
    if key is None or key not in _OPTIONS:
        view = cls(self._flags)
        values = vars(view._visible_options)
        if key is not None and _is_plain([*values.values()]):
            _OPTIONS[key] = copy.deepcopy(values)
    else:
        view = cls.__new__(cls)
        view._flags = self._flags
        view._visible_options = argparse.Namespace(**copy.deepcopy(_OPTIONS[key]))
    for name, value in vars(view._visible_options).items():
        self._all_options.setdefault(name, value)
    view._all_options = self._all_options
    return view


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, _PLAIN)


def _visible_option_list(self: Any) -> list[str]:
    return sorted(name for name in vars(self._visible_options) if not name.startswith("_"))


PipelineOptions.view_as = view_as
PipelineOptions._visible_option_list = _visible_option_list


def compress(data: bytes, compresslevel: int = 9) -> bytes:
    """Returns data that `bz2.decompress` reads."""
    return bz2.compress(data, 1)


_SMALL = types.SimpleNamespace(compress=compress, decompress=bz2.decompress)
cloudpickle_pickler.bz2 = _SMALL

try:
    from apache_beam.internal import dill_pickler
    from dill import _dill
except ImportError:  # Beam 2.77 pickles by other means.
    pass
else:
    dill_pickler.bz2 = _SMALL

    def _trace(boolean: bool) -> None:
        level = logging.INFO if boolean else logging.WARNING
        if _dill.log.level != level:
            _dill.log.setLevel(level)

    if hasattr(_dill, "_trace"):
        _dill._trace = _trace
