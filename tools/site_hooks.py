"""Hooks of mkdocs (`mkdocs.yml`): ranks of pages in the search, a page without navigation, and marks of tests."""

import re
from typing import Any

# First part of a page's path -> factor of its score: a page that shows how to do something comes before one that
# describes or explains it. `tools/site_search.py` checks the result.
BOOSTS = {"how-to": 2.0, "faq.md": 0.5}
# A line under the head of a table of five columns or more.
_WIDE_TABLE = re.compile(r"^\|(?: ?-+ ?\|){5,}$", re.MULTILINE)
_FEW_SECTIONS = 4


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Gives a page the factor of its folder, the first page the whole width, and code without words for the tests."""
    page.meta.setdefault("search", {"boost": BOOSTS.get(page.file.src_uri.partition("/")[0], 1.0)})
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    elif _WIDE_TABLE.search(markdown) and markdown.count("\n## ") <= _FEW_SECTIONS:
        # The table needs the place that a short list of sections would take.
        page.meta["hide"] = ["toc"]
    return re.sub(r"^( *```python) notest$", r"\1", markdown, flags=re.MULTILINE)
