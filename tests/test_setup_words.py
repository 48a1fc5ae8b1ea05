"""The words of the code: no idioms of its own in comments, docstrings, messages, help and names.

`python tests/test_setup_words.py FILE...` lists what is found, with the line.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from idioms import BRITISH, RULES
from prose import HEADLESS, first_line_problems, parsed

ROOT = Path(__file__).parents[1]
NAMES = re.compile(
    rf"(^|_)(told|tells?|said|says?|mend(ed|s)?|anew|beside|whoever|lies|unheld)(_|$)|{BRITISH}", re.IGNORECASE
)
# The words are meant there: the names of other people's interfaces, values of parameters.
EXCEPTIONS: dict[str, set[str]] = {
    "shardwright/storage/buckets.py": {"tell"},  # the method of file objects
    "shardwright/formats/mask_values.py": {"unlabelled"},  # the background's name in other people's files
}
FOLDERS = ("shardwright", "components", "pipelines", "schemas", "benchmarks")


def files() -> list[Path]:
    """The modules that are installed, and the benchmarks."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def docstrings(tree: ast.Module) -> set[int]:
    """Lines on which a docstring begins."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)))
    return {node.body[0].lineno for node in nodes if ast.get_docstring(node, clean=False) is not None}


def idioms(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, what was found and what to write instead."""
    source, tree = parsed(path)
    texts: list[tuple[int, str, bool]] = [
        (node.lineno, node.value, False)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    begins = docstrings(tree)
    texts = [(line, text, line in begins) for line, text, _ in texts]
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    before = -2
    for token in tokens:
        if token.type == tokenize.COMMENT:
            texts.append((token.start[0], token.string.lstrip("# "), token.start[0] > before + 1))
            before = token.start[0]
        elif token.type == tokenize.NAME and NAMES.search(token.string):
            yield token.start[0], token.string, "a name: the standard term"
    for line, text, first in texts:
        for number, row in enumerate(text.splitlines()):
            for rule, instead in RULES:
                for found in rule.finditer(row):
                    yield line + number, found[0], instead
        if first and HEADLESS.match(text.strip()):
            yield line, text.strip().split()[0], "begin with a verb or the thing: Returns …, Reads …, The …"


def test_the_code_has_no_idioms_of_its_own() -> None:
    found = []
    modules = files()
    assert len(modules) > 100
    for path in modules:
        name = str(path.relative_to(ROOT))
        for line, text, instead in idioms(path):
            if text not in EXCEPTIONS.get(name, ()):
                found.append(f"{name}:{line}: {text!r}. Write: {instead}.")
    assert not found, f"{len(found)} idioms:\n" + "\n".join(found[:50])


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {problem}" for path in files() for line, problem in first_line_problems(path)
    ]
    assert not found, "\n".join(found)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        for place in sorted(Path(argument).rglob("*.py")) if Path(argument).is_dir() else [Path(argument)]:
            for line, text, instead in sorted(idioms(place)):
                print(f"{place}:{line}: {text!r}. Write: {instead}.")
