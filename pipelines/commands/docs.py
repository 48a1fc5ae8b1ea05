"""`shardwright docs`: shows a page of the documentation, which is installed with the package."""

from __future__ import annotations

import sys
from argparse import Namespace

from shardwright.pipelines.commands.documentation import page_text, page_titles, pages_named, search_pages
from shardwright.text.escaping import unescaped

_WIDTH = 110
_MOST_HITS = 12


def run(options: Namespace) -> int:
    """Shows a page, or a section of it, or where a word is; without one, lists all pages."""
    if options.page is None:
        titles = page_titles()
        width = max(map(len, titles))
        for name, title in titles.items():
            print(f"{name:<{width}}  {title}")
        return 0
    name, _, anchor = options.page.partition("#")
    if "/" not in name and not pages_named(name)[1]:
        hits = search_pages([*name.split(), *(options.section or anchor or "").split()])
        # Each as the rest of the command that shows it, with a line of it.
        for hit in hits[:_MOST_HITS]:
            print(" ".join(filter(None, [hit.page, hit.anchor])))
            print(f"    {hit.line[:_WIDTH]}")
        if len(hits) > _MOST_HITS:
            print(f"{len(hits) - _MOST_HITS} more sections have it: add a word")
        if hits:
            print(f"Next: shardwright docs {hits[0].page} {hits[0].anchor}".rstrip())
            return 0
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
