"""Untrusted text on its way to a terminal or a log: control, direction and invisible characters become visible.

Credentials in URLs are removed on the same way.

`main` of every command replaces `sys.stdout` and `sys.stderr` with streams that escape, so no `print` can forget it.
"""

from __future__ import annotations

import logging
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from shardwright.text.redaction import redact

# Controls, format characters (direction, zero width), unpaired surrogates, line and paragraph separators.
_ESCAPED = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Letters and marks that have no shape.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\uffa0\U000e0100-\U000e01ef]")
_NOT_PLAIN = re.compile("[^\x20-\x7e]")
_NOT_PLAIN_LINES = re.compile("[^\x20-\x7e\n]")
_NOT_ASCII = re.compile("[^\x00-\x7f]")
# What a cell begins with that spreadsheets take for a formula, and not for a number.
_FORMULA = re.compile(r"[=+\-@\t\r](?!\d+(\.\d+)?$)")


def _as_json(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[i : i + 2].hex()}" for i in range(0, len(data), 2))


def escape(text: str, *, lines: bool = False, escaped: Callable[[str], str] = _as_json) -> str:
    r"""Returns a text without characters that steer a terminal, change the direction of writing or cannot be seen.

    Each is written as JSON writes it, for example `\u001b`, so a JSON document stays valid and keeps its meaning.

    Args:
        text: any text; unpaired surrogates are allowed.
        lines: keep line ends. Leave this out for a name, in which a line end could pass for a line of ours.
        escaped: returns what replaces a character, in the syntax of a document that is not JSON.
    """
    return (_NOT_PLAIN_LINES if lines else _NOT_PLAIN).sub(
        lambda match: escaped(match[0]) if _is_hidden(match[0]) else match[0], text
    )


def spreadsheet_cell(text: str) -> str:
    """Returns an untrusted text for a table that people open in a spreadsheet: none is taken for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def escape_message(text: str) -> str:
    """Returns a message whose further lines are indented, so that no name in it can pass for a message of ours."""
    return escape(redact(text), lines=True).replace("\n", "\n  ")


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _ESCAPED or _BLANK.match(character) is not None


class EscapingStream:
    """A text stream that escapes what is written to it; everything else is the stream's own.

    Args:
        stream: gets the escaped text.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unescaped = stream

    def write(self, text: str) -> int:
        """Writes a text, line ends as they are; characters that the stream's encoding lacks become numbers."""
        shown = escape(redact(text), lines=True)
        try:
            self.unescaped.write(shown)
        except UnicodeEncodeError:
            self.unescaped.write(_NOT_ASCII.sub(lambda match: _as_json(match[0]), shown))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)


def escaping(stream: TextIO) -> TextIO:
    """Returns a stream that escapes what is written to it."""
    return stream if isinstance(stream, EscapingStream) else cast(TextIO, EscapingStream(stream))


def unescaped(stream: TextIO) -> TextIO:
    """Returns the stream behind one that escapes, for progress bars and pictures that we draw."""
    return stream.unescaped if isinstance(stream, EscapingStream) else stream


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Makes standard output and standard error escape what is written to them while the block runs."""
    out, error = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = escaping(out), escaping(error)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, error


class EscapingFormatter(logging.Formatter):
    """A formatter of log records that escapes them and indents all but the first line of each."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the text of a record."""
        return escape_message(super().format(record))
