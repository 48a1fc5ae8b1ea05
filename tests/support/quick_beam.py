"""Makes Beam start pipelines sooner in tests: three functions took a third of the processor time of a small run.

They return and do the same as before. Beam 2.59 and 2.77 ask nine times for the signature of every method of a DoFn,
which `inspect` computes each time. Both compress each pickled function, a few hundred bytes, with buffers for 900
kilobytes. The dill of Beam 2.59 sets the level of its logger at each call, and `logging` then clears the cache of every
logger there is. `tests/test_setup_prefork.py` fails when one of these places has moved.
"""

import bz2
import inspect
import logging
import types
import weakref
from typing import Any

from apache_beam.internal import cloudpickle_pickler
from apache_beam.transforms import core
from apache_beam.typehints import decorators

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
