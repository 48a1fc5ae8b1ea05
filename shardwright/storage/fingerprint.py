"""Fingerprints of values, and JSON files that contain a checksum of themselves.

Equal values have equal fingerprints; clocks, folders and the order of keys have no effect.

`build.json`, `lineage.json` and the files of `origins/` may differ between equal datasets, so no manifest can contain
their hashes. Their own checksum detects damage.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shardwright.storage.checksum import checksum_of, digest_of, new_checksum
from shardwright.untrusted.json_text import parse_untrusted_json

_NUMBER_BYTES = 8
# `json.dumps` with options makes one for every call, several times an image.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_LINES_ENCODER = json.JSONEncoder(separators=("\n", ":"), ensure_ascii=False)
_DIGEST = "digest"
_CHECKSUM = "blake3"


def canonical_json(value: Any) -> str:
    """Returns JSON with sorted keys, no spaces and only the necessary escapes; refuses NaN and infinities."""
    return _ENCODER.encode(value)


def json_texts(values: Iterable[str | None]) -> list[str]:
    """Returns the canonical JSON of each of many texts, `null` for `None`, in a tenth of the time."""
    # No line end is within the JSON of a text.
    return _LINES_ENCODER.encode(list(values))[1:-1].split("\n")


def fingerprint(value: Any) -> str:
    """Returns the BLAKE3 of the canonical JSON of plain values, as 64 hex digits."""
    return checksum_of(canonical_json(value).encode("utf-8"))


def text_number(text: str) -> int:
    """Returns a number of 63 bits, from 1, that represents a text where millions of texts take too much memory."""
    return int.from_bytes(digest_of(text.encode("utf-8"))[:_NUMBER_BYTES], "big") >> 1 | 1


def checksummed_json(row: Mapping[str, Any]) -> str:
    """Returns the text of a file with a checksum: `row` with `digest`, the fingerprint of the rest, indented."""
    value = {**row, _DIGEST: fingerprint(dict(row))}
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def checksum_matches(text: str) -> bool:
    """Returns whether a text is, to the byte, one that `checksummed_json` made."""
    try:
        row = parse_untrusted_json(text)
        del row[_DIGEST]
        return checksummed_json(row) == text
    except (ValueError, TypeError, KeyError):
        return False


def checksummed_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yields lines, with their ends, and a last one with the BLAKE3 of all before."""
    total = new_checksum()
    for line in lines:
        total.update(line.encode("utf-8"))
        yield line
    yield canonical_json({_CHECKSUM: total.hexdigest()}) + "\n"


def read_checksummed_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the lines that `checksummed_lines` made; checks them after the last one.

    Raises:
        ValueError: they are damaged, or end too early.
    """
    total = new_checksum()
    before = b""
    for line in lines:
        if before:
            total.update(before)
            yield before
        before = line
    if before.decode("utf-8") != canonical_json({_CHECKSUM: total.hexdigest()}) + "\n":
        raise ValueError("the checksum on its last line does not match the lines before it")
