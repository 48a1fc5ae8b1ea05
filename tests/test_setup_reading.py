"""What helps a reader of the code: twelve files in order, where to change what, and words that each name a class."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text of a section of CONTRIBUTING.md."""
    return CONTRIBUTING.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


TWELVE = re.findall(r"^\d+\. \[`([\w/.]+)`\]", section("Read these twelve files"), re.MULTILINE)
PLACES = re.findall(
    r"^\| ([a-z].+?) \| `([\w/.-]+)` \| `([\w.]+)` \|", section("Where would I change X?"), re.MULTILINE
)
WORDS = re.findall(r"^\| ([\w ,-]+) \| (.+?) \| `([\w.]+)` \|$", GLOSSARY, re.MULTILINE)


def definitions(file: str) -> list[ast.stmt]:
    return ast.parse((ROOT / file).read_text(encoding="utf-8")).body


def is_definition(node: ast.stmt) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def names(file: str) -> set[str]:
    """Names that a module defines; methods and fields as `Class.name`."""
    found = set()
    for node in definitions(file):
        found |= _bound(node)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for inner in node.body for name in _bound(inner)}
    return found


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_there_are_twelve_files() -> None:
    assert len(TWELVE) == len(set(TWELVE)) == 12


@pytest.mark.parametrize("file", TWELVE)
def test_each_of_the_twelve_reads_from_top_to_bottom(file: str) -> None:
    """The idea, constants, something public, its parts in the order of use: nothing is defined after it is needed."""
    body = definitions(file)
    assert isinstance(body[0], ast.Expr), "no docstring"
    assert isinstance(body[0].value, ast.Constant)
    first = next(i for i, node in enumerate(body) if is_definition(node))
    assert not body[first].name.startswith("_"), f"{body[first].name} stands before what is public"  # type: ignore[attr-defined]
    order = {node.name: i for i, node in enumerate(body) if is_definition(node)}  # type: ignore[attr-defined]
    late = [node for node in body[first:] if isinstance(node, (ast.Assign, ast.AnnAssign))]
    # A constant may need a class of the module.
    early = [ast.unparse(node) for node in late if not order.keys() & _mentioned(node)]
    assert not early, "constants stand before the first definition"
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
            users = [
                order[other.name]
                for other in body
                if isinstance(other, (ast.FunctionDef, ast.ClassDef))
                and other is not node
                and node.name in _mentioned(other)
            ]
            assert not users or min(users) < order[node.name], f"{node.name} stands before its first use"


def _mentioned(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_where_would_i_change_x_has_its_questions() -> None:
    assert len(PLACES) >= 20


@pytest.mark.parametrize(("question", "file", "symbol"), PLACES, ids=[question for question, _, _ in PLACES])
def test_where_would_i_change_x(question: str, file: str, symbol: str) -> None:
    path = ROOT / file
    assert path.is_file()
    if path.suffix == ".py":
        assert symbol in names(file)
    else:
        assert symbol in path.read_text(encoding="utf-8")


def test_the_glossary_has_the_words_of_the_code() -> None:
    assert len(WORDS) >= 25
    assert [word for word, _, _ in WORDS] == sorted((word for word, _, _ in WORDS), key=str.lower)


@pytest.mark.parametrize(("word", "meaning", "symbol"), WORDS, ids=[word for word, _, _ in WORDS])
def test_a_word_is_the_name_of_its_class(word: str, meaning: str, symbol: str) -> None:
    module, _, name = symbol.rpartition(".")
    assert hasattr(importlib.import_module(f"shardwright.{module}"), name)
    said = name.replace("_", "").lower()
    assert any(part.strip().replace(" ", "").replace("-", "").lower() in said for part in word.split(",")), symbol
    assert len(meaning) > 10
