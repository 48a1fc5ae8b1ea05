"""`duplicates`: images that are the same, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from shardwright.config.checks import between, one_of
from shardwright.errors import ConfigError

KEEP, FIRST, FAIL = "keep", "first", "fail"
REPORT, REJECT = "report", "reject"
HASHES = ("average", "perceptual", "difference", "wavelet")
_ACTIONS = (KEEP, FIRST, FAIL)
# Beyond that, pictures that show other things are as near.
_FARTHEST = 16


@dataclass(frozen=True)
class DuplicatesConfig:
    """Images that are the same, and what becomes of them.

    `exact`: files of the same bytes. `pixels`: files that display the same pixels, whatever their format. `near`: the
    most bits in which the `near_hash` of two images may differ; those of a third hash, `confirm`, too, if one is named,
    which may differ in `confirm_distance` bits (by default as many). Each is followed by what is done: `keep` all, keep
    the `first` by key, or `fail`; for near ones, `near_action` says it. What is kept lies on one side of the split.

    `conflicts`: where labels of images that are the same disagree: `report` it, `reject` all of them, or `fail`.
    """

    PATH: ClassVar[str] = "duplicates"

    exact: str = KEEP
    pixels: str | None = None
    near: int | None = None
    near_action: str = KEEP
    near_hash: str = "perceptual"
    confirm: str | None = None
    confirm_distance: int | None = None
    conflicts: str = REPORT

    def __post_init__(self) -> None:
        one_of("duplicates.exact", self.exact, _ACTIONS)
        if self.pixels is not None:
            one_of("duplicates.pixels", self.pixels, _ACTIONS)
        one_of("duplicates.near_action", self.near_action, _ACTIONS)
        one_of("duplicates.near_hash", self.near_hash, HASHES)
        one_of("duplicates.conflicts", self.conflicts, (REPORT, REJECT, FAIL))
        if self.near is None:
            self._refuse_without("near", "near_action", "near_hash", "confirm")
        else:
            between("duplicates.near", self.near, 0, _FARTHEST)
        if self.confirm is None:
            self._refuse_without("confirm", "confirm_distance")
        else:
            one_of("duplicates.confirm", self.confirm, tuple(name for name in HASHES if name != self.near_hash))
        if self.confirm_distance is not None:
            between("duplicates.confirm_distance", self.confirm_distance, 0, _FARTHEST)
        self._refuse_keeping_less()

    @property
    def looks_at_pixels(self) -> bool:
        """Whether the bytes alone do not tell."""
        return self.pixels is not None or self.near is not None

    def _refuse_without(self, needed: str, *options: str) -> None:
        for option in options:
            value = getattr(self, option)
            if value != getattr(DuplicatesConfig, option):
                raise ConfigError(
                    f"duplicates.{option}", f"{value!r} without duplicates.{needed}", f"Set {needed} too, or remove it."
                )

    def _refuse_keeping_less(self) -> None:
        """Files of the same bytes are the same by any measure: whoever drops the wider kind drops the narrower."""
        kinds = [("exact", self.exact), ("pixels", self.pixels)]
        if self.near is not None:
            kinds.append(("near_action", self.near_action))
        given = [(name, action) for name, action in kinds if action is not None]
        for (narrow, kept), (wide, action) in pairwise(given):
            if kept == KEEP and action != KEEP:
                raise ConfigError(
                    f"duplicates.{wide}",
                    f"{action!r}, but {narrow} is 'keep', and whatever that finds is a duplicate of this kind too",
                    f"Set {narrow}: {action} too.",
                )
