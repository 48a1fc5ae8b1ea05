"""The pages: plain English, and links that lead somewhere.

`python tests/test_setup_pages.py FILE...` lists what is found in pages.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from idioms import RULES
from markdown_pages import leads_nowhere
from prose import AVERAGE, paragraphs, sentence_problems, sentences, without_code, words

ROOT = Path(__file__).parents[1]


def pages() -> list[Path]:
    """All pages that a reader of the repository or of the site sees."""
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def problems(text: str) -> Iterator[tuple[int, str]]:
    """Line and what to change."""
    lengths = []
    for line, paragraph, running in paragraphs(text):
        for rule, instead in RULES:
            for found in rule.finditer(paragraph):
                yield line, f"{found[0]!r}. Write: {instead}."
        for sentence in sentences(paragraph):
            for problem in sentence_problems(sentence, running):
                yield line, problem
            if running:
                lengths.append(words(sentence))
    average = sum(lengths) / max(1, len(lengths))
    if average > AVERAGE:
        yield 1, f"{average:.1f} words a sentence on average, at most {AVERAGE}"


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_a_page_is_plain_english(page: Path) -> None:
    found = [f"{name_of(page)}:{line}: {problem}" for line, problem in problems(page.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


def test_the_check_finds_what_it_looks_for() -> None:
    long = "The cat " + "and the dog " * 11 + "sleep."
    found = [
        problem for _, problem in problems(f"It is told so.\n\n{long}\n\nWhat it is, is here.\n\n```\ntold\n```\n")
    ]
    assert [problem.split()[0] for problem in found] == ["'told'.", "36", "begin"]
    assert list(problems("One two three. " * 3)) == []
    assert list(problems(("The " + "very " * 20 + "end. ") * 3)) != []


@pytest.mark.parametrize("page", [*pages(), ROOT / "benchmarks/README.md", ROOT / "benchmarks/NOTES.md"], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = without_code(page.read_text(encoding="utf-8"))
    wrong = [
        f"{target}#{anchor}"
        for target, anchor in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)#?([^)\s]*)\)", text)
        if leads_nowhere(page, target, anchor)
    ]
    assert not wrong


def test_the_code_names_pages_that_exist() -> None:
    named = []
    for folder in ("shardwright", "components", "pipelines", "benchmarks", "tools", "tests"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".sh", ".txt", ".md", "") and file.is_file() and "__pycache__" not in file.parts:
                text = file.read_text(encoding="utf-8", errors="replace")
                named += [(file, *found) for found in re.findall(r"(?<![\w./-])docs/([\w/-]+\.md)(?:#([\w-]+))?", text)]
                shown = re.findall(r"`shardwright docs (\w[\w/-]+)(?: ([\w-]+))?`", text)
                named += [(file, f"{page}.md", anchor) for page, anchor in shown]
    assert len(named) > 20
    wrong = [
        f"{name_of(file)}: docs/{page}#{anchor}"
        for file, page, anchor in named
        if leads_nowhere(ROOT / "docs" / page, "", anchor)
    ]
    assert not wrong


def test_drawings_are_those_of_the_code_and_every_picture_is_shown() -> None:
    # A program, not a package of ours: its folder is on the path only while it is imported.
    sys.path.insert(0, str(ROOT / "tools"))
    import pictures

    sys.path.remove(str(ROOT / "tools"))
    made = pictures.drawings()
    for name, drawing in made.items():
        file = pictures.FOLDER / f"{name}.svg"
        assert file.read_text(encoding="utf-8") == drawing, (
            f"{file.name}: draw it again with tools/pictures.py --drawings"
        )
    texts = "".join(page.read_text(encoding="utf-8") for page in pages())
    assert {file.stem for file in pictures.FOLDER.glob("*.svg")} == made.keys()
    for file in pictures.FOLDER.iterdir():
        assert f"pictures/{file.name})" in texts, f"{file.name} is on no page"
    assert not re.findall(r"!\[\]", texts), "a picture has no description"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        for line, problem in problems(Path(argument).read_text(encoding="utf-8")):
            print(f"{argument}:{line}: {problem}")
