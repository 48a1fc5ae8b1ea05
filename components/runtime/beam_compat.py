"""The parts of Beam that are not public and that we use. Checked with Beam 2.59 and 2.77.

`tests/components/runtime/test_beam_compat.py` fails when a release of Beam changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from apache_beam.internal import pickler
from apache_beam.runners.portability import local_job_service
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import statecache
from apache_beam.transforms import core

_read_arguments = core.get_function_args_defaults
_ARGUMENTS: WeakKeyDictionary[FunctionType, tuple[list[str], list[Any]]] = WeakKeyDictionary()


@contextmanager
def quick_start() -> Iterator[None]:
    """Lets pipelines begin sooner.

    Beam 2.59 pickles each function of a pipeline several times, by default with dill, in pure Python: 28 % of the
    profiled time of a small run. cloudpickle, the default of Beam 2.77, has compiled code for it. Workers of Beam 2.59
    that read with dill read its pickles, too.

    Beam estimates the size of each value that a stage keeps. Before, it lists what all modules contain, to leave that
    out. With TFX these are ten thousand modules: 8 % of that time. Beam's other filter already leaves out modules.

    Beam asks several times for each step and each bundle whether a step has a state, and reads the signatures of all
    methods for the answer: 10 % of that time. A function has one signature, which is kept.
    """
    library, size, arguments = pickler.DEFAULT_PICKLE_LIB, statecache.get_deep_size, core.get_function_args_defaults
    pickler.DEFAULT_PICKLE_LIB, statecache.get_deep_size = pickler.USE_CLOUDPICKLE, deep_size
    core.get_function_args_defaults = arguments_of
    try:
        yield
    finally:
        pickler.DEFAULT_PICKLE_LIB, statecache.get_deep_size = library, size
        core.get_function_args_defaults = arguments


@contextmanager
def on_loopback() -> Iterator[None]:
    """Lets Beam's worker processes on this machine be reached from this machine only.

    `direct_running_mode=multi_processing` starts services that run what they are sent. Beam tells its workers the
    address `localhost`, but listens on all interfaces (`[::]:0` in `GrpcServer` and `SubprocessSdkWorker`), and has no
    option for it.
    """
    modules: tuple[Any, ...] = (worker_handlers, local_job_service)
    before = [module.grpc for module in modules]
    for module in modules:
        module.grpc = _LoopbackGrpc(module.grpc)
    try:
        yield
    finally:
        for module, found in zip(modules, before, strict=True):
            module.grpc = found


class _LoopbackGrpc:
    """The module `grpc`, whose servers listen on the loopback instead of all interfaces."""

    def __init__(self, grpc: Any) -> None:
        self._grpc = grpc

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grpc, name)

    def server(self, *args: Any, **options: Any) -> Any:
        made = self._grpc.server(*args, **options)
        listen = made.add_insecure_port
        made.add_insecure_port = lambda address: listen(address.replace("[::]", "localhost"))
        return made


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
