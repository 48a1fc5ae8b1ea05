"""The words of the code: no idioms of its own, short sentences, docstrings that begin with a verb.

`python tests/test_setup_words.py FILE...` lists the idioms that are found, `tests/support/prose.py` the rest.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from idioms import BRITISH, RULES
from prose import HEADLESS, code_problems, first_line_problems, parsed

ROOT = Path(__file__).parents[1]
NAMES = re.compile(
    rf"(^|_)(told|tells?|said|says?|mend(ed|s)?|anew|beside|whoever|lies|unheld)(_|$)|{BRITISH}", re.IGNORECASE
)
BEGINS = re.compile(rf"(?m)^[# ]*{HEADLESS.pattern}")
# The words are meant there: the names of other people's interfaces, values of parameters.
EXCEPTIONS: dict[str, set[str]] = {
    "shardwright/storage/buckets.py": {"tell"},  # the method of file objects
    "shardwright/formats/mask_values.py": {"unlabelled"},  # the background's name in other people's files
}
FOLDERS = ("shardwright", "components", "pipelines", "schemas", "benchmarks")


def files() -> list[Path]:
    """The modules that are installed, and the benchmarks."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def docstrings(nodes: list[ast.AST]) -> set[int]:
    """Lines on which a docstring begins."""
    typed = (node for node in nodes if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)))
    return {node.body[0].lineno for node in typed if ast.get_docstring(node, clean=False) is not None}


def may_have_idioms(source: str) -> bool:
    """Returns whether a name or a comment of a source can be an idiom: its tokens take long to look at."""
    behind = "\n".join(re.findall(r"#.*", source))
    names = set(re.findall(r"\w+", source))
    return any(map(NAMES.search, names)) or any(rule.search(behind) for rule, _ in RULES) or bool(BEGINS.search(behind))


def idioms(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, what was found and what to write instead."""
    source, nodes = parsed(path)
    texts: list[tuple[int, str, bool]] = [
        (node.lineno, node.value, False)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    begins = docstrings(nodes)
    texts = [(line, text, line in begins) for line, text, _ in texts]
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline)) if may_have_idioms(source) else []
    before = -2
    for token in tokens:
        if token.type == tokenize.COMMENT:
            texts.append((token.start[0], token.string.lstrip("# "), token.start[0] > before + 1))
            before = token.start[0]
        elif token.type == tokenize.NAME and NAMES.search(token.string):
            yield token.start[0], token.string, "a name: the standard term"
    for line, text, first in texts:
        rules = [(rule, instead) for rule, instead in RULES if rule.search(text)]
        for number, row in enumerate(text.splitlines() if rules else ()):
            for rule, instead in rules:
                for found in rule.finditer(row):
                    yield line + number, found[0], instead
        if first and HEADLESS.match(text.strip()):
            yield line, text.strip().split()[0], "begin with a verb or the thing: Returns …, Reads …, The …"


def test_the_code_is_plain_english() -> None:
    found = []
    modules = files()
    assert len(modules) > 100
    # Tests may be named for what people say, and their docstrings may be statements.
    others = [path for folder in ("tools", "tests") for path in (ROOT / folder).rglob("*.py")]
    for path in [*modules, *others]:
        name = str(path.relative_to(ROOT))
        problems = list(code_problems(path))
        if path not in others:
            problems += first_line_problems(path)
            for line, text, instead in idioms(path):
                if text not in EXCEPTIONS.get(name, ()):
                    problems.append((line, f"{text!r}. Write: {instead}."))
        found += [f"{name}:{line}: {problem}" for line, problem in problems]
    assert not found, f"{len(found)} problems:\n" + "\n".join(found[:50])


def test_the_check_reads_docstrings_comments_and_messages(tmp_path: Path) -> None:
    long = "The cat " + "and the dog " * 10 + "sleep."
    file = tmp_path / "module.py"
    file.write_text(
        f'''"""{long[:60]}
{long[60:]}

name    {long}
"""


def fail(name: str) -> None:  # Where it is used.
    """The first line.

    Args:
        name: Short.
        other: {long}
    """
    # {long[:60]}
    # {long[60:]}
    raise ValueError(f"{{name}}: {long[:60]}" "{long[60:]}")  # no # {long}
'''
    )
    found = [(line, problem.split()[0]) for line, problem in code_problems(file)]
    assert found == [(1, "33"), (13, "33"), (8, "begin"), (15, "33"), (17, "34"), (17, "33")]
    assert [line for line, _ in first_line_problems(file)] == [9]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        for place in sorted(Path(argument).rglob("*.py")) if Path(argument).is_dir() else [Path(argument)]:
            for line, text, instead in sorted(idioms(place)):
                print(f"{place}:{line}: {text!r}. Write: {instead}.")
