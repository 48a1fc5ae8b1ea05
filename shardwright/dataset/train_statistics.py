"""`statistics.json` of a transformed dataset: what was measured over the train split, and what holds for every image.

A dataset of all its records keeps the file. A subset or a merge has other figures, which nobody has measured. It keeps
what holds for every image: the loader needs the size, and the exported model repeats the ingest's changes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from shardwright.errors import DatasetError, UsageError
from shardwright.storage import read_bytes
from shardwright.untrusted.json_text import (
    anything,
    count,
    listed,
    mapped,
    measured,
    optional,
    parse_untrusted_json,
    record,
    text,
)

STATISTICS_FILE = "statistics.json"
# Measured over the train split.
MEASURED = ("mean", "std")
_SIZE, _POLICY, _INGESTED = "size", "policy", "ingested"
# Options of the ingest that a merge of ingested datasets compares, too.
_COMPARED = ("encoding", "orientation", "resize", "size")
_CHECK = record(
    {},
    {
        "mean": listed(measured, length=3),
        "std": listed(measured, length=3),
        "class_frequency": mapped(measured),
        "pixel_frequency": mapped(measured),
        _SIZE: optional(listed(count, length=2)),
        _POLICY: text,
        _INGESTED: mapped(anything),
    },
    closed=False,
)


def read_statistics(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the statistics of a transformed dataset; a dataset of a part of its records has no measured ones.

    Raises:
        DatasetError: there are no statistics.
    """
    file = os.path.join(directory, STATISTICS_FILE)
    try:
        return dict(_CHECK(parse_untrusted_json(read_bytes(file)), ""))
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None


def dataset_statistics(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the statistics that the transform measured over the train split.

    Args:
        directory: a transformed dataset, or the TransformGraph made with it.

    Returns:
        `mean` and `std` per channel (RGB, 0..255 scale), `class_frequency` and `pixel_frequency` by class name, `size`
        [height, width], `policy`.

    Raises:
        DatasetError: there are no statistics.
    """
    found = read_statistics(directory)
    if missing := [name for name in MEASURED if name not in found]:
        file = os.path.join(directory, STATISTICS_FILE)
        raise _unreadable(file, f"no {' and no '.join(missing)}: a subset or a merge is not measured")
    return found


def _unreadable(file: str, problem: object) -> DatasetError:
    return DatasetError(
        f"{file}: no readable statistics ({problem}). Give the folder that ImageTransform wrote, or other statistics."
    )


def derived_statistics(sources: Sequence[str], *, whole: bool) -> str | None:
    """Returns the statistics of a dataset that is made of the records of others, as text.

    Args:
        sources: folders or URLs of transformed datasets.
        whole: whether it has all records of its only source.

    Returns:
        The text; `None` if a source has no statistics.

    Raises:
        UsageError: ingests have changed the images of the sources in different ways.
    """
    found = []
    for source in sources:
        try:
            found.append(read_statistics(source))
        except DatasetError:
            return None
    if whole:
        return _as_text(found[0])
    first = found[0].get(_INGESTED, {})
    for source, other in zip(sources, (one.get(_INGESTED, {}) for one in found), strict=True):
        for name in _COMPARED:
            if other.get(name) != first.get(name):
                raise UsageError(
                    f"{source}: the images.{name} of its ingest is {_shown(other, name)}, and that of {sources[0]} is "
                    f"{_shown(first, name)}. Make both with the same configuration."
                )
    kept = {name: found[0][name] for name in (_SIZE, _POLICY, _INGESTED) if name in found[0]}
    if any(other.get(_SIZE) != found[0].get(_SIZE) for other in found):
        kept[_SIZE] = None
    return _as_text(kept)


def _shown(options: Mapping[str, Any], name: str) -> str:
    return repr(options[name]) if name in options else "the default"


def _as_text(value: dict[str, Any]) -> str:
    """Returns the text as the transform writes it."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
