"""The pages of the documentation: the one that a help text or an error ends with, and their text.

The installed package contains the pages, so `shardwright docs` shows them without a network.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shardwright.errors import CheckFailed, ConfigError, DatasetError, NotFound, StorageError, UsageError
from shardwright.pipelines.commands.catalog import ENTRIES
from shardwright.running.extras import MissingExtra

COMMANDS_PAGE = "reference/command-line.md"
_FOLDER = Path(__file__).parents[2] / "docs"
_MESSAGES = "reference/messages.md"
# Kind of error -> its page. The first kind that fits counts.
ERROR_PAGES: dict[type[Exception], str] = {
    MissingExtra: "get-started/installation.md#which-command-needs-which-extra",
    NotFound: f"{_MESSAGES}#paths",
    CheckFailed: f"{_MESSAGES}#failed-checks",
    StorageError: f"{_MESSAGES}#buckets-and-disks",
    DatasetError: f"{_MESSAGES}#damaged-datasets",
    OSError: f"{_MESSAGES}#buckets-and-disks",
}


def address(page: str) -> str:
    """Returns the command that shows a page of `docs/`, which may end with an anchor."""
    file, _, anchor = page.partition("#")
    return " ".join(["shardwright docs", file.removesuffix(".md"), *filter(None, [anchor])])


def page_titles() -> dict[str, str]:
    """Returns the names of all pages, such as `how-to/predict`, with their titles."""
    files = sorted(_FOLDER.rglob("*.md"))
    if not files:
        raise NotFound(f"{_FOLDER}: the pages are not installed. Install the wheel of Shardwright again.")
    names = [file.relative_to(_FOLDER).with_suffix("").as_posix() for file in files]
    heads = [file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for file in files]
    return dict(zip(names, heads, strict=True))


def pages_named(name: str) -> tuple[str, list[str]]:
    """Returns a name as `page_titles` has it, and the pages of that name, or whose last part it is."""
    wanted = name.removeprefix("docs/").removesuffix(".md")
    titles = page_titles()
    same = [title for title in titles if title == wanted]
    return wanted, same or [title for title in titles if title.rpartition("/")[2] == wanted]


def page_text(name: str, anchor: str = "") -> str:
    """Returns the Markdown of a page, or of one of its sections.

    Args:
        name: for example `how-to/predict`, or the last part of it if no other page ends so.
        anchor: of a heading; empty for the whole page.

    Raises:
        UsageError: there is no such page or section.
    """
    titles = page_titles()
    wanted, same = pages_named(name)
    if len(same) != 1:
        close = difflib.get_close_matches(wanted, [*titles, *(title.rpartition("/")[2] for title in titles)], n=3)
        hint = f"Did you mean {' or '.join(same or close)}?" if same or close else "`shardwright docs` lists all."
        raise UsageError(f"PAGE: there is no page {name!r}, and no page has this word. {hint}")
    text = _without_links((_FOLDER / f"{same[0]}.md").read_text(encoding="utf-8"), same[0])
    return _section(text, anchor, same[0]) if anchor else text


class Hit(NamedTuple):
    """A section of a page that has all words of a search."""

    page: str
    anchor: str
    heading: str
    line: str


def search_pages(words: Sequence[str]) -> list[Hit]:
    """Returns the sections that have all of some words, in any case: by heading, by number of places, by name."""
    wanted = [word.lower() for word in words]
    ranked = []
    for name in page_titles():
        page = _without_links((_FOLDER / f"{name}.md").read_text(encoding="utf-8"), name)
        for anchor, heading, text in _sections(page):
            lower = text.lower()
            if all(word in lower for word in wanted):
                line = max(text.splitlines(), key=lambda line: sum(word in line.lower() for word in wanted))
                titled = all(word in heading.lower() for word in wanted)
                count = sum(map(lower.count, wanted))
                ranked.append(((not titled, -count, name), Hit(name, anchor, heading, line.strip(" #|>-"))))
    return [hit for _, hit in sorted(ranked)]


def _sections(page: str) -> Iterator[tuple[str, str, str]]:
    """Yields the sections of a page down to the second rank: anchor (empty for its beginning), heading and text."""
    anchor = heading = ""
    lines: list[str] = []
    code = False
    for line in page.splitlines():
        code ^= line.lstrip().startswith("```")
        found = None if code else re.match(r"(##?) (.+)", line)
        if found and lines:
            yield anchor, heading, "\n".join(lines)
            lines = []
        if found:
            anchor, heading = heading_anchor(found[2]) if len(found[1]) > 1 else "", found[2]
        lines.append(line)
    yield anchor, heading, "\n".join(lines)


def heading_anchor(heading: str) -> str:
    """Returns the anchor of a heading, as mkdocs and GitHub make it."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())


def _section(text: str, anchor: str, name: str) -> str:
    """Returns the part of a page from a heading to the next one of its rank."""
    lines, rank, anchors, code = [], 0, [], False
    for line in text.splitlines():
        code ^= line.startswith("```")
        heading = None if code else re.match(r"(#+) (.+)", line)
        if heading:
            anchors.append(heading_anchor(heading[2]))
            if anchors[-1] == anchor:
                rank = len(heading[1])
            elif rank and len(heading[1]) <= rank:
                break
        if rank:
            lines.append(line)
    if not lines:
        raise UsageError(f"SECTION: {name} has no section {anchor!r}. It has: {', '.join(anchors)}.")
    return "\n".join(lines).rstrip() + "\n"


def _without_links(text: str, name: str) -> str:
    """Returns a page with the names of pages in place of links, and without pictures and comments."""
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"(picture: \1)", text)

    def named(link: re.Match[str]) -> str:
        target, _, anchor = link[2].partition("#")
        if "://" in target or not target.endswith(".md"):
            return link[0] if "://" in target else link[1]
        page = ((_FOLDER / name).parent / target).resolve()
        if not page.is_relative_to(_FOLDER.resolve()):
            return link[1]
        page = page.relative_to(_FOLDER.resolve()).with_suffix("")
        return f"{link[1]} ({' '.join([page.as_posix(), *filter(None, [anchor])])})"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]*)\)", named, text)


def page_of_error(error: Exception, options: argparse.Namespace) -> str:
    """Returns the page that explains an error.

    Args:
        error: an error that users see.
        options: of the command line, as far as it was parsed: the page of the command serves for all other errors.
    """
    if isinstance(error, ConfigError) and not error.path.startswith("-"):
        return f"reference/configuration.md#{section_anchor(error.path)}"
    for kind, page in ERROR_PAGES.items():
        if isinstance(error, kind):
            return page
    command = getattr(options, "invoked", None)
    return ENTRIES[command].page if command in ENTRIES else COMMANDS_PAGE


def section_anchor(path: str) -> str:
    """Returns the anchor of the section of a YAML path on the page of the configuration.

    Args:
        path: for example `input.labels.runs` or `kubeflow.volumes[0].claim`.
    """
    from shardwright.config.json_schema import config_schema

    properties: Any = config_schema()["properties"]
    anchor = ""
    for key in re.sub(r"\[[^]]*\]", "", path).split("."):
        value = properties.get(key, {})
        section = next((part for part in (value, *value.get("anyOf", ())) if "properties" in part), None)
        # Rows under names of the user's own, such as those of components, share a section of the page.
        rows = value.get("additionalProperties")
        if section is None and not (isinstance(rows, dict) and "properties" in rows):
            break
        anchor += key
        properties = section["properties"] if section else {}
    return anchor or "top-level"
