"""`shardwright docs`: shows a page of the documentation, which is installed with the package."""

from __future__ import annotations

import argparse
import sys

from shardwright.pipelines.commands.documentation import page_text, page_titles
from shardwright.pipelines.commands.parsers import Commands
from shardwright.text.escaping import unescaped

_WIDTH = 110


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    docs = commands.add("docs")
    docs.add_argument("page", nargs="?", metavar="PAGE", help="page such as how-to/predict (default: list all pages)")
    docs.add_argument("section", nargs="?", metavar="SECTION", help="anchor of a heading on it (default: all of it)")
    docs.set_defaults(command=_docs)


def _docs(options: argparse.Namespace) -> int:
    if options.page is None:
        titles = page_titles()
        width = max(map(len, titles))
        for name, title in titles.items():
            print(f"{name:<{width}}  {title}")
        return 0
    name, _, anchor = options.page.partition("#")
    text = page_text(name, options.section or anchor)
    if not sys.stdout.isatty():
        print(text, end="")  # A program that reads it, or a pager, gets the Markdown.
        return 0
    from rich.console import Console
    from rich.markdown import Markdown

    # The styles of the terminal are escape sequences; the pages are ours.
    console = Console(file=unescaped(sys.stdout))
    console.print(Markdown(text), width=min(_WIDTH, console.width))
    return 0
