"""Modules that load when they are first used.

`from tfx import v1` loads the clients of Vertex AI and of Kubernetes, which take as long as the rest of TFX without
TensorFlow. A run on this machine uses neither.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

# Each is only an attribute of its package, until something of it is used.
OF_TFX = (
    "tfx.v1.extensions",
    "tfx.v1.orchestration.experimental",
    "tfx.components.infra_validator.model_server_runners.kubernetes_runner",
)


@contextmanager
def later_imports(names: Sequence[str] = OF_TFX) -> Iterator[None]:
    """Lets modules that are imported within the context load when one of their attributes is first used.

    Args:
        names: the modules.
    """
    finder = _Finder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
