"""Cron expressions of schedules: five fields, after a time zone if wanted.

Source: `cron` of `projects.locations.schedules` in Vertex AI's API, and en.wikipedia.org/wiki/Cron.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from shardwright.errors import ConfigError

_FIX = "Write `TZ=Europe/Paris 0 3 1 * *`."
_ZONE = re.compile(r"(CRON_)?TZ=(.*)")
_ITEM = re.compile(r"(\*|\?|([0-9A-Za-z]+)(-([0-9A-Za-z]+))?)(/[1-9][0-9]?)?")


class _Field(NamedTuple):
    """A field: its name in messages, its least and largest number, and the names of the numbers."""

    name: str
    least: int
    most: int
    names: Sequence[str] = ()

    def number(self, text: str) -> int | None:
        """Returns the number that a text means."""
        if text.upper() in self.names:
            return self.least + self.names.index(text.upper())
        return int(text) if text.isdecimal() and self.least <= int(text) <= self.most else None

    def has(self, item: str) -> bool:
        """Returns whether one of the values between commas is well formed."""
        match = _ITEM.fullmatch(item)
        if match is None:
            return False
        first, last = (None if text is None else self.number(text) for text in (match[2], match[4]))
        if match[2] is None:
            return True
        return first is not None and (match[4] is None or (last is not None and first <= last))


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)


def check_cron(path: str, cron: str) -> None:
    """Refuses an expression that a schedule cannot have."""
    fields = cron.split()
    zone = _ZONE.fullmatch(fields[0]) if fields else None
    if zone is not None:
        fields = fields[1:]
    if len(fields) != len(_FIELDS):
        raise ConfigError(path, f"{cron!r} has no five fields", _FIX)
    if zone is not None and not _is_zone(zone[2]):
        raise ConfigError(path, f"{zone[2]!r} is not a time zone", "Use a name of the IANA, such as Europe/Paris.")
    for field, text in zip(_FIELDS, fields, strict=True):
        if not all(field.has(item) for item in text.split(",")):
            numbers = f"numbers from {field.least} to {field.most}, *, lists, ranges and steps"
            raise ConfigError(path, f"{text!r} cannot be the {field.name}", f"Use {numbers}.")


def _is_zone(name: str) -> bool:
    """Returns whether there is a time zone; True on a machine without the list of them."""
    return _opens(name) or not _opens("Europe/Paris")


def _opens(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        # A KeyError for an unknown name, an OSError for a folder such as Europe.
        return False
    return True
