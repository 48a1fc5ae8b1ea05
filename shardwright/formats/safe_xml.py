"""XML that anyone may have written: elements are reported as they come, and nothing else ever happens.

A document type is refused, so no entity is ever expanded and nothing else is ever opened. Depth, length of texts and
tags, and the number of elements are limited; the size of the file is limited by who opens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol
from xml.parsers import expat

from shardwright.errors import AnnotationError
from shardwright.untrusted.budget import Budget, OverBudget

# CVAT's shortest box has 6 in 52 bytes. The header is a tag, which has a mask's run lengths as an attribute.
BUDGET = Budget("elements and attributes", objects=500_000, bytes_each=8, header=8 << 20, depth=16)
# What the ledger calls a file that is not read.
BAD_XML = "bad_xml"
_LONGEST = 200
# Formats have some ten names of elements. Each is kept.
_MOST_NAMES = 1000


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
        AnnotationError: it is not XML, has a document type, is nested too deep, or has far more elements than
            a real one (code `bad_xml`).
    """
    parser = expat.ParserCreate()
    reader = _Reader(elements, parser)
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.reject_doctype
    parser.buffer_text = True
    try:
        size = 0
        for chunk in chunks:
            parser.Parse(chunk, False)
            size += len(chunk)
            # The parser begins a tag that has not ended anew with each chunk.
            BUDGET.check_header(size - parser.CurrentByteIndex, "tag or comment")
        parser.Parse(b"", True)
    except AnnotationError:
        raise
    except OverBudget as error:
        raise AnnotationError(str(error), BAD_XML) from None
    except (expat.ExpatError, LookupError, ValueError) as error:  # The last two for unknown encodings.
        raise AnnotationError(f"it is not XML ({str(error)[:_LONGEST]})", BAD_XML) from None
    finally:  # The reader has the parser: without its handlers, both are freed at once, file by file.
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.StartDoctypeDeclHandler = None


class _Reader:
    """Keeps the path of the current element."""

    def __init__(self, elements: Elements, parser: expat.XMLParserType) -> None:
        self._elements = elements
        self._parser = parser
        self._count = 0
        self._names: set[str] = set()
        self._path: list[str] = []
        self._text = ""

    def reject_doctype(self, *_: object) -> None:
        raise AnnotationError("it has a document type (<!DOCTYPE>), which may hide entities; remove it", BAD_XML)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1 + len(attributes)
        if self._count > BUDGET.objects:
            BUDGET.check_objects(self._count, self._parser.CurrentByteIndex)
        self._names.add(name)
        if len(self._names) > _MOST_NAMES:
            raise AnnotationError(f"it has elements of more than {_MOST_NAMES:,} names", BAD_XML)
        self._path.append(name)
        self._text = ""
        if len(self._path) > BUDGET.depth:
            raise AnnotationError(f"its elements are nested more than {BUDGET.depth} deep", BAD_XML)
        self._elements.start(tuple(self._path), attributes)

    def text(self, text: str) -> None:
        self._text += text[: _LONGEST - len(self._text)]

    def end(self, name: str) -> None:
        del name
        self._elements.end(tuple(self._path), self._text.strip())
        self._path.pop()
        self._text = ""
