"""Makes Beam start pipelines sooner in tests, also those that a test starts outside of `in_process_beam`.

All that `beam_compat.quick_functions` replaces is replaced for good, but for the library that pickles. Two more
functions do the same as before. Beam 2.59 and 2.77 ask nine times for the signature of every method of a DoFn, which
`inspect` computes each time. The dill of Beam 2.59 sets the level of its logger at each call, and `logging` then clears
the cache of every logger there is. `tests/test_setup_prefork.py` fails when one of these places has moved.
"""

import inspect
import logging
import types
import weakref
from typing import Any

from apache_beam.internal import cloudpickle_pickler
from apache_beam.transforms import core
from apache_beam.typehints import decorators

from shardwright.components.runtime.beam_compat import quick_functions

for owner, name, value in quick_functions():
    if name != "DEFAULT_PICKLE_LIB":
        setattr(owner, name, value)

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

try:
    from apache_beam.internal import dill_pickler
    from dill import _dill
except ImportError:  # Beam 2.77 pickles by other means.
    pass
else:
    dill_pickler.bz2 = cloudpickle_pickler.bz2

    def _trace(boolean: bool) -> None:
        level = logging.INFO if boolean else logging.WARNING
        if _dill.log.level != level:
            _dill.log.setLevel(level)

    if hasattr(_dill, "_trace"):
        _dill._trace = _trace
