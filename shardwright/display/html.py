"""Parts of what a notebook shows: styled in place, readable on light and dark, whatever comes in is escaped.

HTML as text. Whatever comes from a dataset goes through `escape` or `escape_attribute`: names are from strangers.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence

from shardwright.images.colours import class_colour

# Characters without a shape of their own: controls, marks that turn the direction of writing, surrogates, unassigned.
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_LONGEST = 160


def plain(text: str, longest: int = _LONGEST) -> str:
    """A text in which every invisible character is written as its number, and which is no longer than it may be."""
    written = "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in _INVISIBLE else c for c in text[: longest + 1])
    return written if len(text) <= longest else f"{written[: longest - 1]}…"


def escape(text: str, longest: int = _LONGEST) -> str:
    """A text of a stranger between tags; isolated, so that its direction of writing changes nothing around it."""
    return f"<bdi>{html.escape(plain(text, longest))}</bdi>"


def escape_attribute(text: str, longest: int = _LONGEST) -> str:
    """A text of a stranger within an attribute's quotes."""
    return html.escape(plain(text, longest), quote=True)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, numbers: Sequence[int] = ()) -> str:
    """A table whose first column names its rows.

    Args:
        head: texts of the head, ready as HTML.
        rows: cells, ready as HTML.
        caption: what it shows.
        numbers: columns that hold figures.
    """
    kinds = [' class="n"' if column in numbers else "" for column in range(len(head))]
    top = "".join(f'<th scope="col"{kind}>{cell}</th>' for kind, cell in zip(kinds, head, strict=True))
    body = []
    for row in rows:
        cells = [f'<th scope="row">{row[0]}</th>']
        cells += [f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds[1:], row[1:], strict=True)]
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<p class="cap" aria-hidden="true">{escape(caption)}</p>'
        f'<div class="scroll" role="region" aria-label="{escape_attribute(caption)}" tabindex="0">'
        f'<table aria-label="{escape_attribute(caption)}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def section(ident: str, title: str, *parts: str, lead: str = "") -> str:
    """A part of the page with its heading.

    Args:
        ident: its anchor.
        title: its heading.
        parts: what is in it, ready as HTML.
        lead: a sentence below the heading, ready as HTML.
    """
    told = f'<p class="lead">{lead}</p>' if lead else ""
    return (
        f'<section id="{ident}" aria-labelledby="{ident}-h"><h2 id="{ident}-h">{html.escape(title)}</h2>{told}'
        f"{''.join(parts)}</section>"
    )


def card(title: str, *parts: str, note: str = "", wide: bool = False) -> str:
    """A box with a heading of the third level."""
    told = f'<p class="note">{note}</p>' if note else ""
    return f'<div class="card{" wide" if wide else ""}"><h3>{title}</h3>{"".join(parts)}{told}</div>'


def finding_list(rows: Sequence[tuple[str, str]]) -> str:
    """What is worth a look, the gravest first: (`bad`, `warn` or `good`, a sentence as HTML)."""
    words = {"bad": "Stop", "warn": "Look", "good": "Fine"}
    order = sorted(rows, key=lambda row: list(words).index(row[0]))
    items = "".join(f'<li class="{kind}-f"><b>{words[kind]}</b>{text}</li>' for kind, text in order)
    return f'<ul class="findings">{items}</ul>'


def dot(label: int) -> str:
    """A dot in the colour of a class."""
    return f'<span class="dot" style="background:{class_colour(label).css}"></span>'


def more(summary: str, body: str) -> str:
    """Something that opens when it is asked for; on paper it is open."""
    return f"<details><summary>{summary}</summary>{body}</details>"


_FONT = "font:13px/1.45 system-ui,sans-serif"
_BOX = f"{_FONT};max-width:960px;margin:4px 0"
_SOFT = "opacity:.72"
_CELL = "padding:2px 14px 2px 0;text-align:left;background:none;border:0"
_ROW = f"{_FONT};display:flex;flex-wrap:wrap;gap:10px;align-items:flex-start;margin:8px 0 0"
_NAME = "max-width:240px;overflow-wrap:anywhere;font-size:12px;line-height:1.3"
_DOT = "display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:4px"
_NAMED = 12


def box(title: str, *parts: str, soft: str = "") -> str:
    """A heading with what belongs to it.

    Args:
        title: text of the heading.
        parts: what is below, ready as HTML.
        soft: text beside the heading.
    """
    beside = f' <span style="{_SOFT}">{html.escape(soft)}</span>' if soft else ""
    return f'<div style="{_BOX}"><b>{html.escape(title)}</b>{beside}{"".join(parts)}</div>'


def line(*parts: str) -> str:
    """A line of what is ready as HTML."""
    return f'<div style="margin-top:3px">{" ".join(parts)}</div>'


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table; cells are ready as HTML."""
    top = "".join(f'<th style="{_CELL};{_SOFT}">{html.escape(cell)}</th>' for cell in head)
    lines = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in body)
    return f'<table style="border-collapse:collapse;margin-top:6px"><tr>{top}</tr>{lines}</table>'


def class_names(labels: Iterable[int], classes: Sequence[str]) -> str:
    """Classes by their numbers, each with its colour: the first dozen."""
    numbers = list(labels)
    named = [
        f'<span style="{_DOT};background:{class_colour(label).css}"></span>{escape(classes[label], 40)}'
        for label in numbers[:_NAMED]
    ]
    return ", ".join([*named, *([f"+{len(numbers) - _NAMED}"] if len(numbers) > _NAMED else [])]) or "no class"


def tile(url: str, words: str, *captions: str) -> str:
    """A picture with lines below it.

    Args:
        url: of the picture, `data:`; empty where there is none to show.
        words: what it shows, for those who do not see it.
        captions: lines, ready as HTML.
    """
    picture = (
        f'<img src="{url}" alt="{escape_attribute(words, 200)}" style="display:block">' if url else "cannot be shown"
    )
    told = "".join(f"<div>{caption}</div>" for caption in captions)
    return f'<div style="{_NAME}">{picture}{told}</div>'


def gallery(tiles: Iterable[str]) -> str:
    """Pictures side by side."""
    return f'<div style="{_ROW}">{"".join(tiles)}</div>'


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{text}</td>'
