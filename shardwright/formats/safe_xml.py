"""XML that anyone may have written: elements are reported as they come, and nothing else ever happens.

A document type is refused, so no entity is ever expanded and nothing else is ever opened. Depth and length of texts are
limited; the size of the file is limited by who opens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol
from xml.parsers import expat

from shardwright.images.boxes import AnnotationError

_DEEPEST = 16
_LONGEST = 200


class XmlError(AnnotationError):
    """A file is not XML, or not XML that is read; the message states what is wrong."""

    code = "bad_xml"


class Elements(Protocol):
    """Takes elements as they come; `path` has the names of those around them and their own."""

    def start(self, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        """Takes an element that begins."""

    def end(self, path: tuple[str, ...], text: str) -> None:
        """Takes an element that ends, with the first characters of its text, without blanks around it."""


def parse_xml(chunks: Iterable[bytes], elements: Elements) -> None:
    """Reads a document.

    Args:
        chunks: its bytes.
        elements: gets its elements.

    Raises:
        XmlError: it is not XML, has a document type, or is nested too deep.
    """
    reader = _Reader(elements)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.reject_doctype
    parser.buffer_text = True
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except AnnotationError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:  # The last two for unknown encodings.
        raise XmlError(f"it is not XML ({str(error)[:_LONGEST]})") from None


class _Reader:
    """Keeps the path of the current element."""

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self._path: list[str] = []
        self._text = ""

    def reject_doctype(self, *_: object) -> None:
        raise XmlError("it has a document type (<!DOCTYPE>), which may hide entities; remove it")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._text = ""
        if len(self._path) > _DEEPEST:
            raise XmlError(f"its elements are nested more than {_DEEPEST} deep")
        self._elements.start(tuple(self._path), attributes)

    def text(self, text: str) -> None:
        self._text += text[: _LONGEST - len(self._text)]

    def end(self, name: str) -> None:
        del name
        self._elements.end(tuple(self._path), self._text.strip())
        self._path.pop()
        self._text = ""
