"""Ranks pages in the search of the site: pages that show how to do something come first.

A hook of mkdocs (`mkdocs.yml`). `tools/site_search.py` checks the result.
"""

from typing import Any

# First part of a page's path -> factor of its score.
BOOSTS = {"how-to": 2.0, "faq.md": 0.5}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Gives a page the factor of its folder."""
    page.meta.setdefault("search", {"boost": BOOSTS.get(page.file.src_uri.partition("/")[0], 1.0)})
    return markdown
