"""Finds images of an input that are the same, by bytes, pixels or looks, and applies the options of `duplicates`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from shardwright.config import DuplicatesConfig
from shardwright.duplicates.clusters import equal_clusters, near_clusters
from shardwright.duplicates.decision import DuplicateDecision, DuplicateRule, decide, groups_of
from shardwright.duplicates.hashes import BITS, ImageHashes, distance

EXACT_DUPLICATE = "exact_duplicate"
SAME_BYTES, SAME_PIXELS = "has the same bytes as", "displays the same pixels as"
_ALIKE = r"its \w+ hash differs in \d+ of \d+ bits from that of"
_END = "(?:, which is kept(?:$|;| in )|, but its labels are )"
_REASON = re.compile(rf"(?:({SAME_BYTES})|{SAME_PIXELS}|{_ALIKE}) (.+){_END}", re.DOTALL)
_OPTIONS = {"exact": "exact", "pixel": "pixels", "near": "near.action"}
_Firsts = npt.NDArray[np.int64]
_Alive = npt.NDArray[np.bool_]


class PixelHashes(Protocol):
    """The hashes of the pixels of n images."""

    @property
    def pixels(self) -> npt.NDArray[Any]:
        """The hash of all pixels of each image."""
        ...

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """The columns of `ImageHashes`, uint64 (n, 4)."""
        ...

    @property
    def sound(self) -> npt.NDArray[np.bool_]:
        """Which images can be decoded, bool (n,)."""
        ...


def find_duplicates(
    options: DuplicatesConfig,
    keys: Sequence[str],
    digests: npt.NDArray[Any],
    probed: PixelHashes | None,
    alive: _Alive,
    labels_of: Callable[[Iterable[int]], Mapping[int, tuple[str, str]]],
    *,
    predefined: bool = False,
) -> DuplicateDecision:
    """Finds images that are the same and decides about them.

    Args:
        options: `duplicates` of a recipe.
        keys: sorted keys of all images, n of them.
        digests: the hash of each file, (n,) or (n, bytes).
        probed: the hashes of their pixels; needed where the options use them.
        alive: which images are going to be written so far, bool (n,); the files of all of them can be read.
        labels_of: positions -> position -> the classes of an image and a word for its masks.
        predefined: whether the input states the split of each image.

    Raises:
        CheckFailed: there are duplicates or conflicts, and they are not to be.
    """
    found: list[tuple[str, str, Callable[[int, int], str], _Firsts]] = [
        ("exact", options.exact, _same_bytes, equal_clusters(digests, alive))
    ]
    if options.pixels is not None:
        assert probed is not None
        found.append(("pixel", options.pixels, _same_pixels, equal_clusters(probed.pixels, alive & probed.sound)))
    if options.near is not None:
        assert probed is not None
        hashes = probed.hashes[:, ImageHashes._fields.index(options.near.hash)]
        firsts = _near(options, probed, alive & probed.sound)
        found.append(("near", options.near.action, _near_looks(options.near.hash, hashes), firsts))
    members = {i for _, _, _, firsts in found for group in groups_of(firsts, alive) for i in group.tolist()}
    labels = labels_of(members) if members else {}
    rules = [
        DuplicateRule(
            code=f"{name}_duplicate",
            option=f"duplicates.{_OPTIONS[name]}",
            firsts=firsts,
            action=action,
            relation=relation,
            # The masks of images that only look alike are rarely the same to the pixel.
            labels={i: classes if name == "near" else classes + masks for i, (classes, masks) in labels.items()},
        )
        for name, action, relation, firsts in found
    ]
    return decide(keys, alive, rules, options.conflicts, predefined=predefined)


class KeptImage(NamedTuple):
    """The image that is kept for a duplicate, or that was rejected with it for its labels.

    Attributes:
        key: its key.
        same_bytes: whether its file has the same bytes.
    """

    key: str
    same_bytes: bool


def kept_image_of(reason: str) -> KeptImage | None:
    """Returns the image that the reason of a ledger row names as the same; `None` if it names none."""
    match = _REASON.match(reason)
    return None if match is None else KeptImage(match[2], match[1] is not None)


def _same_bytes(image: int, other: int) -> str:
    del image, other
    return SAME_BYTES


def _same_pixels(image: int, other: int) -> str:
    del image, other
    return SAME_PIXELS


def _near_looks(name: str, hashes: npt.NDArray[np.uint64]) -> Callable[[int, int], str]:
    def relation(image: int, other: int) -> str:
        bits = distance(int(hashes[image]), int(hashes[other]))
        return f"its {name} hash differs in {bits} of {BITS} bits from that of"

    return relation


def _near(options: DuplicatesConfig, probed: PixelHashes, there: _Alive) -> _Firsts:
    assert options.near is not None
    positions = np.flatnonzero(there)
    columns = {name: probed.hashes[positions, i] for i, name in enumerate(ImageHashes._fields)}
    confirm = None if options.near.confirm_hash is None else columns[options.near.confirm_hash]
    limit = options.near.max_distance if options.near.confirm_distance is None else options.near.confirm_distance
    firsts = np.arange(len(there))
    firsts[positions] = positions[near_clusters(columns[options.near.hash], options.near.max_distance, confirm, limit)]
    return firsts
