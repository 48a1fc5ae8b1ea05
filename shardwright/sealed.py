"""JSON files that carry a digest of themselves, so that damage to them shows though no manifest knows their hash.

`build.json` and `lineage.json` may differ between equal datasets, so their hashes can be in no manifest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shardwright.fingerprint import fingerprint

_DIGEST = "digest"


def sealed_json(row: Mapping[str, Any]) -> str:
    """The text of a sealed file: `row` with `digest`, the fingerprint of the rest, indented for people."""
    value = {**row, _DIGEST: fingerprint(dict(row))}
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def is_whole(text: str) -> bool:
    """Whether a text is, to the byte, what `sealed_json` made."""
    try:
        row = json.loads(text)
        del row[_DIGEST]
        return sealed_json(row) == text
    except (ValueError, TypeError, KeyError):
        return False
