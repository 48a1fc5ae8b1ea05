"""Commands and code on the pages: calls of `shardwright` parse, shell is shell, YAML is YAML, and imports exist."""

import argparse
import ast
import importlib
import re
import shlex
import subprocess
import textwrap
from pathlib import Path

import pytest
import yaml

from shardwright.pipelines import cli
from shardwright.pipelines.commands.parsers import Parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# A word that stands for others.
PLACE = re.compile(r"[…\[|]")


def blocks(page, languages):
    """The blocks of a page in one of some languages."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(rf"^( *)```(?:{languages})(?: .*)?\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in found]


def calls(page):
    """Calls of `shardwright` in the blocks of a page."""
    for block in blocks(page, "sh|bash|console|text"):
        for line in block.replace("\\\n", " ").splitlines():
            call = line.removeprefix("$ ").strip()
            if call.startswith("shardwright ") and not PLACE.search(call):
                yield re.sub(r" > \S+", "", call)


def mentioned(page):
    """Words of the calls in the sentences of a page; they may lack arguments."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for call in re.findall(r"`shardwright ([^`]+)`", text):
        if not PLACE.search(call):
            yield call.split()


def parsers():
    """All commands by their names, such as `schema infer`."""
    found: dict[str, Parser] = {}

    def add(parser: Parser, name: str) -> None:
        found[name] = parser
        for word, one in parser.below.items():
            add(one, f"{name} {word}".strip())

    add(cli.build_parser(), "")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_calls_of_a_page_parse(page):
    for call in calls(page):
        try:
            cli.parse(shlex.split(call, comments=True)[1:], argparse.Namespace())
        except SystemExit as end:
            pytest.fail(f"{page.name}: {call} ({end.code})")


def test_the_commands_and_options_in_sentences_exist():
    known = parsers()
    count, wrong = 0, []
    for page in PAGES:
        for words in mentioned(page):
            names = [" ".join(words[:length]) for length in (2, 1, 0) if " ".join(words[:length]) in known]
            options = {word.partition("=")[0] for word in words if word.startswith("-")}
            count += 1
            if (not names[0] and not options) or options - set(known[names[0]].options):
                wrong.append(f"{page.name}: shardwright {' '.join(words)}")
    assert wrong == []
    assert count > 100


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_are_in_their_language(page):
    for block in blocks(page, "sh|bash"):
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (block, done.stderr)
    for block in blocks(page, "yml"):
        assert list(yaml.safe_load_all(block)), block
    for block in blocks(page, "python|py"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shardwright"):
                module = importlib.import_module(node.module or "")
                assert all(hasattr(module, one.name) for one in node.names), ast.unparse(node)


def test_a_wrong_call_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\nshardwright ingest a.yaml --outt ds  # a comment\n```\n")
    with pytest.raises(pytest.fail.Exception, match="outt"):
        test_the_calls_of_a_page_parse(page)
    page.write_text("```python\nfrom shardwright import nothing_of_the_kind\n```\n")
    with pytest.raises(AssertionError):
        test_the_blocks_of_a_page_are_in_their_language(page)
