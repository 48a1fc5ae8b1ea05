"""Checks of single values; `path` is where they stand in the YAML file."""

from __future__ import annotations

from shardwright.errors import ConfigError


def one_of(path: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuses a value that is not one of those allowed."""
    if value not in allowed:
        raise ConfigError(path, f"{value!r} is not known", f"Use one of: {', '.join(allowed)}.")


def at_least(path: str, value: float, least: float) -> None:
    """Refuses a number below `least`, and NaN."""
    if not value >= least:
        raise ConfigError(path, f"{value!r} is too small", f"Use at least {least}.")


def between(path: str, value: float, low: float, high: float) -> None:
    """Refuses a number outside `low` to `high`, and NaN."""
    if not low <= value <= high:
        raise ConfigError(path, f"{value!r} is out of range", f"Use a value from {low} to {high}.")


def may_be_named(name: str) -> bool:
    """Whether a class may be called so: its name becomes a part of features' names, in UTF-8."""
    return "/" not in name and not any(ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF for c in name)
