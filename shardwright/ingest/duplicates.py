"""Which images of an input are the same, by bytes, pixels or looks, and what `duplicates` says about it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from shardwright.config import DuplicatesConfig
from shardwright.dedup.clusters import equal_clusters, near_clusters
from shardwright.dedup.decide import Decision, Sameness, decide, groups_of
from shardwright.ingest.contents import Contents
from shardwright.ingest.inputs import SurveyedInput
from shardwright.probe.hashes import BITS, ImageHashes, distance
from shardwright.probe.known_files import KnownFiles

_MASKS_SHOWN = 8
_OPTIONS = {"exact": "exact", "pixel": "pixels", "near": "near_action"}

_Firsts = npt.NDArray[np.int64]
_Alive = npt.NDArray[np.bool_]


def find_duplicates(
    options: DuplicatesConfig,
    surveyed: SurveyedInput,
    contents: Contents,
    probed: KnownFiles | None,
    alive: _Alive,
) -> Decision:
    """Finds images that are the same and decides about them.

    Args:
        options: `duplicates` of a recipe.
        surveyed: the input.
        contents: hashes of its files.
        probed: what their pixels tell; needed where the options look at them.
        alive: which images of the listing are going to be written so far; the files of all of them can be read.

    Raises:
        CheckFailed: there are duplicates or conflicts, and they are not to be.
    """
    found: list[tuple[str, str, Callable[[int, int], str], _Firsts]] = [
        ("exact", options.exact, _same_bytes, equal_clusters(contents.digests(), alive))
    ]
    if options.pixels is not None:
        assert probed is not None
        found.append(("pixel", options.pixels, _same_pixels, equal_clusters(probed.pixels, alive & probed.sound)))
    if options.near is not None:
        assert probed is not None
        hashes = probed.hashes[:, ImageHashes._fields.index(options.near_hash)]
        firsts = _near(options, probed, alive & probed.sound)
        found.append(("near", options.near_action, _near_looks(options.near_hash, hashes), firsts))
    members = {i for _, _, _, firsts in found for group in groups_of(firsts, alive) for i in group.tolist()}
    labels = _labels(surveyed, members) if members else {}
    ways = [
        Sameness(
            code=f"{name}_duplicate",
            option=f"duplicates.{_OPTIONS[name]}",
            firsts=firsts,
            action=action,
            relation=relation,
            # Of pictures that only look alike, masks are rarely the same to the pixel.
            labels={i: classes if name == "near" else classes + masks for i, (classes, masks) in labels.items()},
        )
        for name, action, relation, firsts in found
    ]
    return decide(surveyed.listing.keys, alive, ways, options.conflicts)


def _same_bytes(image: int, other: int) -> str:
    del image, other
    return "has the same bytes as"


def _same_pixels(image: int, other: int) -> str:
    del image, other
    return "displays the same pixels as"


def _near_looks(name: str, hashes: npt.NDArray[np.uint64]) -> Callable[[int, int], str]:
    def relation(image: int, other: int) -> str:
        bits = distance(int(hashes[image]), int(hashes[other]))
        return f"its {name} hash differs in {bits} of {BITS} bits from that of"

    return relation


def _near(options: DuplicatesConfig, probed: KnownFiles, there: _Alive) -> _Firsts:
    assert options.near is not None
    positions = np.flatnonzero(there)
    columns = {name: probed.hashes[positions, i] for i, name in enumerate(ImageHashes._fields)}
    confirm = None if options.confirm is None else columns[options.confirm]
    limit = options.near if options.confirm_distance is None else options.confirm_distance
    firsts = np.arange(len(there))
    firsts[positions] = positions[near_clusters(columns[options.near_hash], options.near, confirm, limit)]
    return firsts


def _labels(surveyed: SurveyedInput, members: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Of each member its classes, and a word for its masks; both are for people to read and for us to compare."""
    said: dict[int, set[tuple[int, str]]] = {i: set() for i in members}
    # Where the annotations are files, their texts are names: these differ for the same masks, too.
    texts_count = surveyed.source.attachments() is None
    for annotation in surveyed.source.annotations():
        if annotation.image in said:
            said[annotation.image].add((annotation.label, annotation.text or "" if texts_count else ""))
    classes = surveyed.survey.classes
    labels = {}
    for i, rows in said.items():
        names = [classes[label] for label in sorted({label for label, _ in rows}) if label >= 0]
        masks = "\n".join(f"{label} {text}" for label, text in sorted(rows) if text)
        word = hashlib.sha256(masks.encode()).hexdigest()[:_MASKS_SHOWN]
        labels[i] = (", ".join(names) or "none", f" (masks {word})" if masks else "")
    return labels
