"""Where an input lies, told from a folder of its own: a compiled pipeline is given that folder when it runs."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable
from dataclasses import asdict, replace

from shardwright.errors import UsageError
from shardwright.fingerprint import canonical_json
from shardwright.ingest.recipe import InputLocation

# A name with one of these stands for several, and cannot be part of a folder that is given at run time.
_MARKS = frozenset("*?[{")


def relative_places(location: InputLocation) -> tuple[str, InputLocation]:
    """The deepest folder that holds everything of an input, and the places below it.

    Args:
        location: absolute places, all on one machine or in one bucket.

    Raises:
        UsageError: they have no folder in common.
    """
    places = [location.images, location.labels, location.previous, location.earlier, *location.lists.values()]
    parents = [_fixed_part(place) for place in places if place is not None]
    shared = parents[0]
    for parent in parents[1:]:
        same = [a == b for a, b in zip(shared, parent, strict=False)]
        shared = shared[: same.index(False) if False in same else len(same)]
    root = "/".join(shared)
    if root in ("", "gs:", "gs:/", "s3:", "s3:/"):
        shown = ", ".join(place for place in places if place is not None)
        raise UsageError(f"input: {shown} have no folder in common. Put them into one folder or bucket.")
    return root, _mapped(location, lambda place: place[len(root) + 1 :])


def absolute_places(root: str, location: InputLocation) -> InputLocation:
    """The places below a folder as absolute ones."""
    return _mapped(location, lambda place: posixpath.join(root, place))


def location_json(location: InputLocation) -> str:
    """What `InputLocation.from_json` reads, canonical."""
    places = json.loads(json.dumps(asdict(location)))
    if location.earlier is None:
        del places["earlier"]  # Pipelines that know nothing of it keep their cache.
    return canonical_json(places)


def _fixed_part(place: str) -> list[str]:
    """The names above a place's last one, up to the first that stands for several."""
    names = place.split("/")[:-1]
    marked = [i for i, name in enumerate(names) if _MARKS & set(name)]
    return names[: marked[0]] if marked else names


def _mapped(location: InputLocation, change: Callable[[str], str]) -> InputLocation:
    def optional(place: str | None) -> str | None:
        return None if place is None else change(place)

    return replace(
        location,
        images=change(location.images),
        labels=optional(location.labels),
        previous=optional(location.previous),
        earlier=optional(location.earlier),
        lists={split: change(place) for split, place in location.lists.items()},
    )
