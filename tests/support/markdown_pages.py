"""The links of Markdown pages: where they lead."""

import re
from pathlib import Path

from shardwright.pipelines.commands.documentation import heading_anchor


def without_code(text: str) -> str:
    """Returns a page with its code blocks and comments emptied; line numbers stay."""
    empty = re.compile(r"^( *)```.*?^\1```|<!--.*?-->", re.MULTILINE | re.DOTALL)
    return empty.sub(lambda found: "\n" * found[0].count("\n"), text)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as mkdocs and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {heading_anchor(heading) for heading in headings}


def leads_nowhere(page: Path, target: str, anchor: str) -> bool:
    place = (page.parent / target).resolve() if target else page
    return not place.exists() or (anchor != "" and place.suffix == ".md" and anchor not in anchors(place))
