"""`shardwright docs`: shows a page of the documentation, which is installed with the package."""

from __future__ import annotations

import sys
from argparse import Namespace

from shardwright.pipelines.commands.documentation import page_text, page_titles
from shardwright.text.escaping import unescaped

_WIDTH = 110


def run(options: Namespace) -> int:
    """Shows a page, or a section of it; without one, lists all pages."""
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
    # Only a terminal needs them.
    from rich.console import Console
    from rich.markdown import Markdown

    # The styles of the terminal are escape sequences; the pages are ours.
    console = Console(file=unescaped(sys.stdout))
    console.print(Markdown(text), width=min(_WIDTH, console.width))
    return 0
