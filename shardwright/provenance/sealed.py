"""JSON files that carry a digest of themselves, so that damage to them shows though no manifest knows their hash.

`build.json`, `lineage.json` and what lies in `origins/` may differ between equal datasets, so their hashes can be in no
manifest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shardwright.fingerprint import canonical_json, fingerprint
from shardwright.foreign_json import foreign_json

_DIGEST = "digest"
_SEAL = "sha256"


def sealed_json(row: Mapping[str, Any]) -> str:
    """The text of a sealed file: `row` with `digest`, the fingerprint of the rest, indented for people."""
    value = {**row, _DIGEST: fingerprint(dict(row))}
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def is_whole(text: str) -> bool:
    """Whether a text is, to the byte, what `sealed_json` made."""
    try:
        row = foreign_json(text)
        del row[_DIGEST]
        return sealed_json(row) == text
    except (ValueError, TypeError, KeyError):
        return False


def sealed_lines(lines: Iterable[str]) -> Iterator[str]:
    """Lines, with their ends, and a last one with the SHA-256 of all before."""
    total = hashlib.sha256()
    for line in lines:
        total.update(line.encode("utf-8"))
        yield line
    yield canonical_json({_SEAL: total.hexdigest()}) + "\n"


def unsealed_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines that `sealed_lines` sealed, one by one; that all are whole is known when the last one was taken.

    Raises:
        ValueError: they are damaged, or end too early.
    """
    total = hashlib.sha256()
    before = b""
    for line in lines:
        if before:
            total.update(before)
            yield before
        before = line
    if before.decode("utf-8") != canonical_json({_SEAL: total.hexdigest()}) + "\n":
        raise ValueError("the seal on its last line does not fit what is before it")
