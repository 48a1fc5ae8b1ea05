"""Parts of what a notebook shows: styled in place, readable on light and dark, whatever comes in is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from shardwright.report.colours import class_colour
from shardwright.report.markup import attribute, shown

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
        f'<span style="{_DOT};background:{class_colour(label).css}"></span>{shown(classes[label], 40)}'
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
    picture = f'<img src="{url}" alt="{attribute(words, 200)}" style="display:block">' if url else "cannot be shown"
    told = "".join(f"<div>{caption}</div>" for caption in captions)
    return f'<div style="{_NAME}">{picture}{told}</div>'


def gallery(tiles: Iterable[str]) -> str:
    """Pictures side by side."""
    return f'<div style="{_ROW}">{"".join(tiles)}</div>'


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{text}</td>'
