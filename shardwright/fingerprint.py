"""Fingerprints of values, and JSON files that contain a checksum of themselves.

Equal values have equal fingerprints; clocks, folders and the order of keys have no effect.

`build.json`, `lineage.json` and the files of `origins/` may differ between equal datasets, so no manifest can contain
their hashes. Their own checksum detects damage.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shardwright.untrusted import parse_untrusted_json

_CHUNK = 1 << 20
# `json.dumps` with options makes one for every call, several times an image.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> str:
    """Returns JSON with sorted keys, no spaces and only the necessary escapes; refuses NaN and infinities."""
    return _ENCODER.encode(value)


def fingerprint(value: Any) -> str:
    """Returns the SHA-256 of the canonical JSON of plain values, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def sha256_bytes(data: bytes) -> str:
    """Returns the SHA-256 of bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file's bytes, as 64 hex digits, read in pieces of 1 MiB."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def text_number(text: str) -> int:
    """Returns a number of 63 bits, from 1, that represents a text where millions of texts take too much memory."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big") >> 1 | 1


_DIGEST = "digest"
_CHECKSUM = "sha256"


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
    """Yields lines, with their ends, and a last one with the SHA-256 of all before."""
    total = hashlib.sha256()
    for line in lines:
        total.update(line.encode("utf-8"))
        yield line
    yield canonical_json({_CHECKSUM: total.hexdigest()}) + "\n"


def read_checksummed_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the lines that `checksummed_lines` made; checks them after the last one.

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
    if before.decode("utf-8") != canonical_json({_CHECKSUM: total.hexdigest()}) + "\n":
        raise ValueError("the checksum on its last line does not match the lines before it")
