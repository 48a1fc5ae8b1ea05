"""The shape of the source: which way imports point, and how long a module may be."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "shardwright": "shardwright",
    "components": "shardwright.components",
    "pipelines": "shardwright.pipelines",
    "schemas": "shardwright.schemas",
}
OWN = {"components", "pipelines", "schemas"}
MODULES = sorted(path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py"))
SCRIPTS = sorted(path for path in (ROOT / "tests").rglob("*.py"))
HEAVY = {"tfx", "tfx_bsl", "apache_beam", "tensorflow_transform", "tensorflow_model_analysis", "ml_metadata", "kfp"}
TENSORFLOW_IN_CORE = {"pixels.py", "loader"}
# Tests are not installed, nor need be what they run with.
OF_TESTS = {"unittest", "pytest", "hypothesis"}
MOST_LINES = 400


def imported(path: Path) -> Iterator[str]:
    """Names of the top-level packages that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (_package(name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import. Write the whole name."
            # `from shardwright import components` would import a package by the name of another.
            assert node.module != "shardwright" or not OWN & {name.name for name in node.names}, f"{path}:{node.lineno}"
            yield _package(node.module or "")


def _package(name: str) -> str:
    first, _, rest = name.partition(".")
    second = rest.partition(".")[0]
    return f"{first}.{second}" if first == "shardwright" and second in OWN else first


def forbidden(path: Path) -> set[str]:
    """What a module of this folder must not import."""
    folder = path.relative_to(ROOT).parts[0]
    if folder == "schemas":
        return set(PACKAGES.values()) | HEAVY | {"tensorflow"}
    if folder == "components":
        return {"shardwright.pipelines"}
    if folder == "pipelines":
        return set()
    names = HEAVY | set(PACKAGES.values()) - {"shardwright"} | {"keras", "jax"}
    return names if path.relative_to(ROOT / folder).parts[0] in TENSORFLOW_IN_CORE else names | {"tensorflow"}


@pytest.mark.parametrize("folder", PACKAGES)
def test_imports_point_one_way(folder: str) -> None:
    modules = [path for path in MODULES if path.relative_to(ROOT).parts[0] == folder]
    assert modules
    found = {str(path.relative_to(ROOT)): set(imported(path)) & (forbidden(path) | OWN | OF_TESTS) for path in modules}
    wrong = [f"{module} must not import {sorted(names)}" for module, names in found.items() if names]
    assert not wrong


@pytest.mark.parametrize("paths", [MODULES, SCRIPTS], ids=["modules", "tests"])
def test_modules_are_short(paths: list[Path]) -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    assert len(lines) > 100
    long = [
        f"{path} has {count} lines. Split it: one idea a module." for path, count in lines.items() if count > MOST_LINES
    ]
    assert not long


@pytest.mark.parametrize("folder", sorted(OWN))
def test_links_lead_to_the_folders(folder: str) -> None:
    link = ROOT / "shardwright" / folder
    assert link.is_symlink()
    assert link.resolve() == (ROOT / folder).resolve()
