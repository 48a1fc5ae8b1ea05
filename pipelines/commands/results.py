"""The results of commands as JSON, for `--json`."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardwright.dataset.manifest import Manifest


def print_json(value: Any) -> None:
    """Prints plain values, or a dataclass of them, as JSON with an indent; paths are texts."""
    print(json.dumps(value, indent=1, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    plain = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return dataclasses.asdict(value) if plain else os.fspath(value)


def dataset_row(out: str | os.PathLike[str], manifest: Manifest) -> dict[str, Any]:
    """Returns what every command that makes a dataset reports."""
    return {
        "dataset": str(out),
        "fingerprint": manifest.fingerprint,
        "shards": len(manifest.shards),
        "totals": dict(manifest.totals),
    }
