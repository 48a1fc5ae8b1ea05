"""`split.group`: what ties images together, so that they lie in one split: a patient, a scene, a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shardwright.config.split import GroupConfig
from shardwright.errors import CheckFailed
from shardwright.ingest.declared import column_fields
from shardwright.ingest.inputs import SurveyedInput
from shardwright.limited_pattern import LimitedPattern
from shardwright.storage import Refusal

CONFLICTING = "conflicting_groups"
_SHOWN = 3


@dataclass
class Groups:
    """The groups of an input's images.

    Attributes:
        names: group of every image of the listing, empty where nothing says one.
        refused: position -> why an image has none: it is said to be in two.
    """

    names: list[str]
    refused: dict[int, Refusal] = field(default_factory=dict)


def image_groups(options: GroupConfig, surveyed: SurveyedInput) -> Groups:
    """Finds the group of every image.

    Raises:
        ConfigError: there is no such column.
        CheckFailed: no image has a group.
    """
    keys = surveyed.listing.keys
    if options.pattern is not None:
        result = Groups(_by_pattern(options.pattern, keys))
        where = f"split.group.pattern: {options.pattern!r} finds no group in any image"
    else:
        assert options.column is not None
        result = _by_column(options.column, surveyed)
        where = f"split.group.column: {options.column!r} is empty for every image"
    if not any(result.names):
        raise CheckFailed(f"{where}; the images are {', '.join(keys[:_SHOWN])}. Mend it.")
    return result


def _by_pattern(pattern: str, keys: Sequence[str]) -> list[str]:
    found = map(LimitedPattern(pattern, "split.group.pattern").search, keys)
    return [(match[1] or "") if match else "" for match in found]


def _by_column(column: str, surveyed: SurveyedInput) -> Groups:
    keys = surveyed.listing.keys
    result = Groups([""] * len(keys))
    for position, text in column_fields(surveyed.source, "split.group.column", column):
        before = result.names[position]
        if text and before and text != before:
            reason = f"column {column} says {before!r} and {text!r}; an image has one group"
            result.refused[position] = Refusal(keys[position], CONFLICTING, reason)
        result.names[position] = before or text
    return result
