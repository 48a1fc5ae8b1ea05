"""What a Python file imports and which files it names, read from its syntax tree: the file is never run.

Every import statement counts, wherever it stands: at the top, in a function, below `try` or `if TYPE_CHECKING`. So do
the functions that import by name, with a literal name. An import that only the running program knows is refused: a
fingerprint without it would call a changed helper the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from shardwright.errors import UsageError

# Functions whose first argument is the name of a module, or of something in one.
_BY_NAME = {
    *("__import__", "builtins.__import__", "importlib.__import__", "importlib.import_module", "runpy.run_module"),
    *("pkgutil.resolve_name", "pydoc.locate", "hydra.utils.get_class", "hydra.utils.get_method"),
}
# The first argument names a package with data files. Any other value is a module that is imported already.
_RESOURCES = ("importlib.resources.", "pkgutil.get_data", "pkg_resources.resource_")
_CODE = ("exec", "eval", "builtins.exec", "builtins.eval")
# What runs code that no import statement names, or changes where imports look.
_UNKNOWN = (
    *("runpy.run_path", "imp", "zipimport", "site.addsitedir", "importlib.machinery", "hydra.utils.instantiate"),
    *("hydra.utils.call", "importlib.util.spec_from_file_location", "importlib.util.spec_from_loader"),
    "importlib.util.module_from_spec",
    *("pkgutil.walk_packages", "pkgutil.iter_modules", "pkgutil.extend_path", "pkgutil.ImpImporter", "__path__"),
    *("sys.path", "sys.meta_path", "sys.path_hooks", "sys.path_importer_cache", "__builtins__", "builtins.__dict__"),
)
# A function that imports must not be passed on under a name that the syntax tree does not show.
_OF_IMPORTS = ("importlib", "builtins", "runpy")
_BUILTINS = {"__import__", "exec", "eval", "__path__", "__builtins__"}
# `import importlib.machinery` alone does nothing.
_UNKNOWN_PACKAGES = ("imp", "zipimport", "importlib.machinery")


@dataclass
class StaticImports:
    """The imports of one file.

    Attributes:
        required: line of each module that is imported whenever the file is: without it nothing runs.
        names: all modules that are imported, and `a.b` of `from a import b`, which may be a module or not.
        stars: packages of `from package import *`, which may import any of their modules.
        texts: literals that may be the path of a file, also `a/b` of `a / "b"` and of `join(folder, "a", "b")`.
        refused: line and text of the first import that cannot be resolved; `None` if all can.
    """

    required: dict[str, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    stars: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    refused: tuple[int, str] | None = None


def static_imports(source: bytes, name: str, *, package: bool, where: str) -> StaticImports:
    """Reads the imports of a file.

    Args:
        source: its content.
        name: of its module, which relative imports start from.
        package: whether it is the `__init__.py` of a package.
        where: the option and the file, for messages.

    Raises:
        UsageError: it is not Python.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"{where}: is not Python ({type(error).__name__}: {error}). Correct it.") from None
    reader = _Reader(name if package else name.rpartition(".")[0], name)
    reader.bind(tree)
    reader.visit(tree)
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            reader.found.required |= {alias.name: statement.lineno for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            reader.found.required[reader.absolute(statement)] = statement.lineno
    reader.found.required.pop("", None)
    return reader.found


class _Reader(ast.NodeVisitor):
    """Collects the imports of a tree.

    Args:
        package: the package that relative imports start from.
        module: name of the module.
    """

    def __init__(self, package: str, module: str) -> None:
        self.found = StaticImports()
        self._package, self._module = package, module
        self._names: dict[str, str] = {}
        self._called: set[ast.AST] = set()

    def bind(self, tree: ast.AST) -> None:
        """Remembers what the names of the file stand for; a name of the file hides the built-in one."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self._names[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom):
                base = self.absolute(node)
                self._names.update({alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names})
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._names.setdefault(node.name, "")
            elif isinstance(node, ast.arg):
                self._names.setdefault(node.arg, "")
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith("__"):
                self._names.setdefault(node.id, "")

    def absolute(self, node: ast.ImportFrom) -> str:
        """Returns the full name of the module of `from module import …`; empty if it leads out of all packages."""
        return self._absolute(node.module or "", node.level, self._package)

    @staticmethod
    def _absolute(name: str, level: int, package: str) -> str:
        if not level:
            return name
        parts = package.split(".") if package else []
        if len(parts) < level:
            return ""
        base = ".".join(parts[: len(parts) - level + 1])
        return f"{base}.{name}" if name else base

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.absolute(node)
        self._add(base, node)
        for alias in node.names:
            if alias.name == "*":
                self.found.stars.add(base)
            else:
                self._add(f"{base}.{alias.name}", node, attribute=True)

    def _add(self, name: str, node: ast.AST, *, attribute: bool = False) -> None:
        if not name.strip("."):
            self._refuse(node)
            return
        self.found.names.add(name)
        if attribute and _is_any(name, _UNKNOWN) and name not in _UNKNOWN_PACKAGES:
            self._refuse(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = self._name(node.func)
        first = node.args[0] if node.args else _keyword(node, "name", "module", "mod_name", "path", "package", "anchor")
        text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, (str, bytes)) else None
        if name in _BY_NAME:
            self._called.add(node.func)
            full = self._by_name(text, node) if isinstance(text, str) else ""
            if full:
                self.found.names.update(full.replace(":", ".") for full in (full, full.partition(":")[0]))
            else:
                self._refuse(node)
        elif name in _CODE:
            self._called.add(node.func)
            self._run(text, node)
        elif text is not None and isinstance(text, str) and name.startswith(_RESOURCES):
            self.found.names.add(text)
        self._add_texts(node.args)
        self.generic_visit(node)

    def _by_name(self, text: str, node: ast.Call) -> str:
        """Returns the full name of a module; empty if the package that it starts from is not known."""
        level = len(text) - len(text.lstrip("."))
        given = node.args[1] if len(node.args) > 1 else _keyword(node, "package")
        if not level:
            return text
        known = {"__package__": self._package, "__name__": self._module}
        package = given.value if isinstance(given, ast.Constant) else known.get(getattr(given, "id", ""), "")
        return self._absolute(text[level:], level, package) if isinstance(package, str) else ""

    def _run(self, text: str | bytes | None, node: ast.AST) -> None:
        """Reads code in a literal; other code is not known."""
        try:
            tree = ast.parse(text) if text is not None else None
        except (SyntaxError, ValueError, RecursionError):
            tree = None
        if tree is None:
            self._refuse(node)
        else:
            self.bind(tree)
            self.visit(tree)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._check(node)
        if not self._name(node):
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._check(node)

    def _check(self, node: ast.expr) -> None:
        name = self._name(node)
        loads = name in _BY_NAME or name in _CODE or name in _OF_IMPORTS
        if (loads and node not in self._called) or (name not in _UNKNOWN_PACKAGES and _is_any(name, _UNKNOWN)):
            self._refuse(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store) and self._name(node.value) == "sys.modules":
            self._refuse(node)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Div):
            parts: list[ast.expr] = []
            left: ast.expr = node
            while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div):
                parts.insert(0, left.right)
                left = left.left
            self._add_texts(parts)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.texts.add(node.value)

    def _add_texts(self, parts: list[ast.expr]) -> None:
        texts: list[str] = []
        for part in reversed(parts):
            if not (isinstance(part, ast.Constant) and isinstance(part.value, str)):
                break
            texts.insert(0, part.value)
            self.found.texts.add("/".join(texts))

    def _name(self, node: ast.AST) -> str:
        """Returns the full name of what an expression stands for; empty for values of the program."""
        if isinstance(node, ast.Attribute):
            base = self._name(node.value)
            return f"{base}.{node.attr}" if base else ""
        if not isinstance(node, ast.Name):
            return ""
        return self._names.get(node.id, node.id if node.id in _BUILTINS else "")

    def _refuse(self, node: ast.AST) -> None:
        if self.found.refused is None:
            self.found.refused = (getattr(node, "lineno", 0), ast.unparse(node))


def _is_any(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def _keyword(node: ast.Call, *names: str) -> ast.expr | None:
    found: Iterator[ast.expr] = (word.value for word in node.keywords if word.arg in names)
    return next(found, None)
