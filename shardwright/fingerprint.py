"""Fingerprints: what is the same has the same one, whatever the clock, the folder or the order of keys."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

_CHUNK = 1 << 20
# `json.dumps` with options makes one for every call, several times an image.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no escapes beyond what JSON demands; NaN and infinities are refused."""
    return _ENCODER.encode(value)


def fingerprint(value: Any) -> str:
    """SHA-256 of the canonical JSON of plain values, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def sha256_bytes(data: bytes) -> str:
    """SHA-256 of bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits, read in pieces of 1 MiB."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def text_number(text: str) -> int:
    """A number from 1 that stands for a text where keeping a million texts would take too much memory: 63 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big") >> 1 | 1
