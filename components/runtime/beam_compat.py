"""The parts of Beam that are not public and that we use. Checked with Beam 2.59 and 2.77.

`tests/components/runtime/test_beam_compat.py` fails when a release of Beam changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from apache_beam.internal import pickler
from apache_beam.runners.worker import statecache


@contextmanager
def quick_start() -> Iterator[None]:
    """Lets pipelines begin sooner.

    Beam 2.59 pickles each function of a pipeline several times, by default with dill, in pure Python: 28 % of the
    profiled time of a small run. cloudpickle, the default of Beam 2.77, has compiled code for it. Workers of Beam 2.59
    that read with dill read its pickles, too.

    Beam estimates the size of each value that a stage keeps. Before, it lists what all modules contain, to leave that
    out. With TFX these are ten thousand modules: 8 % of that time. Beam's other filter already leaves out modules.
    """
    library, size = pickler.DEFAULT_PICKLE_LIB, statecache.get_deep_size
    pickler.DEFAULT_PICKLE_LIB, statecache.get_deep_size = pickler.USE_CLOUDPICKLE, deep_size
    try:
        yield
    finally:
        pickler.DEFAULT_PICKLE_LIB, statecache.get_deep_size = library, size


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
