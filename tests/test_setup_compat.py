"""Names of dependencies that are not public are used in `compat` modules only, one for each dependency."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("shardwright", "components", "pipelines", "schemas", "benchmarks")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
# Public in spite of the underscore: of named tuples, and of `os`, by Python's documentation; typeshed's type of a hash.
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_exit", "_Hash"}
# TFX's base classes keep these for derived classes; tests/components/runtime/test_tfx_compat.py checks that they exist.
INHERITED = {
    *("_get_tmp_dir", "_log_startup", "_beam_pipeline_args", "_make_beam_pipeline"),
    *("_MarkNotPushed", "_MarkPushed"),
}
OURS = "shardwright"


def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def defined(nodes: list[ast.AST]) -> set[str]:
    """Every name that a file defines: functions, classes, variables, attributes that it sets."""
    found = set()
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)):
            if isinstance(node.ctx, ast.Store):
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
    return found


def is_own(value: ast.expr) -> bool:
    """`self`, `cls` or `super()`."""
    return (isinstance(value, ast.Name) and value.id in ("self", "cls")) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
    )


def private_uses(nodes: list[ast.AST], names: set[str]) -> Iterator[tuple[int, str]]:
    """Line and name of every use of a private name that is not among `names`."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if node.attr not in names | PUBLIC and not (is_own(node.value) and node.attr in INHERITED):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            parts = [*str(node.module).split("."), *(name.name for name in node.names)]
            if node.module != "__future__" and any(map(is_private, parts)):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Import) and any(is_private(p) for name in node.names for p in name.name.split(".")):
            yield node.lineno, ast.unparse(node)


def test_private_names_of_dependencies_are_in_compat_modules() -> None:
    wrong, used = [], set()
    trees = {path: nodes_of(path) for path in FILES}
    names = {path: defined(nodes) for path, nodes in trees.items()}
    inherited = set().union(*names.values())
    for path, nodes in trees.items():
        # A base class of ours may be in another file.
        own = names[path] | {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and node.attr in inherited and is_own(node.value)
        }
        found = list(private_uses(nodes, own))
        if path.stem.endswith("_compat"):
            used.add(path)
        else:
            wrong += [f"{path.relative_to(ROOT)}:{line}: {text}" for line, text in found]
    assert not wrong, "\n".join([*wrong, "Use a public name, or a function of a compat module with a test."])
    assert len(used) >= 4


def test_the_rule_finds_private_names() -> None:
    """The rule is tried on code that breaks it."""
    text = """
import a._b
from a import _c
from a._d import e
class Own:
    def __init__(self, f):
        self._mine = f._theirs
        getattr(f, "_named")
        self._foreign()
        self._get_tmp_dir()
        return f._replace(x=self._mine)
"""
    nodes = list(ast.walk(ast.parse(text)))
    found = [text for _, text in private_uses(nodes, defined(nodes))]
    assert sorted(found) == [
        "f._theirs",
        "from a import _c",
        "from a._d import e",
        "getattr(f, '_named')",
        "import a._b",
        "self._foreign",
    ]


def test_a_compat_module_names_its_dependency_its_versions_and_its_test() -> None:
    modules = [path for path in FILES if path.stem.endswith("_compat")]
    assert len({path.stem for path in modules}) == len(modules), "one compat module for each dependency"
    for path in modules:
        page = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert re.search(r"Checked with \S+ (?:releases )?[\d.]+ (?:to|and) [\d.]+\.", page), path
        (test,) = re.findall(r"`(tests/[\w/]+\.py)`", page)
        assert "checked_with(" in (ROOT / test).read_text(encoding="utf-8"), path
