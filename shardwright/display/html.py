"""HTML of pages and notebooks, rendered by the templates in `templates/`, with autoescape.

A `str` is text, which the templates escape; `Markup` is HTML, which they insert unchanged. Names of files and classes
are untrusted: `isolate` writes invisible characters as numbers, limits the length, and isolates the direction.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from shardwright.images.colors import class_color
from shardwright.storage.checksum import SHA256, digest_of

if TYPE_CHECKING:
    from jinja2 import Environment

    from shardwright.display.thumbnails import Picture

# Controls, marks that change the direction of writing, surrogates, private and unassigned characters, separators.
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_LONGEST = 160
_NAMED = 12
_FINDINGS = {"bad": "Stop", "warn": "Look", "good": "Fine"}


def plain(text: str, longest: int = _LONGEST) -> str:
    """Writes every invisible character of a text as its number, and cuts the text to a length."""
    written = "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in _INVISIBLE else c for c in text[: longest + 1])
    return written if len(text) <= longest else f"{written[: longest - 1]}…"


def isolate(text: str, longest: int = _LONGEST) -> Markup:
    """Returns untrusted text as HTML; its direction of writing does not change the text around it."""
    return Markup("<bdi>{}</bdi>").format(plain(text, longest))


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Joins parts to one piece of HTML; text among them is escaped."""
    return escape(between).join(parts)


@cache
def _environment() -> Environment:
    # Imported here: a manifest is read more often than it is shown.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("shardwright.display"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(plain=plain, isolate=isolate)
    return environment


@cache
def _parts() -> Any:
    """Returns the macros for pages; each returns `Markup`."""
    return _environment().get_template("parts.html").module


@cache
def _notebook() -> Any:
    """Returns the macros for notebooks; each returns `Markup`."""
    return _environment().get_template("notebook.html").module


class PageScript(NamedTuple):
    """The script of a page.

    Attributes:
        name: its template.
        data: plain values, which it reads from the element `data`.
        served: whether it asks the server of the page; by default the page is a file.
    """

    name: str
    data: Any
    served: bool = False


def document(
    name: str,
    kicker: str,
    lead: str,
    top: str,
    body: str,
    *,
    title: str = "",
    links: Sequence[tuple[str, str]] = (),
    ending: str = "",
    script: PageScript | None = None,
) -> str:
    """Renders a whole page.

    Args:
        name: its heading.
        kicker: a word above the heading.
        lead: a line below the heading.
        top: the rest of the head.
        body: the sections.
        title: title of the window; by default the heading.
        links: anchor and text of each link in the navigation; by default one to the content.
        ending: a sentence at the end.
        script: of the page; by default it has none.
    """
    code = "" if script is None else _environment().get_template(script.name).render().strip()
    # JSON in which no character means something to HTML.
    data = json.dumps(None if script is None else script.data, separators=(",", ":"))
    for sign in "<>&":
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    digest = base64.b64encode(digest_of(code.encode("utf-8"), SHA256)).decode("ascii")
    return (
        _environment()
        .get_template("page.html")
        .render(
            name=name,
            kicker=kicker,
            lead=lead,
            top=top,
            body=body,
            title=title or name,
            links=links or [("main", name)],
            ending=ending,
            script=Markup(code),  # noqa: S704 -- of the package
            digest=digest,
            served=script is not None and script.served,
            data=Markup(data),  # noqa: S704
        )
    )


def section(ident: str, title: str, *parts: str, lead: str = "") -> Markup:
    """Returns a part of the page with its heading.

    Args:
        ident: its anchor.
        title: its heading.
        parts: its content.
        lead: a sentence below the heading.
    """
    return _parts().section(ident, title, parts, lead)


def card(title: str, *parts: str, note: str = "", wide: bool = False) -> Markup:
    """Returns a box with a heading of the third level."""
    return _parts().card(title, parts, note, wide)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, numbers: Sequence[int] = ()) -> Markup:
    """Returns a table whose first column names its rows.

    Args:
        head: cells of the head.
        rows: cells of the rows.
        caption: describes the table.
        numbers: columns that contain figures.
    """
    return _parts().table(head, rows, caption, numbers)


def finding_list(findings: Sequence[tuple[str, str]]) -> Markup:
    """Returns a list of findings, (`bad`, `warn` or `good`, a sentence), the most serious first."""
    order = sorted(findings, key=lambda row: list(_FINDINGS).index(row[0]))
    return _parts().finding_list([(kind, _FINDINGS[kind], text) for kind, text in order])


def stats(rows: Iterable[tuple[str, str, str]]) -> Markup:
    """Returns key figures: name, value, and a note, which may be empty."""
    return _parts().stats(rows)


def properties(rows: Iterable[tuple[str, str]]) -> Markup:
    """Returns a list of names with their values; both are untrusted text."""
    return _parts().properties(rows)


def legend(label: str, items: Iterable[tuple[str, str, str]]) -> Markup:
    """Returns a legend; each item has the CSS class of its line, or else its color, and a text."""
    return _parts().legend(label, items)


def more(summary: str, body: str) -> Markup:
    """Returns a part that opens on a click; on paper it is open."""
    return _parts().more(summary, body)


def grid(*parts: str, kind: str = "") -> Markup:
    """Returns cards side by side."""
    return Markup('<div class="{}">{}</div>').format(f"grid {kind}".strip(), join(parts))


def sheet(tiles: Iterable[str]) -> Markup:
    """Returns tiles side by side."""
    return Markup('<div class="sheet">{}</div>').format(join(tiles))


def group(badges: Iterable[str], tiles: Iterable[str]) -> Markup:
    """Returns tiles that belong together, below badges."""
    return _parts().group(badges, tiles)


def note(text: str) -> Markup:
    """Returns a remark."""
    return Markup('<p class="note">{}</p>').format(text)


def paragraph(text: str) -> Markup:
    """Returns a paragraph."""
    return Markup("<p>{}</p>").format(text)


def badge(kind: str, text: str) -> Markup:
    """Returns a badge: `bad`, `warn` or `good`."""
    return Markup('<span class="badge {}">{}</span>').format(kind, text)


def tag(text: str) -> Markup:
    """Returns a tag below a picture."""
    return Markup('<span class="tag">{}</span>').format(text)


def code(text: str) -> Markup:
    """Returns a text in a font of fixed width."""
    return Markup("<code>{}</code>").format(text)


def link(ident: str, text: str) -> Markup:
    """Returns a link to an anchor of the page."""
    return Markup('<a href="#{}">{}</a>').format(ident, text)


def dot(label: int) -> Markup:
    """Returns a dot in the color of a class."""
    return Markup('<span class="dot" style="background:{}"></span>').format(class_color(label).css)


def with_share(value: str, share: str) -> Markup:
    """Returns a figure with a smaller one in brackets."""
    return Markup("{} <small>({})</small>").format(value, share)


def switch(ident: str, text: str) -> Markup:
    """Returns a check box that is checked."""
    return _parts().switch(ident, text)


def marked(
    number: int, name: str, below: str, panels: str, choices: Iterable[tuple[str, str]], more: Sequence[str]
) -> Markup:
    """Returns an image with the buttons that mark it.

    Args:
        number: its place on the page.
        name: the untrusted name of the image.
        below: a line below the name.
        panels: its pictures.
        choices: value and text of each mark.
        more: untrusted names of classes that can be chosen, too; their marks are their numbers.
    """
    return _parts().marked(number, name, below, panels, choices, more)


def thumbnail(picture: Picture, words: str) -> Markup:
    """Returns a picture with its masks on top, as wide as the page allows; `words` describe it for screen readers."""
    return _parts().thumbnail(picture, words)


def left_out() -> Markup:
    """Returns what is shown for a picture beyond the size limit of the page."""
    return _parts().left_out()


def picture(url: str, words: str) -> Markup:
    """Returns a picture; `words` describe it for screen readers."""
    return _parts().picture(url, words)


def heat_map(url: str, words: str, width: int, height: int) -> Markup:
    """Returns a heat map; `words` describe it for screen readers."""
    return _parts().heat(url, words, width, height)


def figure(inner: str, name: str, below: str) -> Markup:
    """Returns a tile: a picture, the untrusted name of the image, and a line below it."""
    return _parts().figure(inner, name, below)


def box(title: str, *parts: str, soft: str = "") -> Markup:
    """Returns a notebook's output: a heading, the parts below it, and a text next to the heading."""
    return _notebook().box(title, parts, soft)


def line(*parts: str) -> Markup:
    """Returns a line of a notebook's output."""
    return _notebook().line(parts)


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> Markup:
    """Returns a table of a notebook's output."""
    return _notebook().rows(head, body)


def class_names(labels: Iterable[int], classes: Sequence[str]) -> Markup:
    """Returns classes by their numbers, each with its color: the first dozen."""
    numbers = list(labels)
    named = [(class_color(label).css, classes[label]) for label in numbers[:_NAMED]]
    return _notebook().class_names(named, len(numbers) - _NAMED)


def tile(url: str, words: str, *captions: str) -> Markup:
    """Returns a picture of a notebook's output with lines below it.

    Args:
        url: URL of the picture, `data:`; empty if there is none to show.
        words: describes it for screen readers.
        captions: the lines.
    """
    return _notebook().tile(url, words, captions)


def gallery(tiles: Iterable[str]) -> Markup:
    """Returns pictures side by side."""
    return _notebook().gallery(tiles)
