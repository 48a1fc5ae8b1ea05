"""The user's own Python: the files that a function needs, their checksums, and whether they are still the same.

A function is named by its import path, `package.module:function`. Its code is the module, and every module that it
imports, transitively, unless that is part of Python, of Shardwright or of an installed package:

| part | its entry |
|---|---|
| module that is not installed, by its name | checksum of the file |
| `package/*`: all other files below a package that is not installed, without caches and hidden files | one checksum |
| `module/file`: a file that a module names in a literal, relative to its own folder | checksum of the file |
| `==package`: an installed package | its version; if no index has it, with a checksum of its files |

The entries have no absolute path: they are the same wherever the code lies. `static_imports` has what is an import.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import os
import symtable
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from typing import Any, NamedTuple

from shardwright.components.runtime.static_imports import static_imports
from shardwright.config.check_arguments import check_call
from shardwright.config.trainer import import_path_form
from shardwright.errors import UsageError
from shardwright.storage.checksum import checksum_file
from shardwright.storage.fingerprint import fingerprint

Code = Mapping[str, str]

INSTALLED = {"site-packages", "dist-packages"}
STANDARD = [os.path.realpath(path) for name, path in sysconfig.get_paths().items() if "stdlib" in name]
_OURS = "shardwright"
_ALL_FILES = "/*"
_DISTRIBUTION = "=="
_CACHES = {"__pycache__", "node_modules"}
_COMPILED = (".pyc", ".pyo", "~", ".swp", ".tmp")
_LONGEST_NAME = 200


def code_files(path: str, folder: str, *, option: str, any_import: bool = False) -> dict[str, str]:
    """Returns the code of a function: a checksum or version for each part, see above.

    Args:
        path: `package.module:function`, or the path of a Python file.
        folder: additional folder with modules.
        option: the option with the path, for messages.
        any_import: whether imports that cannot be resolved are left out, where something else accounts for them.

    Raises:
        UsageError: there is no such module, a file cannot be read, or an import cannot be resolved.
    """
    add_folder(folder)
    if path.endswith(".py"):
        root, module = Path(path).stem, _Module(os.path.abspath(path), None)
    else:
        root = path.partition(":")[0]
        found = _find(root)
        if found is None or found.file is None or not os.path.isfile(found.file):
            what = f"the source of module {root!r} was not found"
            raise UsageError(f"{option}: {what}. Install it, or put it into {folder}.")
        module = found
    reader = _Reader(option, folder, any_import=any_import)
    reader.read(root, module)
    return dict(sorted(reader.code.items()))


@check_call
def code_digest(*paths: str) -> str:
    """Returns a digest of the code of functions, for the `custom_config` of TFX's own components.

    TFX's cache key has the import path of a function and not its code: after an edit, the cached output of the old code
    is used. The digest changes with every module that the functions import from your own folders, and with the data
    files of your packages. See `docs/how-to/own-model.md`.

    Example:
        ```python
        tuner = tfx.components.Tuner(
            examples=transform.outputs["transformed_examples"],
            tuner_fn="models.tuner.tuner_fn",
            custom_config={"code": code_digest("models.tuner.tuner_fn")},
        )
        ```

    Args:
        *paths: import paths, `package.module.function` or `package.module:function`. Modules must be installed, or on
            the path of Python, or below the working directory.

    Raises:
        UsageError: there is no such module, or it has an import that cannot be resolved without running it.
    """
    option = "code_digest"
    return fingerprint([code_files(import_path(path, option), os.getcwd(), option=option) for path in paths])


def import_path(path: object, option: str) -> str:
    """Returns an import path as `package.module:function`; TFX writes `package.module.function`.

    Raises:
        ConfigError: it is neither.
    """
    text = path if isinstance(path, str) else repr(path)
    text = text if ":" in text else ":".join(text.rsplit(".", 1))
    import_path_form("mine:run_fn")(option, text)
    return text


def check_code(code: Code, *, option: str) -> None:
    """Refuses code that is not that of the fingerprint: it was edited since, or the image has another version.

    Versions of installed packages are not compared: an image may have others.

    Args:
        code: as `code_files` returned it, where the pipeline was constructed.
        option: the option with the import path, for messages.

    Raises:
        UsageError: a file differs or is missing.
    """
    for part, digest in code.items():
        if part.startswith(_DISTRIBUTION):
            continue
        module, file = _located(part)
        if module is None or file is None:
            problem = f"{part} is not on this machine"
        elif digest == (_data_digest(module) if part.endswith(_ALL_FILES) else _checksum(file, option)):
            continue
        else:
            problem = f"{part} ({file}) is not the code that the pipeline was constructed with"
        raise UsageError(
            f"{option}: {problem}. Run the pipeline again; if it is compiled, build its image with the same code first."
        )


def places_of(code: Code) -> list[str]:
    """Returns the files of code that are on this machine, and the folders of packages all of whose files count."""
    places = (_located(part)[1] for part in code if not part.startswith(_DISTRIBUTION))
    return [place for place in places if place is not None]


def _located(part: str) -> tuple[_Module | None, str | None]:
    """Returns the module of an entry, and the file that it stands for, or the folder; `None` for what is missing."""
    name, below, inner = part.partition("/")
    module = _find(name)
    if module is None or part.endswith(_ALL_FILES):
        return module, module and module.folder
    file = os.path.join(module.folder, inner) if below else module.file
    return module, file if file is not None and os.path.isfile(file) else None


def forget_modules(code: Code) -> None:
    """Lets the modules of the code be imported again: a notebook may have imported them before an edit."""
    for part in code:
        if "/" not in part and not part.startswith(_DISTRIBUTION):
            sys.modules.pop(part, None)
    importlib.invalidate_caches()


def add_folder(folder: str) -> None:
    """Adds a folder to those of imports; at the end, so that no installed module is hidden."""
    if folder not in sys.path:
        sys.path.append(folder)


def import_function(path: str, *, option: str = "trainer.model") -> Any:
    """Imports the function of an import path.

    Args:
        path: `package.module:function`.
        option: the option with the path, for messages.

    Raises:
        UsageError: it cannot be imported, or is not callable.
    """
    module, _, name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        # The module's code may raise any error.
        raise UsageError(
            f"{option}: {module} cannot be imported ({type(error).__name__}: {error}). Correct it."
        ) from None
    if not callable(function):
        raise UsageError(f"{option}: {module} has no function {name!r}. Name one that it has.")
    return function


def module_source(module: str) -> str | None:
    """Returns the Python file of a module, without importing anything; `None` if it has none."""
    found = _find(module)
    return found.file if found is not None and found.file is not None and found.file.endswith(".py") else None


def check_defines(file: str, name: str, *, option: str) -> None:
    """Refuses a Python file that does not define a function. The file is parsed and not run.

    A name that the file imports or computes is taken.

    Args:
        file: the Python file.
        name: of the function.
        option: the option with the file, for messages.

    Raises:
        UsageError: the file has no such function, or is not Python.
    """
    try:
        source = Path(file).read_bytes()
        tree, names = ast.parse(source, file), symtable.symtable(source.decode(), file, "exec")
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"{option}: {file} cannot be read ({type(error).__name__}: {error}). Correct it.") from None
    # Names of `import *` and `__getattr__` are known only when the file runs.
    if b"import *" in source or "__getattr__" in names.get_identifiers():
        return
    symbol = names.lookup(name) if name in names.get_identifiers() else None
    if symbol is not None and (symbol.is_namespace() or symbol.is_imported()):
        return
    stored = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    constants = [
        target
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Constant, ast.List, ast.Tuple, ast.Dict))
        for target in node.targets
    ]
    if symbol is None or all(node in constants for node in stored if node.id == name):
        raise UsageError(f"{option}: {file} has no function {name!r}. Name one that it has.")


class _Module(NamedTuple):
    """A module, found without importing it or its packages.

    Attributes:
        file: its file; `None` for a namespace package, and for a module of the interpreter.
        folders: the folders of a package; `None` for a plain module.
    """

    file: str | None
    folders: tuple[str, ...] | None

    @property
    def folder(self) -> str:
        """The folder that it is in, of a package its own."""
        return self.folders[0] if self.folders else os.path.dirname(self.file or "")

    @property
    def standard(self) -> bool:
        """Whether it is part of Python."""
        place = os.path.realpath(self.folder) if self.folder else ""
        return not place or (not self.installed and any(Path(place).is_relative_to(folder) for folder in STANDARD))

    @property
    def installed(self) -> bool:
        """Whether an installer put it among the packages of an environment."""
        return not INSTALLED.isdisjoint(Path(self.folder).parts)

    @property
    def of_user(self) -> bool:
        """Whether it is neither: its files are looked at."""
        return not self.standard and not self.installed


def _find(name: str) -> _Module | None:
    """Finds a module as the import system would, without importing the packages that it is in."""
    found: _Module | None = None
    for number, part in enumerate(name.split(".")):
        if number and (found is None or found.folders is None):
            return None
        finders: Iterator[Any] = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
        if number:
            assert found is not None
            # Without the names of the packages: they need not be imported.
            spec = PathFinder.find_spec(part, list(found.folders or ()))
        else:
            spec = next((spec for find in finders if find and (spec := find(part, None)) is not None), None)
        if spec is None:
            return None
        folders = None if spec.submodule_search_locations is None else tuple(spec.submodule_search_locations)
        file = spec.origin if spec.has_location else None
        found = _Module(file, folders)
    return found


class _Reader:
    """Collects the code of a module and of what it imports."""

    def __init__(self, option: str, folder: str, *, any_import: bool) -> None:
        self.code: dict[str, str] = {}
        self._option, self._folder, self._any = option, os.path.realpath(folder), any_import

    def read(self, name: str, module: _Module) -> None:
        """Adds a module and all that it imports."""
        # A package is imported with each module in it.
        names = _prefixes(name)
        waiting = deque([*((full, _find(full)) for full in names[:-1]), (name, module)])
        seen = set(names)
        while waiting:
            for other in self._add(*waiting.popleft()):
                top = _find(other.partition(".")[0])
                # What is in other packages stands and falls with them.
                for full in _prefixes(other)[: None if top is not None and top.of_user else 1]:
                    if full not in seen:
                        seen.add(full)
                        waiting.append((full, _find(full)))

    def _add(self, name: str, module: _Module | None) -> Sequence[str]:
        """Adds a module; returns the names of what it imports."""
        top = name.partition(".")[0]
        if module is None or top == _OURS or module.standard:
            return ()
        if module.installed:
            self.code[f"{_DISTRIBUTION}{top}"] = _version(top, module)
            return ()
        if module.folders is not None and name == top:
            # Unless the configuration is in it: then runs and images may be, too.
            inside = any(Path(self._folder).is_relative_to(os.path.realpath(folder)) for folder in module.folders)
            if not inside and _data(module):
                self.code[f"{name}{_ALL_FILES}"] = _data_digest(module)
        if module.file is None:
            return ()
        if not os.path.isfile(module.file):
            raise UsageError(f"{self._option}: {name}: {module.file} is not a file. Unpack what it is in.")
        self.code[name] = _checksum(module.file, self._option)
        if module.file.endswith(tuple(EXTENSION_SUFFIXES)):
            return ()
        if not module.file.endswith(".py"):
            raise UsageError(f"{self._option}: {name}: {module.file} has no source. Put its .py file there.")
        return self._imports(name, module, module.file)

    def _imports(self, name: str, module: _Module, file: str) -> Sequence[str]:
        where = f"{self._option}: {file}"
        found = static_imports(Path(file).read_bytes(), name, package=module.folders is not None, where=where)
        if found.refused is not None and not self._any:
            line, text = found.refused
            raise UsageError(
                f"{where}:{line}: which code `{text}` runs is known only when it runs, so an edit of it could not be "
                "seen and the old model would be taken for the new one. Import it by an import statement, or pack the "
                "whole folder: ImageTrainer(module_file=…)."
            )
        for required, line in found.required.items():
            top = _find(required.partition(".")[0])
            if not self._any and (top is None or (top.of_user and _find(required) is None)):
                raise UsageError(
                    f"{where}:{line}: imports {required}, which is not on this machine, so its code cannot be part of "
                    "the fingerprint. Install it, or correct the import."
                )
        self._add_named_files(name, module, found.texts)
        names = set(found.names)
        for star in found.stars:
            package = _find(star)
            if package is not None and package.of_user:
                listed = {inner for folder in package.folders or () for inner in os.listdir(folder)}
                stems = {inner.partition(".")[0] for inner in listed}
                names.update(f"{star}.{stem}" for stem in stems if stem.isidentifier())
        return sorted(names)

    def _add_named_files(self, name: str, module: _Module, texts: set[str]) -> None:
        top = name.partition(".")[0]
        for text in sorted(texts):
            if not 0 < len(text) <= _LONGEST_NAME or not text.isprintable():
                continue
            # Of `f"{folder}/words.txt"` and `folder + "/words.txt"`, and of `Path(__file__).with_suffix(".json")`.
            for inner in {text.lstrip("/"), f"{Path(module.file or '').stem}{text}"}:
                file = os.path.join(module.folder, inner)
                whole = f"{top}{_ALL_FILES}" in self.code and ".." not in inner
                if not whole and os.path.isfile(file) and file != module.file:
                    self.code[f"{name}/{inner}"] = _checksum(file, self._option)


def _prefixes(name: str) -> list[str]:
    """Returns `a`, `a.b` and `a.b.c` for `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def _data(module: _Module) -> dict[str, str]:
    """Returns all files below a package but its source, caches and hidden files: path below it -> file."""
    files: dict[str, str] = {}
    for root in module.folders or ():
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _CACHES and not name.startswith("."))
            for name in names:
                if not name.startswith(".") and not name.endswith((".py", *_COMPILED, *EXTENSION_SUFFIXES)):
                    file = os.path.join(folder, name)
                    files.setdefault(os.path.relpath(file, root), file)
    return dict(sorted(files.items()))


def _data_digest(module: _Module) -> str:
    return fingerprint({name: _checksum(file, name) for name, file in _data(module).items()})


def _checksum(file: str, where: str) -> str:
    try:
        return checksum_file(file)
    except OSError as error:
        raise UsageError(f"{where}: {file} cannot be read ({error.strerror}). Correct it.") from None


def _version(top: str, module: _Module) -> str:
    """Returns the version of an installed package, by the names that an installer recorded.

    A version stands for the files only where an index has it. What was installed from a folder, a file or a repository
    may change under the same version: the checksums that its installer recorded count, too.
    """
    parts = Path(module.folder).parts
    site = Path(*parts[: max(map(parts.index, INSTALLED.intersection(parts))) + 1])
    versions = []
    for installed in _distributions(site).get(top, ()):
        version = f"{installed.metadata['Name']} {installed.version}"
        if installed.read_text("direct_url.json") is not None:
            version += f" {fingerprint(sorted(_recorded(installed)))}"
        versions.append(version)
    if versions:
        return ", ".join(sorted(versions))
    # No installer put it there.
    files = sorted(Path(module.folder).rglob("*.py")) if module.folders else [module.file or ""]
    return fingerprint([_checksum(str(file), top) for file in files])


@functools.cache
def _distributions(site: Path) -> Mapping[str, list[importlib.metadata.Distribution]]:
    """Returns the installed distributions of a folder by the modules that they have at the top."""
    found: dict[str, list[importlib.metadata.Distribution]] = {}
    for installed in importlib.metadata.distributions(path=[os.fspath(site)]):
        # Several build systems leave out top_level.txt.
        names = (installed.read_text("top_level.txt") or "").split()
        for name in set(names or (line.partition("/")[0].partition(".py")[0] for line in _recorded(installed))):
            found.setdefault(name, []).append(installed)
    return found


def _recorded(installed: importlib.metadata.Distribution) -> Iterator[str]:
    """Yields the recorded files, each with its checksum, without those about the installation itself."""
    for line in (installed.read_text("RECORD") or "").splitlines():
        path = line.partition(",")[0]
        if ".dist-info/" not in path and not path.startswith("..") and "__pycache__" not in path:
            yield line
