"""Deliveries of data: which folders are spans and versions, and which of them are read. After TFX's ExampleGen.

A *span* is one delivery, such as a day's; a *version* is a corrected copy of it. A path names them in the names of
folders: `photos/{SPAN}/v{VERSION}/*.jpg`, `photos/{YYYY}-{MM}-{DD}`. `{SPAN:4}` is padded with zeros to four digits.
The span of a date is the number of days since 1970-01-01. The newest span is the one of the highest number, and of each
span the version of the highest number is read. There are two differences from TFX. A name without the digits is ignored
(TFX ends the run), and two folders of one span and version are an error (TFX silently leaves one of them out).
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from shardwright.errors import ConfigError, UsageError

NEWEST: Final = "newest"
ALL: Final = "all"

_EPOCH = datetime.date(1970, 1, 1)
_MARK = re.compile(r"\{(?P<name>SPAN|VERSION|YYYY|MM|DD)(?P<modifier>:[^{}/]*)?\}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_WILDCARD = re.compile(r"[*?\[]")
_DATE_DIGITS = {"YYYY": 4, "MM": 2, "DD": 2}


class Span(NamedTuple):
    """A version of a span that was found; they sort from old to new.

    Attributes:
        span: its number.
        version: its number, 0 where the path names none.
        folder: the folder names with these numbers, relative to the folder before the first of them.
        path: the whole path.
    """

    span: int
    version: int
    folder: str
    path: str


@dataclass(frozen=True)
class SpanPath:
    """A path that names spans.

    Attributes:
        option: its key in the configuration.
        path: the path.
        root: the folder before the first name with a mark.
        names: patterns of the names from there to the last with a mark.
        rest: what comes below, perhaps empty.
        dated: whether spans are dates.
        versioned: whether there are versions.
    """

    option: str
    path: str
    root: str
    names: tuple[str, ...]
    rest: str
    dated: bool
    versioned: bool

    @staticmethod
    def parse(option: str, path: str) -> SpanPath | None:
        """Reads a path; `None` where it names no span.

        Raises:
            ConfigError: marks are missing, doubled or malformed, or a wildcard is in or before a name with a mark.
        """
        marks = [match["name"] for match in _MARK.finditer(path)]
        if not marks:
            return None
        _check_marks(option, path, marks)
        segments = path.split("/")
        marked = [i for i, segment in enumerate(segments) if _MARK.search(segment)]
        first, last = marked[0], marked[-1]
        if any(_WILDCARD.search(segment) for segment in segments[: last + 1]):
            raise ConfigError(option, f"{path!r} has a wildcard before or next to a mark", "Put wildcards below it.")
        return SpanPath(
            option,
            path,
            "/".join(segments[:first]) or ("/" if path.startswith("/") else "."),
            tuple(segments[first : last + 1]),
            "/".join(segments[last + 1 :]),
            "YYYY" in marks,
            "VERSION" in marks,
        )

    def find(self, list_names: Callable[[str], Iterable[str]]) -> list[Span]:
        """Returns all deliveries, from old to new.

        Args:
            list_names: lists the names in a folder; none where there is no such folder.

        Raises:
            UsageError: a folder's name is a date that no calendar has, or two folders are the same.
        """
        found = sorted(self._below(self.root, 0, {}, (), list_names))
        for one, other in itertools.pairwise(found):
            if one[:2] == other[:2]:
                raise UsageError(
                    f"{self.option}: {one.folder} and {other.folder} are both {self.called(one)}. Delete one of "
                    "the two folders."
                )
        return found

    def called(self, delivery: Span) -> str:
        """Returns a delivery's name for users: `span 7`, `span 19844 (2024-05-01), version 2`."""
        name = f"span {delivery.span}"
        if self.dated:
            name += f" ({_EPOCH + datetime.timedelta(delivery.span)})"
        return f"{name}, version {delivery.version}" if self.versioned else name

    def _below(
        self,
        folder: str,
        depth: int,
        values: dict[str, int],
        names: tuple[str, ...],
        list_names: Callable[[str], Iterable[str]],
    ) -> Iterable[Span]:
        if depth == len(self.names):
            path = f"{folder}/{self.rest}" if self.rest else folder
            yield Span(self._span(values, "/".join(names)), values.get("VERSION", 0), "/".join(names), path)
            return
        pattern = self.names[depth]
        matcher = re.compile(_expression(pattern))
        for name in list_names(folder) if _MARK.search(pattern) else [pattern]:
            match = matcher.fullmatch(name)
            if match is not None:
                read = {**values, **{mark: int(digits) for mark, digits in match.groupdict().items()}}
                below = f"{folder.rstrip('/')}/{name}"
                yield from self._below(below, depth + 1, read, (*names, name), list_names)

    def _span(self, values: dict[str, int], folder: str) -> int:
        if not self.dated:
            return values["SPAN"]
        try:
            return days(datetime.date(values["YYYY"], values["MM"], values["DD"]))
        except ValueError as error:
            raise UsageError(f"{self.option}: {folder} is not a date ({error}). Rename the folder.") from None


def days(date: datetime.date) -> int:
    """Returns the days since 1970-01-01: the span of a date."""
    return (date - _EPOCH).days


@dataclass(frozen=True)
class Choice:
    """Which numbers are read: `newest`, `all`, or all from `first` to `last`.

    Attributes:
        text: `newest`, `all`, `7` or `7-9`, as `input.span` and `input.version` hold it.
        first: lowest number.
        last: highest, `None` without an end.
    """

    text: str
    first: int = 0
    last: int | None = None

    @staticmethod
    def written(raw: object) -> object:
        """Returns the text for a number, a date, or a list of two of them in YAML; all else stays as it is.

        A date may be in quotes.
        """
        if isinstance(raw, list) and len(raw) == 2:
            first, last = map(Choice.written, raw)
            return f"{first}-{last}"
        if isinstance(raw, datetime.date) and not isinstance(raw, datetime.datetime):
            return str(days(raw))
        if isinstance(raw, str) and _DATE.fullmatch(raw):
            with suppress(ValueError):  # No calendar has it: `parse` shows it as it is written.
                return str(days(datetime.date.fromisoformat(raw)))
        if isinstance(raw, float) and raw.is_integer():
            return str(int(raw))
        return str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw

    @staticmethod
    def parse(option: str, text: str) -> Choice:
        """Reads `newest`, `all`, `7` or `7-9`.

        Raises:
            ConfigError: it is something else.
        """
        if text in (NEWEST, ALL):
            return Choice(text)
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", text, re.ASCII)
        if match is None:
            raise ConfigError(
                option, f"{text!r} is not a known value", "Write newest, all, a number, a date or [first, last]."
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ConfigError(option, f"{text} ends before it begins", "Write [first, last].")
        return Choice(text, first, last)

    def takes(self, number: int) -> bool:
        """Returns whether a number may be read; with `newest` any may."""
        return self.first <= number and (self.last is None or number <= self.last)

    @property
    def single(self) -> bool:
        """Returns whether at most one number is read."""
        return self.text == NEWEST or self.first == self.last


def candidates(found: Sequence[Span], span: Choice, version: Choice) -> list[list[Span]]:
    """Returns the deliveries that may be read: spans from old to new, the newest version of each first."""
    spans: dict[int, list[Span]] = {}
    for delivery in sorted(found, reverse=True):
        if span.takes(delivery.span) and version.takes(delivery.version):
            spans.setdefault(delivery.span, []).append(delivery)
    return [spans[number] for number in sorted(spans)]


def _check_marks(option: str, path: str, marks: Sequence[str]) -> None:
    dates = [mark for mark in marks if mark in _DATE_DIGITS]
    if dates and "SPAN" in marks:
        raise ConfigError(option, f"{path!r} has both a span and a date", "Keep {SPAN} or the date.")
    if dates and sorted(dates) != sorted(_DATE_DIGITS):
        raise ConfigError(option, f"{path!r} has an incomplete date", "Write each of {YYYY}, {MM} and {DD} once.")
    for mark in ("SPAN", "VERSION"):
        if marks.count(mark) > 1:
            raise ConfigError(option, f"{path!r} has {{{mark}}} more than once", "Write it once.")
    if marks == ["VERSION"]:
        raise ConfigError(option, f"{path!r} has a version without a span", "Write {SPAN} or a date too.")
    for match in _MARK.finditer(path):
        if match["modifier"] and (
            match["name"] in _DATE_DIGITS or not re.fullmatch(r":[1-9][0-9]?", match["modifier"], re.ASCII)
        ):
            raise ConfigError(option, f"{match[0]} has no width", "Write for example {SPAN:4}.")


def _expression(pattern: str) -> str:
    """Returns a regular expression for a name, with a group for each mark."""
    parts, end = [], 0
    for match in _MARK.finditer(pattern):
        width = _DATE_DIGITS.get(match["name"]) or (match["modifier"] or "")[1:]
        digits = f"[0-9]{{{width}}}" if width else "[0-9]+"
        parts += [re.escape(pattern[end : match.start()]), f"(?P<{match['name']}>{digits})"]
        end = match.end()
    return "".join(parts) + re.escape(pattern[end:])
