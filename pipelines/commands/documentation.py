"""The pages of the documentation: the one that a help text or an error ends with, and their text.

The installed package contains the pages, so `shardwright docs` shows them without a network.
"""

from __future__ import annotations

import argparse
import difflib
import re
from pathlib import Path
from typing import Any

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
    return {_name(file): file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for file in files}


def page_text(name: str, anchor: str = "") -> str:
    """Returns the Markdown of a page, or of one of its sections.

    Args:
        name: for example `how-to/predict`, or the last part of it if no other page ends so.
        anchor: of a heading; empty for the whole page.

    Raises:
        UsageError: there is no such page or section.
    """
    titles = page_titles()
    wanted = name.removeprefix("docs/").removesuffix(".md")
    same = [one for one in titles if one == wanted] or [one for one in titles if one.rpartition("/")[2] == wanted]
    if len(same) != 1:
        close = difflib.get_close_matches(wanted, [*titles, *(one.rpartition("/")[2] for one in titles)], n=3)
        hint = f"Did you mean {' or '.join(same or close)}?" if same or close else "`shardwright docs` lists all."
        raise UsageError(f"PAGE: there is no page {name!r}. {hint}")
    text = _without_links((_FOLDER / f"{same[0]}.md").read_text(encoding="utf-8"), same[0])
    return _section(text, anchor, same[0]) if anchor else text


def _name(file: Path) -> str:
    return file.relative_to(_FOLDER).with_suffix("").as_posix()


def heading_anchor(heading: str) -> str:
    """Returns the anchor of a heading, as mkdocs and GitHub make it."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())


def _section(text: str, anchor: str, name: str) -> str:
    """Returns the part of a page from a heading to the next one of its rank."""
    found, rank, anchors, code = [], 0, [], False
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
            found.append(line)
    if not found:
        raise UsageError(f"SECTION: {name} has no section {anchor!r}. It has: {', '.join(anchors)}.")
    return "\n".join(found).rstrip() + "\n"


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
        section = next((one for one in (value, *value.get("anyOf", ())) if "properties" in one), None)
        # Rows under names of the user's own, such as those of components, share a section of the page.
        rows = value.get("additionalProperties")
        if section is None and not (isinstance(rows, dict) and "properties" in rows):
            break
        anchor += key
        properties = section["properties"] if section else {}
    return anchor or "top-level"
