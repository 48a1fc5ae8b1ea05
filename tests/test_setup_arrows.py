"""The shape of the source: which package may import which, no circles, and how long a module may be.

The imports must fit the table in `CONTRIBUTING.md`; the drawing there is made of the same table.
"""

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
LINKED = ("components", "pipelines", "schemas", "docs")
FOLDERS = ("shardwright", *LINKED)
HEAVY = {"tfx", "tfx_bsl", "apache_beam", "tensorflow_transform", "tensorflow_model_analysis", "ml_metadata", "kfp"}
TRAINING = {"keras", "jax"}
# Tests and benchmarks are not installed, nor need be what they run with. In a checkout the plain names can be imported.
NEVER = {"unittest", "pytest", "hypothesis", "tests", "benchmarks", *LINKED}
MOST_LINES = 600
MOST_PARAMETERS = 8
_KEYWORDS = "keywords of a public component, each an option of the configuration and documented there"
WIDE = {
    "document": "the parts of a page, each under its name",
    "ImageTrainer.__init__": _KEYWORDS,
    "train": "sections of the configuration, each under its name, as the components take them",
}
LONG = {
    "train": "its documented keywords; the body is the order of the steps",
    "load": "its documentation has a line for each of its keywords",
}
MOST_FUNCTION_LINES = 60


class Package(NamedTuple):
    """A row of the table."""

    floor: int
    purpose: str
    imports: frozenset[str]


@cache
def packages() -> dict[str, Package]:
    """The rows of the table by the name of the package."""
    rows = re.findall(r"^\| (\d+) \| `([\w/]+)` \| (.+?) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = {
        name: Package(int(floor), purpose, frozenset(re.findall(r"`(\w+)`", imports)))
        for floor, name, purpose, imports in rows
    }
    assert len(found) > 20
    return found


@cache
def leaves() -> frozenset[str]:
    """The lowest floor, which everything may import."""
    return frozenset(name for name, package in packages().items() if package.floor == 0)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "shardwright" else ("shardwright", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}


def package_of(module: str) -> str:
    """The package of the table that a module belongs to."""
    _, _, below = module.partition(".")
    return below.partition(".")[0] or "shardwright"


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of every module that a file imports, wherever in it; ours by their own names."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import. Write the whole name."
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield node.lineno, full if full in MODULES else str(node.module)


def test_every_package_is_in_the_table_and_imports_from_lower_floors() -> None:
    assert {package_of(name) for name in MODULES} == set(packages())
    for name, package in packages().items():
        unknown = package.imports - packages().keys()
        assert not unknown, f"{name}: {sorted(unknown)} is not in the table"
        for other in package.imports:
            assert packages()[other].floor < package.floor, f"{name} may not import {other}: it is not on a lower floor"


def test_imports_are_those_of_the_table() -> None:
    wrong, used = [], set()
    for name, path in MODULES.items():
        mine = package_of(name)
        for line, other in imported(path):
            if other.split(".")[0] != "shardwright" or (theirs := package_of(other)) == mine:
                continue
            used.add((mine, theirs))
            allowed = packages()[mine].imports | (leaves() if mine not in leaves() else set())
            below = packages()[theirs].floor < packages()[mine].floor
            if theirs not in allowed and not (mine == "pipelines" and below) and not {mine, theirs} <= leaves():
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {mine} may not import {theirs}")
    assert not wrong, "\n".join(wrong)
    idle = {(mine, other) for mine, row in packages().items() for other in row.imports} - used
    assert not idle, f"the table allows what nothing imports: {sorted(idle)}"


def test_the_core_runs_without_tfx_and_mostly_without_tensorflow() -> None:
    wrong = []
    for name, path in MODULES.items():
        package = package_of(name)
        never = set(NEVER)
        if package not in ("components", "pipelines"):
            never |= HEAVY | TRAINING
            if package != "loader" and name != "shardwright.images.tf_ops":
                never.add("tensorflow")
        found = {(line, other) for line, other in imported(path) if other.split(".")[0] in never}
        wrong += [f"{path.relative_to(ROOT)}:{line} must not import {other}" for line, other in sorted(found)]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other() -> None:
    """Tarjan's strongly connected components: a circle is one with several modules."""
    graph = {name: {other for _, other in imported(path)} & MODULES.keys() for name, path in MODULES.items()}
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            members = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(members) > 1:
                circles.append(sorted(members))

    for name in graph:
        if name not in number:
            visit(name)
    assert not circles


def test_modules_have_a_readable_length() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES.values()}
    assert len(lines) > 100
    wrong = [
        f"{path.relative_to(ROOT)} has {count} lines. Split it: one idea a module."
        for path, count in lines.items()
        if count > MOST_LINES
    ]
    assert not wrong, "\n".join(wrong)


def functions() -> Iterator[tuple[str, str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Place, name (with the class of a method) and node of every function."""
    for path in MODULES.values():
        owner = {inner: node.name for node in nodes(path) if isinstance(node, ast.ClassDef) for inner in node.body}
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = f"{owner[node]}.{node.name}" if node in owner else node.name
                yield f"{path.relative_to(ROOT)}:{node.lineno}", name, node


def test_functions_are_short_and_receive_few_values() -> None:
    wrong, used = [], set()
    for place, name, node in functions():
        lines = (node.end_lineno or 0) - node.lineno + 1
        given = node.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        count = len([one for one in names if one not in ("self", "cls")]) + bool(given.vararg) + bool(given.kwarg)
        for excess, excused, what in (
            (lines > MOST_FUNCTION_LINES, LONG, f"{lines} lines"),
            (count > MOST_PARAMETERS, WIDE, f"{count} parameters"),
        ):
            if excess and name in excused:
                used.add((name, what.partition(" ")[2]))
            elif excess:
                wrong.append(f"{place}: {name} has {what}. Split it, or give a reason in LONG or WIDE.")
    assert not wrong, "\n".join(wrong)
    assert used == {(name, "lines") for name in LONG} | {(name, "parameters") for name in WIDE}


@pytest.mark.parametrize("folder", LINKED)
def test_links_lead_to_the_folders(folder: str) -> None:
    link = ROOT / "shardwright" / folder
    assert link.is_symlink()
    assert link.resolve() == (ROOT / folder).resolve()
    assert not os.path.isabs(os.readlink(link))


def drawing() -> str:
    """The floors as text, the highest first."""
    floors: dict[int, list[str]] = {}
    for name, package in packages().items():
        floors.setdefault(package.floor, []).append(name)
    rows = [(str(floor), "  ".join(sorted(floors[floor]))) for floor in sorted(floors, reverse=True)]
    width = max(len(names) for _, names in rows)
    line = f"+---+-{'-' * width}-+"
    return "\n".join([line, *(f"| {floor} | {names:{width}} |\n{line}" for floor, names in rows)])


def test_the_drawing_is_made_of_the_table() -> None:
    """After a change of the table: SHARDWRIGHT_RENEW_GOLDEN=1 draws it again."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- drawing -->\n```text\n", "\n```\n<!-- end of drawing -->"
    before, _, rest = text.partition(begin)
    found, _, after = rest.partition(end)
    assert before
    assert after
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        PAGE.write_text(before + begin + drawing() + end + after, encoding="utf-8")
    else:
        assert found == drawing()


def test_the_stations_of_values_exist() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## How values travel")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \*\*.+\|$", text, re.MULTILINE)
    assert len(rows) == 4
    for row in rows:
        assert 2 <= len(re.findall(r"\b\d\. ", row)) <= 6
    for place in re.findall(r"`((?:shardwright|components|pipelines)/[\w/.]+)`", text):
        assert (ROOT / place).is_file(), place
