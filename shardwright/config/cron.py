"""Cron expressions of schedules: five fields, after a time zone if wanted.

Source: `cron` of `projects.locations.schedules` in Vertex AI's API, and en.wikipedia.org/wiki/Cron.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shardwright.errors import ConfigError

_FIX = "Write `TZ=Europe/Paris 0 3 1 * *`."
_ZONE = re.compile(r"(CRON_)?TZ=(.*)")
_ITEM = re.compile(r"(\*|\?|([0-9A-Za-z]+)(-([0-9A-Za-z]+))?)(/[1-9][0-9]?)?")


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
# The name of a field, its least and largest number, and the names of its numbers.
_FIELDS: tuple[tuple[str, int, int, Sequence[str]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)


def check_cron(path: str, cron: str) -> None:
    """Refuses an expression that a schedule cannot have."""
    fields = cron.split()
    zone = _ZONE.fullmatch(fields[0]) if fields else None
    if zone is not None:
        fields = fields[1:]
    if len(fields) != len(_FIELDS):
        raise ConfigError(path, f"{cron!r} has no five fields", _FIX)
    if zone is not None and not (_opens(zone[2]) or not _opens("Europe/Paris")):
        raise ConfigError(path, f"{zone[2]!r} is not a time zone", "Use a name of the IANA, such as Europe/Paris.")
    for (name, least, most, names), text in zip(_FIELDS, fields, strict=True):
        if not all(_is_item(item, range(least, most + 1), names) for item in text.split(",")):
            numbers = f"numbers from {least} to {most}, *, lists, ranges and steps"
            raise ConfigError(path, f"{text!r} cannot be the {name}", f"Use {numbers}.")


def _is_item(item: str, numbers: range, names: Sequence[str]) -> bool:
    """Returns whether one of the values between commas is well formed."""
    match = _ITEM.fullmatch(item)
    if match is None:
        return False
    ends = [text.upper() for text in (match[2], match[4]) if text is not None]
    values = [numbers[names.index(end)] if end in names else int(end) if end.isdecimal() else -1 for end in ends]
    return all(value in numbers for value in values) and values == sorted(values)


def _opens(name: str) -> bool:
    # Only a schedule needs it.
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        # A KeyError for an unknown name, an OSError for a folder such as Europe.
        return False
    return True
