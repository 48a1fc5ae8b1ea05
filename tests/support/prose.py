"""Sentences of pages and of Python files, and the rules for them.

`python tests/support/prose.py FILE...` lists what is found in Python files.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

LONGEST, AVERAGE = 30, 18
HEADLESS = re.compile(r"(What|Whether|Where|Whose|Who|Whoever|Of)\b(?!.*\?)")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|vs|etc|approx|No|St)\.")
# Lines that are not prose: a file layout in columns, a diagram, a prompt, markup.
_DRAWN = re.compile(r"\S {2,}\S|^\s*(\$|>>>|\.\.\. |<\w)|[─│┌└├→]")
_ITEMS = re.compile(r"(Args|Attributes|Raises|Inputs|Outputs|Parameters):$")
_SECTION = re.compile(r"(Args|Attributes|Raises|Inputs|Outputs|Parameters|Returns|Yields|Examples?):$")
_TYPED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# The first words of a docstring that is neither an imperative nor `Returns ...`.
_NOUN = re.compile(r"(The|An?|All|Every|Each|Its|This|That|How|Why|Which|Two|One|Any|As|[A-Z]\w+s of)\b")
_VERB = re.compile(r"[A-Z]\w+s\b|See\b")


# The checks of one file follow each other; the trees of all files would take hundreds of megabytes.
@lru_cache(maxsize=1)
def parsed(file: Path) -> tuple[str, list[ast.AST]]:
    """Returns the source of a Python file, and all nodes of its tree, each before those in it."""
    source = file.read_text(encoding="utf-8")
    return source, list(ast.walk(ast.parse(source)))


def without_code(text: str) -> str:
    """The text with the lines of code blocks and comments emptied, so that line numbers stay."""
    empty = re.compile(r"^( *)```.*?^\1```|<!--.*?-->", re.MULTILINE | re.DOTALL)
    return empty.sub(lambda found: "\n" * found[0].count("\n"), text)


def plain(text: str) -> str:
    """A paragraph as a reader sees it: a link is its text, code is one word."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    text = re.sub(r"Code(, Code)+", "Code", text)
    return re.sub(r"[*_]{1,2}(\S[^*_]*)[*_]{1,2}", r"\1", text)


def paragraphs(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line, text, and whether it is running text rather than a heading or a cell of a table."""
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*without_code(text).split("\n"), ""], 1):
        stripped = line.strip()
        special = stripped.startswith(("#", "|", "---", "!!!"))
        item = re.match(r"([-*]|\d+\.) ", stripped)
        if block and (not stripped or special or item):
            yield begin, plain(" ".join(block)), True
            block = []
        if special:
            for cell in stripped.strip("|").split(" | "):
                yield number, plain(cell.strip("# ")), False
        elif stripped:
            begin = begin if block else number
            block.append(stripped.removeprefix(item[0]) if item else stripped.lstrip("> "))


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph; a colon before a list or a block ends one."""
    text = _ABBREVIATIONS.sub(lambda found: found[0].replace(".", ""), paragraph)
    return [part for part in re.split(r"(?<=[.!?:;])[)\"'*]*\s+(?=[^a-z])|;\s+", text) if re.search(r"\w", part)]


def words(sentence: str) -> int:
    """Number of words; a number with its unit, a path or a name with dots is one."""
    return len(re.findall(r"[\w’'%.,/+-]*\w[\w’'%.,/+-]*", sentence))


def sentence_problems(sentence: str, running: bool = True) -> Iterator[str]:
    """Problems of one sentence; a heading and a cell of a table may be a clause."""
    count = words(sentence)
    if count > LONGEST:
        yield f"{count} words, at most {LONGEST}: {sentence[:70]} …"
    if running and HEADLESS.match(sentence):
        yield f"begin with the subject: {sentence[:50]} …"


def _docstring_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Line and text; an item of `Args:` is a paragraph, and drawings (`name   its meaning`) are left out."""
    section, items, depth, drawn = "", False, 0, -1
    for number, line in enumerate(without_code(text).split("\n")):
        indent = len(line) - len(line.lstrip())
        stripped = line.strip()
        if _SECTION.match(stripped):
            section, depth, items = stripped, -1, _ITEMS.match(stripped) is not None
            yield number, ""
        elif not stripped:
            drawn = -1
            yield number, ""
        elif _DRAWN.search(stripped):
            drawn = indent
            yield number, ""
        elif 0 <= drawn < indent:
            continue
        else:
            drawn = -1
            depth = indent if section and depth < 0 else depth
            if section and indent < depth:
                section = ""
            if items and section and indent == depth:
                yield number, ""
            yield number, stripped


def _joined(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Paragraphs of lines; an empty line ends one."""
    block: list[str] = []
    begin = 0
    for number, line in lines:
        if line:
            begin = begin if block else number
            block.append(line)
        elif block:
            yield begin, "\n".join(block)
            block = []
    if block:
        yield begin, "\n".join(block)


def _comments(source: str, nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of comments; comments on consecutive lines are one text."""
    # `tokenize` takes as long as all the rest: a comment is where a # is outside of strings.
    inside: dict[int, list[tuple[int, int]]] = {}
    for node in nodes:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))):
            last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
            for line in range(node.lineno, last + 1):
                begin = node.col_offset if line == node.lineno else 0
                inside.setdefault(line, []).append((begin, end if line == last else sys.maxsize))
    before, column = -2, -1
    for line, row in enumerate(source.encode().split(b"\n"), 1):
        found = next(
            (
                place.start()
                for place in re.finditer(b"#", row)
                if not any(begin <= place.start() < end for begin, end in inside.get(line, ()))
            ),
            None,
        )
        if found is None:
            continue
        whole = not row[:found].strip()
        if not (whole and line == before + 1 and found == column):
            yield line, ""
        before, column = (line if whole else -2), found
        text = row[found:].decode().lstrip("#! ")
        yield line, "" if _DRAWN.search(text) else text


def _literal(node: ast.AST) -> str | None:
    """The text of a string, of an f-string or of a sum of them; a field is one word."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(value) or "Field" for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left), _literal(node.right)
        return None if left is None and right is None else (left or "Field") + (right or "Field")
    return None


def _literals(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of the strings that are not docstrings, and not parts of another string."""
    inner: set[int] = set()
    for node in nodes:
        if isinstance(node, _TYPED) and ast.get_docstring(node, clean=False) is not None:
            inner.update(map(id, ast.walk(node.body[0])))
        elif isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)) and id(node) not in inner:
            text = _literal(node)
            if text is not None:
                inner.update(map(id, ast.walk(node)))
                yield node.lineno, text


def code_texts(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each paragraph of docstrings, comments, messages and help."""
    source, nodes = parsed(file)
    for node in nodes:
        if isinstance(node, _TYPED) and (docstring := ast.get_docstring(node)):
            for number, text in _joined(_docstring_paragraphs(docstring)):
                yield node.body[0].lineno + number, text
    yield from _joined(_comments(source, nodes))
    # The strings of tests are data, and messages that are checked where they are made.
    if "tests" not in file.parts:
        for line, text in _literals(nodes):
            yield from ((line, row.strip()) for row in text.split("\n") if not _DRAWN.search(row))


def code_problems(file: Path) -> Iterator[tuple[int, str]]:
    """Line and what to change in the docstrings, comments, messages and help of a Python file."""
    for line, text in code_texts(file):
        # Most texts are too short to be looked at further.
        if text.count(" ") + text.count("\n") >= LONGEST or HEADLESS.search(text):
            for _, paragraph, running in paragraphs(text):
                for sentence in sentences(paragraph) if running else ():
                    for problem in sentence_problems(sentence):
                        yield line, problem


def first_line_problems(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of the functions' docstrings that begin neither with a verb nor with `Returns`."""
    for node in parsed(file)[1]:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        text = ast.get_docstring(node) or "See"
        if any("property" in decorator for decorator in decorators):
            continue
        if _NOUN.match(text) or not _VERB.match(text):
            yield node.body[0].lineno, f"begin with a verb, such as `Returns`: {text.splitlines()[0][:60]} …"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        for place in sorted(Path(argument).rglob("*.py")) if Path(argument).is_dir() else [Path(argument)]:
            for number, wrong in sorted([*code_problems(place), *first_line_problems(place)]):
                print(f"{place}:{number}: {wrong}")
