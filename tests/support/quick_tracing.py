"""Converts functions for TensorFlow's graphs once for all forks: half of the processor time of exporting a small model.

AutoGraph rewrites the source of every function that it traces, in pure Python, and keeps the result for the process.
A fork reports at its end which functions it rewrote (`report`). The server rewrites them, too (`convert`), and later
forks inherit the result. Nothing is traced or run in the server, which may not have threads.
`tests/test_setup_prefork.py` fails when AutoGraph's places have moved.
"""

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorflow.python.autograph.core import converter
from tensorflow.python.autograph.impl import api

# Module, first line and name of a function; three switches of the conversion, and the names of its features.
Conversion = tuple[str, int, str, tuple[bool, ...], tuple[str, ...]]


def conversions() -> Iterator[Conversion]:
    """Yields what this process has converted of modules that it has imported."""
    for code, factories in list(api._TRANSPILER._cache._cache.items()):
        name = _MODULES.get(code.co_filename) or _module_of(code.co_filename)
        for options in factories if name else ():
            *switches, features = options.as_tuple()
            named = tuple(sorted(feature.name for feature in features))
            yield name, code.co_firstlineno, code.co_name, tuple(switches), named


def report(file: Path, before: frozenset[Conversion]) -> None:
    """Appends what was converted since `before`."""
    new = [json.dumps(one) for one in conversions() if one not in before]
    if new:
        with file.open("a", encoding="utf-8") as lines:
            lines.write("".join(f"{one}\n" for one in new))


def convert(wanted: Conversion) -> None:
    """Converts a function of a module that this process has imported; others are left to the forks."""
    name, line, called, switches, features = wanted
    module = sys.modules.get(name)
    for code in _codes(module) if module else ():
        if (code.co_firstlineno, code.co_name) == (line, called):
            cells = tuple(types.CellType() for _ in code.co_freevars)
            function = types.FunctionType(code, vars(module), called, None, cells)
            options = converter.ConversionOptions(*switches, [converter.Feature[feature] for feature in features])
            api._TRANSPILER.transform_function(function, converter.ProgramContext(options))


# File -> name of its module.
_MODULES: dict[str, str] = {}
_CODES: dict[str, list[types.CodeType]] = {}


def _module_of(file: str) -> str:
    for name, module in list(sys.modules.items()):
        if isinstance(found := getattr(module, "__file__", None), str):
            _MODULES.setdefault(found, name)
    return _MODULES.setdefault(file, "")


def _codes(module: Any) -> list[types.CodeType]:
    """The code of all functions of a module, also of those within others; equal to that of the functions."""
    if module.__name__ not in _CODES:
        source = Path(module.__file__).read_bytes()
        found = [compile(source, module.__file__, "exec", dont_inherit=True)]
        for code in found:
            found += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        _CODES[module.__name__] = found
    return _CODES[module.__name__]
