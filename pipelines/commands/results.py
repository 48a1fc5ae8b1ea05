"""The ends of commands: the result as JSON or as text, the next step, and the exit code."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from shardwright.running.progress import Progress, progress
from shardwright.text.escaping import escape

if TYPE_CHECKING:
    from shardwright.dataset.manifest import Manifest
    from shardwright.dataset.reader import ImageDataset

# Rejects that are printed, and ledger rows that are read to find them.
_SHOWN, _MOST_ROWS = 3, 100_000
# These may also be in a text, where nothing is replaced.
_NOT_FINITE = re.compile("NaN|Infinity")
_GAP = "  "


def finish(options: Namespace, value: Any, *lines: str, failed: bool = False, following: str = "") -> int:
    """Prints the result of a command and returns its exit code.

    Args:
        options: of the command; with `json` the result is printed as JSON, with `quiet` without the next step.
        value: plain values, or dataclasses of them.
        *lines: the same as text.
        failed: whether a check has failed.
        following: the next step, such as the command that shows what was made.
    """
    if options.json:
        print_json(value)
    else:
        for line in lines:
            print(line)
        if following and not options.quiet:
            print(f"Next: {following}")
    return int(failed)


def print_json(value: Any) -> None:
    """Prints plain values, or a dataclass of them, as JSON with an indent; paths are texts.

    JSON has no infinite numbers and no NaN: they are null.
    """

    def plain(inner: Any) -> Any:
        is_section = dataclasses.is_dataclass(inner) and not isinstance(inner, type)
        return dataclasses.asdict(inner) if is_section else os.fspath(inner)

    text = json.dumps(value, indent=1, ensure_ascii=False, default=plain)
    if _NOT_FINITE.search(text):
        text = json.dumps(json.loads(text, parse_constant=lambda _: None), indent=1, ensure_ascii=False)
    print(text)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows of untrusted texts as lines, of which all columns but the last have one width."""
    shown = [[escape(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in shown), strict=True)]
    lines = ([*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]] for row in shown)
    return "\n".join(_GAP.join(line).rstrip() for line in lines)


@contextmanager
def reading(dataset: ImageDataset, what: str) -> Iterator[Progress]:
    """Shows how far a command is with the records of a dataset."""
    with progress(sum(shard.records for shard in dataset.manifest.shards), what) as shown:
        yield shown


def rejected_lines(out: str | os.PathLike[str], manifest: Manifest) -> Iterator[str]:
    """Yields the first rejected inputs of a new dataset with their reasons, and where all of them are."""
    from shardwright.dataset.ledger import REJECTED
    from shardwright.dataset.reader import ImageDataset

    count = manifest.totals.get(REJECTED, 0)
    if not count:
        return
    rows = islice(ImageDataset.open(out).ledger(), _MOST_ROWS)
    for row in islice((row for row in rows if row.status == REJECTED), _SHOWN):
        yield f"  rejected {escape(row.key)}: {row.code}: {escape(row.reason)}"
    if count > _SHOWN:
        yield f"  {count - _SHOWN:,} more are in the ledger; `shardwright report {out}` shows them"


def dataset_facts(manifest: Manifest) -> dict[str, str]:
    """Returns what people want to know first of an ingested dataset, by the words that its lines begin with."""
    totals = manifest.totals
    rejected = {name.split("/", 1)[1]: n for name, n in totals.items() if name.startswith("rejected/") and n}
    why = f" ({', '.join(f'{n} {code}' for code, n in sorted(rejected.items()))})" if rejected else ""
    records = [(-n, name.split("/", 1)[1]) for name, n in totals.items() if name.startswith("records/")]
    size = sum(shard.bytes for shard in manifest.shards)
    return {
        "images": f"{totals['inputs']} in, {totals['written']} written, {totals['rejected']} rejected{why}",
        "splits": ", ".join(f"{split} {-n}" for n, split in sorted(records)),
        "shards": f"{len(manifest.shards)}, {size / 1e6:.1f} MB",
        "classes": ", ".join(manifest.classes),
    }


def dataset_row(out: str | os.PathLike[str], manifest: Manifest) -> dict[str, Any]:
    """Returns what every command that makes a dataset reports."""
    return {
        "dataset": str(out),
        "fingerprint": manifest.fingerprint,
        "shards": len(manifest.shards),
        "totals": dict(manifest.totals),
    }
