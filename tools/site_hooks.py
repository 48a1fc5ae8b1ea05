"""Hooks of mkdocs (`mkdocs.yml`): ranks in the search, what is beside a page, dark pictures, failed Markdown."""

import logging
import re
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"

# First part of a page's path -> factor of its score: a page that shows how to do something comes before one that
# describes or explains it. `tools/site_search.py` checks the result.
BOOSTS = {"how-to": 2.0}
# A line under the head of a table of five columns or more.
_WIDE_TABLE = re.compile(r"^\|(?: ?-+ ?\|){5,}$", re.MULTILINE)
_FEW_SECTIONS = 4
# Markup that a reader would see as text -> how it looks in a page without its code.
_UNREAD = {
    "a row of a table": re.compile(r"^\s*(?:<p>)?\|", re.MULTILINE),
    "a table without rows": re.compile(r"<tbody>\s*(?:<tr>(?:\s*<td></td>)*\s*</tr>\s*)?</tbody>"),
    "a link": re.compile(r"\]\("),
    "code or bold text": re.compile(r"`|\*\*"),
}
# Indented too far, text becomes code: a sentence in a block that no language colors.
_TEXT_AS_CODE = re.compile(r"<pre>(?:<span></span>)?<code>[A-Z`][^<]*(?:`|\]\()[^<]*\.\s*</code>")
_CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
# Mkdocs counts its warnings, and `--strict` makes them errors.
_LOG = logging.getLogger("mkdocs.hooks")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Gives a page the factor of its folder, the first page the whole width, and code without words for the tests."""
    page.meta.setdefault("search", {"boost": BOOSTS.get(page.file.src_uri.partition("/")[0], 1.0)})
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    elif _WIDE_TABLE.search(markdown) and markdown.count("\n## ") <= _FEW_SECTIONS:
        # The table needs the place that a short list of sections would take.
        page.meta["hide"] = ["toc"]
    return re.sub(r"^( *```python) notest$", r"\1", markdown, flags=re.MULTILINE)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Gives a picture its versions for dark pages and for phones where there are any; the theme shows one by color."""
    for what in unread_markup(html):
        _LOG.warning("%s: %s", page.file.src_uri, what)

    def versions(found: re.Match[str]) -> str:
        tag, folder, name = found[0], found["folder"], found["name"]
        shown = ""
        for suffix, color in (("", "#only-light"), ("-dark", "#only-dark")):
            if not (PICTURES / f"{name}{suffix}.png").exists():
                return str(tag)
            file = f"{folder}{name}{suffix}.png{color}"
            # The one that is not shown is not loaded either.
            image = tag.replace(f"{folder}{name}.png", file).replace("<img", '<img loading="lazy"')
            phone = f"{name}-phone{suffix}.png"
            if (PICTURES / phone).exists():
                image = f'<picture><source media="(max-width: 600px)" srcset="{folder}{phone}">{image}</picture>'
            shown += image
        return shown

    if page.file.src_uri == "reference/messages.md":
        # A heading for each message is for the search; a list of all of them would be no overview.
        for section in page.toc.items[0].children:
            section.children.clear()
    return re.sub(r'<img [^>]*src="(?P<folder>[^"]*pictures/)(?P<name>[\w-]+)\.png"[^>]*>', versions, html)


def unread_markup(html: str) -> list[str]:
    """Returns what of a page's Markdown is shown as it was written, a sentence for each kind."""
    shown = _CODE.sub("…", html)
    found = [f"{what} is shown as text" for what, pattern in _UNREAD.items() if pattern.search(shown)]
    return [*found, *(["text is shown as code"] if _TEXT_AS_CODE.search(html) else [])]
