"""The results of commands as JSON, for `--json`."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardwright.dataset.manifest import Manifest

# Rejects that are printed, and ledger rows that are read to find them.
_SHOWN, _MOST_ROWS = 3, 100_000
# These may also be in a text, where nothing is replaced.
_NOT_FINITE = re.compile("NaN|Infinity")


def print_json(value: Any) -> None:
    """Prints plain values, or a dataclass of them, as JSON with an indent; paths are texts.

    JSON has no infinite numbers and no NaN: they are null.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False, default=_plain)
    if _NOT_FINITE.search(text):
        text = json.dumps(json.loads(text, parse_constant=lambda _: None), indent=1, ensure_ascii=False)
    print(text)


def _plain(value: Any) -> Any:
    plain = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return dataclasses.asdict(value) if plain else os.fspath(value)


def print_rejects(out: str | os.PathLike[str], manifest: Manifest) -> None:
    """Prints the first rejected inputs of a new dataset with their reasons, and where all of them are."""
    from shardwright.dataset.ledger import REJECTED
    from shardwright.dataset.reader import ImageDataset
    from shardwright.text.escaping import escape

    count = manifest.totals.get(REJECTED, 0)
    if not count:
        return
    rows = islice(ImageDataset.open(out).ledger(), _MOST_ROWS)
    for row in islice((row for row in rows if row.status == REJECTED), _SHOWN):
        print(f"  rejected {escape(row.key)}: {row.code}: {escape(row.reason)}")
    if count > _SHOWN:
        print(f"  {count - _SHOWN:,} more are in the ledger; `shardwright report {out}` shows them")


def dataset_row(out: str | os.PathLike[str], manifest: Manifest) -> dict[str, Any]:
    """Returns what every command that makes a dataset reports."""
    return {
        "dataset": str(out),
        "fingerprint": manifest.fingerprint,
        "shards": len(manifest.shards),
        "totals": dict(manifest.totals),
    }
